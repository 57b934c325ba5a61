package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/form"
	"github.com/weirmq/weir/internal/runs"
	"github.com/weirmq/weir/internal/signals"
	"github.com/weirmq/weir/internal/study"
)

// doing is how runs are done: shown as the flags say, and ended by signals.
func (c *runCommand) doing(e *env, h *signals.Halting) runs.Options {
	return runs.Options{
		Dir: e.Dir, Host: e.host(), Words: wordsOfRuns(), Files: c.read,
		Observe: func(r runs.Run) runs.Observer { return c.observe(e, h, r) },
		Note:    func(format string, args ...any) { e.say("weir: "+format, args...) },
	}
}

// gather waits for agents until a signal comes.
func (e *env) gather(ctx context.Context, gather func(context.Context) error) Code {
	signalled, stop := e.stoppable(ctx)
	defer stop()
	return ungathered(e, gather(signalled))
}

// heard tells what went wrong with a run, which has that name among others, and returns the
// exit code that it deserves.
func (c *runCommand) heard(e *env, o *runs.Outcome, name string) Code {
	if o.Result == nil {
		e.refuse(o)
		if unmade := (*runs.FolderError)(nil); errors.As(o.Err, &unmade) { // another could be made a moment ago
			return Failed
		}
		return codeOf(o.Err)
	}
	for _, err := range o.Wrong() {
		if name != "" {
			err = fmt.Errorf("%s: %w", name, err)
		}
		e.complain(err)
	}
	return worst(c.codes(o)...)
}

// unstudied tells why a search or a suite does not begin, or does not go on.
func (e *env) unstudied(out *string, err error) Code {
	code := e.refused(unmade(out, err))
	if errors.Is(err, study.ErrWriting) {
		code = Failed
	}
	return code
}

// came prints what a search or a suite came to: text on stdout, or, as JSON, v, with the text
// on stderr.
func (e *env) came(asJSON, quiet bool, v any, text string, code Code) Code {
	out := e.Stdout
	var err error
	if asJSON {
		out, err = e.Stderr, form.JSON(e.Stdout, v)
	}
	if err == nil && (!asJSON || !quiet) {
		_, err = fmt.Fprint(out, text)
	}
	if err != nil {
		e.complain(fmt.Errorf("showing the result: %w", err))
		return worst(code, Failed)
	}
	return code
}
