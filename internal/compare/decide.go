package compare

import (
	"math"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// A Verdict is the finding on a figure.
type Verdict string

// The verdicts, in order of decision.
const (
	NoChange     Verdict = "no_change"     // the whole interval lies within the band, or the figure is the same in every run
	Worse        Verdict = "worse"         // significant at the requested level
	Better       Verdict = "better"        // likewise
	NeedsRuns    Verdict = "needs_runs"    // not even the clearest difference could be shown with these few runs
	NothingShown Verdict = "nothing_shown" // neither a difference nor its absence
)

// A Change is the difference of a side's figure from the base's.
type Change struct {
	Shift float64  `json:"shift"` // Hodges-Lehmann, in the figure's unit
	Lo    *float64 `json:"lo"`    // interval at 1 - alpha; null if the runs do not bound it
	Hi    *float64 `json:"hi"`

	// The same relative to the base, from the values' logarithms; null if a value is 0.
	Percent   *float64 `json:"percent"`
	PercentLo *float64 `json:"percent_lo"`
	PercentHi *float64 `json:"percent_hi"`

	P        float64 `json:"p"`                   // Mann-Whitney, two-sided
	PHolm    float64 `json:"p_holm"`              // adjusted for the tests of its family
	Tests    int     `json:"tests"`               // number of these tests; 0: nothing varies, nothing to test
	Verdict  Verdict `json:"verdict"`             //
	MoreRuns int     `json:"more_runs,omitempty"` // per side, for needs_runs
}

func (t *Tally) add(v Verdict) {
	switch v {
	case Worse:
		t.Worse++
	case Better:
		t.Better++
	case NoChange:
		t.NoChange++
	case NeedsRuns:
		t.NeedsRuns++
	case NothingShown:
		t.NothingShown++
	}
}

// Tally counts the figures of all sides.
func (c *Comparison) Tally() (all Tally) {
	for _, s := range c.Sides[1:] {
		all.Worse += s.Tally.Worse
		all.Better += s.Tally.Better
		all.NoChange += s.Tally.NoChange
		all.NothingShown += s.Tally.NothingShown
		all.NeedsRuns += s.Tally.NeedsRuns
	}
	return all
}

// MoreRuns is how many more runs each side needs to decide every figure.
func (c *Comparison) MoreRuns() (more int) {
	for _, f := range c.Figures {
		for _, v := range f.Sides[1:] {
			more = max(more, v.Change.MoreRuns)
		}
	}
	return more
}

// A test compares one figure of one side with the base.
type test struct {
	figure *Figure
	values *Values
	above  bool // the side lies above the base
	varies bool
}

// decide fills in the changes of a family of figures.
//
// Holm's correction covers all figures of the family and all sides. Figures that are equal in every run are
// not counted as tests: given their values they could never be significant, and the correction holds
// without them (R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46, 1990).
func decide(family []*Figure, o Options) {
	var tests []*test
	var p []float64
	for _, f := range family {
		for i := range f.Sides[1:] {
			x := &test{figure: f, values: &f.Sides[i+1]}
			x.measure(1 - o.Alpha)
			if x.varies {
				tests = append(tests, x)
				p = append(p, x.values.Change.P)
			}
		}
	}
	for i, adjusted := range stats.Holm(p) {
		x := tests[i]
		c := x.values.Change
		c.PHolm, c.Tests = adjusted, len(tests)
		base, runs := len(x.figure.Sides[0].Runs), len(x.values.Runs)
		c.MoreRuns = stats.MoreRuns(base, runs, o.Alpha, len(tests))
		switch {
		case o.Band > 0 && stats.Within(c.PercentLo, c.PercentHi, -100*o.Band, 100*o.Band):
			c.Verdict = NoChange
		case c.PHolm <= o.Alpha && x.above == (x.figure.Better == "higher"):
			c.Verdict = Better
		case c.PHolm <= o.Alpha:
			c.Verdict = Worse
		case c.MoreRuns > 0:
			c.Verdict = NeedsRuns
		default:
			c.Verdict = NothingShown
		}
		if c.Verdict != NeedsRuns {
			c.MoreRuns = 0
		}
	}
}

// measure fills in the change except for its verdict, unless nothing varies.
//
// A lower bound may really be any higher value. So the test is done twice: with the base's bounds at
// infinity and the side's at face value, which gives the least difference, and the reverse. A direction is
// claimed only if both agree, with the larger P; each end of the interval is from the case that puts it
// further out.
func (x *test) measure(conf float64) {
	base, side := &x.figure.Sides[0], x.values
	c := new(Change)
	side.Change = c
	first := base.Runs[0]
	for _, v := range [][]float64{base.Runs, side.Runs} {
		for _, y := range v {
			x.varies = x.varies || y != first
		}
	}
	bounded := base.AtLeast != nil || side.AtLeast != nil
	x.varies = x.varies || bounded
	if !x.varies {
		c.Lo, c.Hi, c.P, c.PHolm, c.Verdict = new(0.0), new(0.0), 1, 1, NoChange
		if first > 0 {
			c.Percent, c.PercentLo, c.PercentHi = new(0.0), new(0.0), new(0.0)
		}
		return
	}
	least := stats.MannWhitney(base.highest(), side.Runs)
	most := least
	if bounded {
		most = stats.MannWhitney(base.Runs, side.highest())
	}
	even := float64(len(base.Runs)*len(side.Runs)) / 2
	c.P = 1
	if least.U > even || most.U < even {
		c.P = max(least.P, most.P)
	}
	x.above = least.U > even

	shift := stats.HodgesLehmann(base.Runs, side.Runs, conf)
	c.Shift, c.Lo, c.Hi = shift.Estimate, shift.Lo, shift.Hi
	if bounded {
		c.Lo = stats.HodgesLehmann(base.highest(), side.Runs, conf).Lo
		c.Hi = stats.HodgesLehmann(base.Runs, side.highest(), conf).Hi
	}
	ratio, ok := stats.HodgesLehmannRatio(base.Runs, side.Runs, conf)
	if !ok {
		return
	}
	if bounded {
		low, _ := stats.HodgesLehmannRatio(base.highest(), side.Runs, conf)
		high, _ := stats.HodgesLehmannRatio(base.Runs, side.highest(), conf)
		ratio.Lo, ratio.Hi = low.Lo, high.Hi
	}
	c.Percent, c.PercentLo, c.PercentHi = Percent(&ratio.Estimate), Percent(ratio.Lo), Percent(ratio.Hi)
}

// highest returns the values, with lower bounds at infinity.
func (v *Values) highest() []float64 {
	return Highest(v.Values())
}

// Highest returns the values, with lower bounds at infinity.
func Highest(values []result.Value) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		var exact bool
		if out[i], exact = v.Exact(); !exact {
			out[i] = math.Inf(1)
		}
	}
	return out
}

// Percent converts a ratio to the percentage that it adds.
func Percent(ratio *float64) *float64 {
	if ratio == nil {
		return nil
	}
	return new(100 * (*ratio - 1))
}
