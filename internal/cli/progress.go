package cli

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// A showing displays a run in progress, and listens to signals.
type showing struct {
	*view.Live
	env     *env
	run     series.Run
	outlets *metrics.Outlets // for other programs; nil: none
	hide    func()
	deaf    func() // stops listening
}

// observe starts to display a run. Messages go above its block.
func (c *runCommand) observe(e *env, h *halting, r series.Run) series.Observer {
	x := &showing{env: e, run: r, outlets: c.outlets}
	if c.outlets != nil {
		c.outlets.Begin(r.Scenario.Name, r.Number, r.Scenario.System.Definition.Name, planned(r.Scenario))
	}
	rewrite := e.StderrTerminal && !c.noColor && !e.colourless()
	x.Live, x.hide = e.console.View(view.Terminal{Rewrite: rewrite, Colour: rewrite, Size: e.Size}, view.LivePlanOf(r.Scenario, r.Among()), c.quiet)
	x.deaf = h.listen(x.Note)
	return x
}

// planned counts the messages of a scenario's schedule.
func planned(s *scenario.Scenario) metrics.Plan {
	spec := s.Plan()
	spec.Keys = schedule.Keys{} // they do not decide when a message is due, and a table of them takes time
	plan, err := schedule.New(spec)
	if err != nil || plan.End() <= plan.WarmUp() {
		return metrics.Plan{}
	}
	return metrics.Plan{WarmUp: plan.WarmUp(), Before: func(ns int64) uint64 { return plan.Remaining(schedule.Part{Count: 1}, 0, 0, ns) }}
}

// Event implements series.Observer.
func (x *showing) Event(at int64, kind, text string) {
	if x.outlets != nil && kind == "phase" {
		x.outlets.Phase(text)
	}
	x.Live.Event(at, kind, text)
}

// Interval implements series.Observer.
func (x *showing) Interval(iv *measure.Interval) {
	if x.outlets != nil {
		x.outlets.Interval(iv)
	}
	x.Live.Interval(iv)
}

// serve exposes the runs to Prometheus with --metrics, and pushes them to OpenTelemetry with --otlp, until
// end is called.
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
			e.say("weir: --otlp: a push failed, and the run continues: %v", err)
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

// Complain implements series.Observer.
func (x *showing) Complain(err error) { x.env.complainOf(&x.run, err) }

// Done implements series.Observer.
func (x *showing) Done() {
	x.deaf()
	x.hide()
}
