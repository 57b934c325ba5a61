package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/truth"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// quickScale shortens the runs of --quick.
const quickScale = 0.2

// calibrateCommand is `weir calibrate`.
type calibrateCommand struct {
	Quick   bool `help:"Shorter runs: about 10 s instead of 40 s, with fewer samples."`
	JSON    bool `name:"json" help:"Print a JSON object on stdout and everything else on stderr."`
	NoColor bool `help:"No colour."`
}

// run takes the measurements, runs the self-tests, and prints both as they come.
func (c *calibrateCommand) run(ctx context.Context, e *env) Code {
	return c.calibrate(ctx, e, truth.Bench{Measure: truth.Measure, Check: truth.Checks})
}

func (c *calibrateCommand) calibrate(ctx context.Context, e *env, bench truth.Bench) Code {
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	p := &view.CalibrationPage{Out: e.Stdout, Text: layout.Text{Colour: e.color(c.NoColor, c.JSON)}}
	if c.JSON {
		p.Out = e.Stderr
	}
	o := truth.Options{Scale: 1, Log: e.log, OnCheck: p.Check}
	if c.Quick {
		o.Scale = quickScale
	}
	out, err := bench.Take(ctx, o, p.Figures)
	code := OK
	switch {
	case out.Interrupted:
		e.complain(fmt.Errorf("interrupted after %d truth tests", len(out.Checks)))
		code = Interrupted
	case err != nil:
		e.complain(fmt.Errorf("calibrating: %w", err))
		code = Failed
	case !out.Pass:
		code = Invalid
	}
	err = p.End(out)
	if c.JSON {
		err = errors.Join(err, layout.JSON(e.Stdout, out))
	}
	return worst(code, e.printed("the calibration", err))
}
