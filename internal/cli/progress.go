package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/live"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/runs"
	"github.com/weirmq/weir/measure"
)

// A showing shows a run while it goes, and listens to signals.
type showing struct {
	*live.View
	env     *env
	run     runs.Run
	outlets *metrics.Outlets // for other programs; nil: none
	hide    func()
	deaf    func() // ends the listening
}

// observe begins to show a run. What is said meanwhile goes above its block.
func (c *runCommand) observe(e *env, h *halting, r runs.Run) runs.Observer {
	x := &showing{env: e, run: r, outlets: c.outlets}
	if c.outlets != nil {
		c.outlets.Begin(r.Scenario.Name, r.Number, r.Scenario.System.Definition.Name)
	}
	rewrite := e.StderrTerminal && !c.noColor && !e.colourless()
	x.View, x.hide = e.console.View(live.Terminal{Rewrite: rewrite, Colour: rewrite, Size: e.Size}, live.PlanOf(r.Scenario, which(&r)), c.quiet)
	x.deaf = h.listen(x.Note)
	return x
}

// Event implements runs.Observer.
func (x *showing) Event(at int64, kind, text string) {
	if x.outlets != nil && kind == "phase" {
		x.outlets.Phase(text)
	}
	x.View.Event(at, kind, text)
}

// Interval implements runs.Observer.
func (x *showing) Interval(iv *measure.Interval) {
	if x.outlets != nil {
		x.outlets.Interval(iv)
	}
	x.View.Interval(iv)
}

// serve shows the runs to Prometheus where --metrics says so, and pushes them to
// OpenTelemetry where --otlp does, until end is called.
func (c *runCommand) serve(ctx context.Context, e *env) (end func(), err error) {
	if c.Metrics == nil && c.OTLP == nil {
		return func() {}, nil
	}
	c.outlets = new(metrics.Outlets)
	if c.Metrics != nil {
		url, err := c.outlets.Listen(ctx, *c.Metrics)
		if err != nil {
			return nil, fmt.Errorf("--metrics: %w", err)
		}
		if !c.quiet {
			e.say("weir: metrics at %s", url)
		}
	}
	if c.OTLP != nil {
		if err := c.outlets.Push(ctx, *c.OTLP, buildinfo.Version(), func(err error) {
			e.say("weir: --otlp: a push failed, and the run goes on: %v", err)
		}); err != nil {
			return nil, fmt.Errorf("--otlp: %w", err)
		}
	}
	return func() {
		pushes, failures, err := c.outlets.Close(context.WithoutCancel(ctx))
		if err != nil {
			e.complain(err)
		}
		if failures > 0 {
			e.say("weir: --otlp: %d of %d pushes failed; the result folder has all figures", failures, pushes)
		}
	}, nil
}

// Complain implements runs.Observer.
func (x *showing) Complain(err error) { x.env.complainOf(&x.run, err) }

// Done implements runs.Observer.
func (x *showing) Done() {
	x.deaf()
	x.hide()
}

// A halting is how signals end runs.
type halting struct {
	signals <-chan os.Signal
	stop    chan struct{} // closed by the first
	cancel  context.CancelFunc
	heard   int
}

// listen takes signals until end is called: the first closes stop, the second cancels.
func (h *halting) listen(note func(format string, args ...any)) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case _, ok := <-h.signals: // nil: never
				if !ok {
					return
				}
				if h.heard++; h.heard > 1 {
					note("stopping now")
					h.cancel()
					return
				}
				note("stopping: waiting for messages in flight; press Ctrl-C again to stop now")
				close(h.stop)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// asked reports whether several runs are to end between two of them, when no run listens.
func (h *halting) asked(ctx context.Context) bool {
	select {
	case _, ok := <-h.signals: // nil: never
		return ok
	case <-h.stop:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
