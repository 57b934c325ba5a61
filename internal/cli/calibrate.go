package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// quickScale shortens the runs of --quick.
const quickScale = 0.2

// disturbedRuns is how many runs each disturbance gets: one against each simulated system.
const disturbedRuns = 4

// calibrateCommand is `weir calibrate`.
type calibrateCommand struct {
	Quick   bool     `help:"Shorter runs: about 30 s instead of 3 minutes, with fewer samples, and none of --runs."`
	Only    []string `placeholder:"PART" help:"Only these parts: figures, queue, stall, faults, capacity, clock, kernel, intervals, compare or quoted."`
	Runs    *int     `placeholder:"N" help:"Runs under each disturbance of the host, to see whether the figures that may be quoted are true; 0 for none (0 or more; default: 4). A run takes 3 s. 200 runs tell whether 95 % hold."`
	JSON    bool     `name:"json" help:"Print a JSON object on stdout and everything else on stderr."`
	Out     *string  `short:"o" placeholder:"FILE" help:"Also write FILE: a page on the accuracy of weir on this host, in Markdown."`
	NoColor bool     `help:"No colour."`
}

// run takes the measurements, runs the self-tests, and prints both as they come.
func (c *calibrateCommand) run(ctx context.Context, e *env) Code {
	return c.calibrate(ctx, e, selftest.Bench{Measure: selftest.Measure, Check: selftest.Checks, Quote: selftest.Quote})
}

func (c *calibrateCommand) calibrate(ctx context.Context, e *env, bench selftest.Bench) Code {
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	p := &view.CalibrationPage{Out: e.Stdout, Text: layout.Terminal(e.width(c.JSON), e.color(c.NoColor, c.JSON))}
	if c.JSON {
		p.Out = e.Stderr
	}
	o := selftest.Options{Scale: 1, Log: e.log, OnCheck: p.Check, Runs: disturbedRuns, Self: e.Self, OnQuoting: p.Quoting, Only: c.Only}
	if c.Quick {
		o.Scale, o.Runs = quickScale, 0
	}
	if c.Runs != nil {
		o.Runs = *c.Runs
	}
	if o.Runs < 0 {
		return e.refused(fmt.Errorf("--runs: %d is negative", o.Runs))
	}
	if err := e.outlet().Check(c.Out); err != nil {
		return e.refused(err)
	}
	for _, part := range c.Only {
		if !slices.Contains(selftest.Parts(), part) {
			return e.refused(fmt.Errorf("--only: there is no part %q (%s)", part, strings.Join(selftest.Parts(), ", ")))
		}
	}
	out, err := bench.Take(ctx, o, p.Figures)
	code := OK
	switch {
	case out.Interrupted:
		e.complain(fmt.Errorf("interrupted after %d self-tests", len(out.Checks)))
		code = Interrupted
	case err != nil:
		e.complain(fmt.Errorf("calibrating: %w", err))
		code = Failed
	case !out.Pass:
		code = Invalid
	}
	err = p.End(out)
	if c.Out != nil && !out.Interrupted {
		page := new(layout.Page)
		view.Accuracy(page, out)
		err = errors.Join(err, e.outlet().Deliver(c.Out, []byte(layout.Markdown{}.Page(page))))
	}
	if c.JSON {
		err = errors.Join(err, layout.JSON(e.Stdout, out))
	}
	return worst(code, e.printed("the calibration", err))
}
