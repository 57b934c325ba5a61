package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestWhatHeldTheLanesUpIsToldFromTheirWork: late by a third of 1 ms at every
// percentile, of which the lanes cannot have made heldUp.
func TestWhatHeldTheLanesUpIsToldFromTheirWork(t *testing.T) {
	t.Parallel()
	for what, x := range map[string]struct {
		heldUp *result.Dist
		status result.Status
		value  string
		why    string // of lateness
	}{
		"all of it": {
			scaled(100_000, 330_000), result.Suspect, " is 33 % at p",
			" Lanes that had nothing to do but wait were run late, by 165 µs at p50 to 330 µs at p99.99. A",
		},
		"none of it": {
			scaled(100_000, 0), result.Valid, "0 ns of 500 µs is 0 % at p50",
			" At p50 to p99.99 most of it is of the generator's own making:",
		},
		"its tail": {
			lateTail(100_000, 15, 10, 320_000), result.Suspect, "320 µs of 990 µs is 32.3 % at p99",
			" were run late, by 320 µs at p99 to 320 µs at p99.99. At p50 to p95 most of it is of the generator's own making:",
		},
		"a part that is no part of the figures": {
			scaled(100_000, 99_000), result.Valid, " is 9.9 % at p", " At p50 to p99.99 most of it is of the generator's own making:",
		},
		"too few to tell": {scaled(9, 330_000), result.NotRun, "", " part of the figures at p50, p75, p90, p95, p99, p99.9, p99.99."},
		"not recorded":    {nil, result.NotRun, "", " part of the figures at p50, p75, p90, p95, p99, p99.9, p99.99."},
	} {
		in := good()
		in.Lateness, in.HeldUp = scaled(100_000, 330_000), x.heldUp
		c := heldUp(&in)
		if c.Status != x.status || !strings.Contains(c.Value, x.value) || c.Limit == "" || (c.Why == "") != (x.status == result.Valid) {
			t.Errorf("%s: %+v", what, c)
		}
		if why := latenessWhy(&in); !strings.Contains(why, x.why) {
			t.Errorf("%s: lateness says %q; want %q in it", what, why, x.why)
		}
	}
}

func TestALatenessOfUnknownCauseSaysHowBusyTheHostWas(t *testing.T) {
	t.Parallel()
	in := good()
	in.Lateness, in.HeldUp = scaled(100_000, 330_000), nil
	in.Host = quietHost().Host
	if why := latenessWhy(&in); !strings.Contains(why, ". All cores of the host together were 40 % busy. A") {
		t.Errorf("%q", why)
	}
}

// TestWhatHoldsLanesUpDoubtsNoRunThatLatenessDoesNot, as it is a part of it.
func TestWhatHoldsLanesUpDoubtsNoRunThatLatenessDoesNot(t *testing.T) {
	t.Parallel()
	for most := int64(0); most <= 1_000_000; most += 10_000 {
		in := good()
		in.Lateness = scaled(100_000, most)
		in.HeldUp = in.Lateness
		if late, held := lateness(&in), heldUp(&in); (late.Status == result.Valid) != (held.Status == result.Valid) {
			t.Errorf("late by up to %d ns: %q (%s), and %q (%s)", most, late.Status, late.Value, held.Status, held.Value)
		}
	}
}
