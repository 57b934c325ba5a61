package truth

import (
	"context"
	"slices"

	"github.com/weirmq/weir/internal/buildinfo"
)

// A Calibration is the output of weir calibrate --json. Times are in ns.
type Calibration struct {
	Schema      string   `json:"schema"`
	Weir        string   `json:"weir"`
	Pass        bool     `json:"pass"` // every check ran and passed
	Interrupted bool     `json:"interrupted"`
	Figures     *Figures `json:"figures"` // null: interrupted before they were taken
	Checks      []Check  `json:"checks"`
	// Quoted says by disturbance whether the figures that runs call quotable are true; absent if left out.
	Quoted []Quoting `json:"quoted,omitempty"`
}

// A Bench provides the figures and the checks, normally those of this package.
type Bench struct {
	Measure func(context.Context, Options) (*Figures, error)
	Check   func(context.Context, Options) ([]Check, error)
	Quote   func(context.Context, Options) ([]Quoting, error)
}

// Take calibrates until ctx ends. show receives the figures before the checks run. The error says why
// it did not complete.
func (b Bench) Take(ctx context.Context, o Options, show func(*Figures)) (*Calibration, error) {
	c := &Calibration{Schema: "weir.calibration/v1", Weir: buildinfo.Version(), Checks: []Check{}}
	figures, err := b.Measure(ctx, o)
	if err == nil {
		c.Figures = figures
		show(figures)
		var checks []Check
		if checks, err = b.Check(ctx, o); len(checks) > 0 {
			c.Checks = checks
		}
	}
	if err == nil && o.Runs > 0 {
		c.Quoted, err = b.Quote(ctx, o)
	}
	c.Interrupted = err != nil && ctx.Err() != nil
	c.Pass = err == nil && Passed(c.Checks) && !slices.ContainsFunc(c.Quoted, func(q Quoting) bool { return !q.Passed() })
	return c, err
}
