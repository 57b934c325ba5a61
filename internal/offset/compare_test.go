package offset

import (
	"math"
	"testing"
)

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
