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

// doing is how runs are done: shown as the flags say, and ended by signals.
func (c *runCommand) doing(e *env, h *halting) series.Options {
	return series.Options{
		Dir: e.Dir, Host: e.host(), Files: c.read, Pages: &view.Pages{Session: c.session},
		Observe: func(r series.Run) series.Observer { return c.observe(e, h, r) },
		Note:    func(format string, args ...any) { e.say("weir: "+format, args...) },
	}
}

// gather waits for the agents of a series, where it has some, until a signal comes.
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

// heard tells what went wrong with a run, which has that name among others, and returns the
// exit code that it deserves.
func (c *runCommand) heard(e *env, o *series.Outcome, name string) Code {
	if o.Result == nil {
		e.refuse(o)
		if unmade := (*series.FolderError)(nil); errors.As(o.Err, &unmade) { // another could be made a moment ago
			return Failed
		}
		code := codeOf(o.Err)
		if code == Unreachable { // it may be that the two processes of a split run did not meet
			code = codeOfFleet(o.Err)
		}
		return code
	}
	for _, err := range o.Wrong() {
		e.complain(named(name, err))
	}
	return worst(c.codes(o)...)
}

// named is an error of what has that name among others; "": it is the only one.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// resumed is an error of going on with a search or a suite: where its folder is to blame, the flag is named.
func resumed(err error) error {
	if wrong := (*series.KeptError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("--resume: %w", err)
	}
	return err
}

// notBegun tells why a search or a suite does not begin, or does not go on.
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

// came prints what a search or a suite came to: what show writes on stdout, or, as JSON, v, with
// the text on stderr.
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
