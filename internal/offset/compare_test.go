package offset

import (
	"math"
	"testing"
)

func TestCompare(t *testing.T) {
	a := Clock{Boot: "x", Base: "time:[1]", Reading: 30, Bound: 50_000}
	with := func(change func(*Clock)) Clock { c := a; change(&c); return c }
	for name, c := range map[string]struct {
		b    Clock
		same bool
		want int64
	}{
		"one clock":                    {with(func(c *Clock) { c.Reading, c.Bound = 12, 70_000 }), true, 42},
		"another boot":                 {with(func(c *Clock) { c.Boot = "y" }), false, 100_000},
		"another time namespace":       {with(func(c *Clock) { c.Base = "time:[2]" }), false, 100_000},
		"the coordinator":              {Clock{Boot: "z"}, false, 50_000},
		"a clock that is not shared":   {with(func(c *Clock) { c.Reading = -1 }), false, 100_000},
		"a clock without an offset":    {with(func(c *Clock) { c.Boot, c.Bound = "y", math.MaxInt64 }), false, math.MaxInt64},
		"a host that names no boot":    {with(func(c *Clock) { c.Boot = "" }), false, 100_000},
		"one clock and nothing to pay": {with(func(c *Clock) { c.Reading = 0 }), true, 30},
	} {
		if got := Same(a, c.b); got != c.same {
			t.Errorf("%s: Same = %v", name, got)
		}
		if got, back := Compare(a, c.b), Compare(c.b, a); got != c.want || back != c.want {
			t.Errorf("%s: Compare = %d and %d, want %d", name, got, back, c.want)
		}
	}
	if nameless := with(func(c *Clock) { c.Boot = "" }); Same(nameless, nameless) {
		t.Error("two hosts that name no boot are taken for one")
	}
}

func TestOverlaps(t *testing.T) {
	a := Interval{-10, 10}
	for b, want := range map[Interval]bool{
		{10, 20}: true, {11, 20}: false, {-20, -10}: true, {-20, -11}: false, {-1, 1}: true, {-100, 100}: true, a: true,
	} {
		if Overlaps(a, b) != want || Overlaps(b, a) != want {
			t.Errorf("%v and %v overlap: want %v", a, b, want)
		}
	}
	if got := Around(math.MaxInt64-1, 5); got != (Interval{math.MaxInt64 - 6, math.MaxInt64}) {
		t.Errorf("Around = %+v, want it to end where an int64 does", got)
	}
}

func TestExpectedByHand(t *testing.T) {
	// The agent's run clock stands at 5 where its wall clock says 1005, the
	// coordinator's at 300 where it says 1000: at one time of day the coordinator's
	// reads 300 more than the agent's.
	agent, coordinator := Wall{Ahead: 1000, Bound: 20}, Wall{Ahead: 700, Bound: 30}
	got := Expected(agent, coordinator)
	if got != (Interval{250, 350}) {
		t.Errorf("Expected = %+v, want 300 ± 50", got)
	}
	if !Overlaps(got, Around(240, 10)) || Overlaps(got, Around(240, 9)) {
		t.Error("an estimate of 240 ± 10 agrees with it, and one of 240 ± 9 does not")
	}
}
