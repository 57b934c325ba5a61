package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// doing returns how to execute runs: displayed as the flags say, and ended by signals.
func (c *runCommand) doing(e *env, h *halting) series.Options {
	return series.Options{
		Dir: e.Dir, Host: e.host(), FIFO: c.FIFO, Wire: c.wire, Files: c.read, Pages: &view.Pages{Session: c.session},
		Observe: func(r series.Run) series.Observer { return c.observe(e, h, r) },
		Note:    func(format string, args ...any) { e.say("weir: "+format, args...) },
	}
}

// gather waits for a series' agents, if any, or a signal.
func (e *env) gather(ctx context.Context, s *series.Series) Code {
	if !s.Gathers() {
		return OK
	}
	signalled, stop := e.stoppable(ctx)
	defer stop()
	return ungathered(e, s.Gather(signalled))
}

// close ends a series.
func (e *env) close(s *series.Series) { e.complainEach(s.Close()) }

// heard reports a run's problems, with its name if there are several, and returns its exit code.
func (c *runCommand) heard(e *env, o *series.Outcome, name string) Code {
	if o.Result == nil {
		e.refuse(o)
		if unmade := (*series.FolderError)(nil); errors.As(o.Err, &unmade) { // the folder could be created a moment ago
			return Failed
		}
		code := codeOf(o.Err)
		if code == Unreachable { // the processes of a split run may not have connected
			code = codeOfFleet(o.Err)
		}
		return code
	}
	for _, err := range o.Wrong() {
		e.complain(named(name, err))
	}
	return worst(c.codes(o)...)
}

// named prefixes an error with a run's name; "": a single run.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// resumed names the flag in an error of resuming a search or a suite if its folder is to blame.
func resumed(err error) error {
	if wrong := (*series.KeptError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("--resume: %w", err)
	}
	return err
}

// notBegun reports why a search or a suite does not begin or resume.
func (e *env) notBegun(kind string, out *string, err error) Code {
	folder := (*series.FolderError)(nil)
	switch {
	case out != nil && errors.Is(err, result.ErrExists):
		err = unmade(out, err)
	case errors.As(err, &folder):
		err = fmt.Errorf("making the folder of the %s: %w (--out DIR names another)", kind, err)
	}
	code := e.refused(err)
	if errors.Is(err, series.ErrWriting) {
		code = Failed
	}
	return code
}

// came prints the result of a search or a suite: show's text on stdout, or v as JSON, with the text on
// stderr.
func (e *env) came(asJSON, quiet bool, v any, show func(io.Writer) error, code Code) Code {
	out := e.Stdout
	var err error
	if asJSON {
		out, err = e.Stderr, layout.JSON(e.Stdout, v)
	}
	if err == nil && (!asJSON || !quiet) {
		err = show(out)
	}
	if err != nil {
		e.complain(fmt.Errorf("showing the result: %w", err))
		return worst(code, Failed)
	}
	return code
}
