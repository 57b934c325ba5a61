package view

import (
	"context"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/truth"
)

// A Calibration is what weir calibrate --json prints. Times are in ns.
type Calibration struct {
	Schema      string         `json:"schema"`
	Weir        string         `json:"weir"`
	Pass        bool           `json:"pass"` // every truth test was done and passed
	Interrupted bool           `json:"interrupted"`
	Figures     *truth.Figures `json:"figures"` // null: interrupted before they were taken
	Checks      []truth.Check  `json:"checks"`
}

// A Bench is what takes the figures and does the truth tests: those of package truth.
type Bench struct {
	Measure func(context.Context, truth.Options) (*truth.Figures, error)
	Check   func(context.Context, truth.Options) ([]truth.Check, error)
}

// Take calibrates until ctx ends, and shows each part on the page as it comes. The error
// says why it did not get through.
func (b Bench) Take(ctx context.Context, o truth.Options, p *CalibrationPage) (*Calibration, error) {
	c := &Calibration{Schema: "weir.calibration/v1", Weir: buildinfo.Version(), Checks: []truth.Check{}}
	o.OnCheck = p.check
	figures, err := b.Measure(ctx, o)
	if err == nil {
		c.Figures = figures
		p.figures(figures)
		var checks []truth.Check
		if checks, err = b.Check(ctx, o); len(checks) > 0 {
			c.Checks = checks
		}
	}
	c.Interrupted = err != nil && ctx.Err() != nil
	c.Pass = err == nil && truth.Passed(c.Checks)
	return c, err
}
