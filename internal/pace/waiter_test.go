package pace

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// waits are calibrations that a host, or a caller, may provide.
var waits = map[string]Calibration{
	"spinning":                {Spin: true, Margin: 20_000},
	"spinning a wide margin":  {Spin: true, Margin: 300_000},
	"spinning without margin": {Spin: true},
	"spinning less than none": {Spin: true, Margin: -5},
	"not spinning":            {Margin: 20_000},
	"the zero calibration":    {},
	"virtual, off a bubble":   Virtual(),
}

func TestUntilIsNeverEarly(t *testing.T) {
	for name, cal := range waits {
		t.Run(name, func(t *testing.T) {
			c := NewClock()
			w := NewWaiter(c, cal)
			defer w.Lock()()
			for _, ahead := range []int64{1, 100, 1_000, sleepCost, sleepCost + 1, 20_000, 20_001, 100_000, 2 * lead, 2*lead + 1, 1_000_000} {
				for range 5 {
					due := c.Now() + ahead
					got := w.Until(due)
					if got < due {
						t.Fatalf("%d ns ahead: returned at %d, due at %d", ahead, got, due)
					}
					if now := c.Now(); now < got {
						t.Fatalf("%d ns ahead: returned reading %d, but it is %d", ahead, got, now)
					}
				}
			}
		})
	}
}

func TestUntilIsNeverEarlyOnFutureEpoch(t *testing.T) {
	base := NewClock()
	c := base.At(base.Epoch().MonotonicNS + int64(20*time.Millisecond))
	w := NewWaiter(c, Calibration{Spin: true, Margin: 20_000})
	defer w.Lock()()
	for _, due := range []int64{-5_000_000, -1, 0, 1_000_000} {
		if got := w.Until(due); got < due {
			t.Errorf("returned at %d, due at %d", got, due)
		}
	}
}

func TestUntilPastInstantReturnsAtOnce(t *testing.T) {
	for name, cal := range waits {
		t.Run(name, func(t *testing.T) {
			c := NewClock()
			w := NewWaiter(c, cal)
			for _, due := range []int64{math.MinInt64, -1, 0, c.Now()} {
				before := c.Now()
				got := w.Until(due)
				if after := c.Now(); got < before || got > after {
					t.Errorf("due at %d: returned %d, outside %d to %d", due, got, before, after)
				}
			}
		})
	}
}

func TestUntilAllocatesNothing(t *testing.T) {
	c := NewClock()
	for name, cal := range waits {
		w := NewWaiter(c, cal)
		unlock := w.Lock()
		if n := testing.AllocsPerRun(1000, func() { w.Until(0) }); n != 0 {
			t.Errorf("%s: an instant passed allocates %v times", name, n)
		}
		if n := testing.AllocsPerRun(20, func() { w.Until(c.Now() + 2*lead + 50_000) }); n != 0 {
			t.Errorf("%s: an instant to come allocates %v times", name, n)
		}
		unlock()
	}
}

func TestUnlockingTwiceUnlocksOnce(t *testing.T) {
	for name, cal := range waits {
		t.Run(name, func(t *testing.T) {
			w := NewWaiter(NewClock(), cal)
			outer := w.Lock()
			inner := w.Lock()
			inner()
			inner()
			outer()
			outer()
		})
	}
}

// A pacer of 1000 instants a second apart, 16m40s in all, under virtual time: each fires at its
// very instant, and none is skipped.
func TestVirtualWaitsEndExactly(t *testing.T) {
	for name, cal := range map[string]Calibration{
		"virtual":             Virtual(),
		"calibrated in there": {Spin: true, Margin: 20_000}, // found out from the clock
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := NewClock()
				w := NewWaiter(c, cal)
				defer w.Lock()()
				fired := 0
				for i := range int64(1000) {
					due := (i + 1) * int64(time.Second)
					if got := w.Until(due); got != due {
						t.Fatalf("instant %d: fired at %v, due at %v", i, time.Duration(got), time.Duration(due))
					}
					if got := w.Until(due); got != due {
						t.Fatalf("instant %d, asked for again: fired at %v", i, time.Duration(got))
					}
					fired++
				}
				if took := time.Since(start); fired != 1000 || took != 16*time.Minute+40*time.Second {
					t.Errorf("fired %d times over %v, want 1000 over 16m40s", fired, took)
				}
			})
		})
	}
}

// A delayed pacer fires what it missed at once, each once and in order.
func TestVirtualWaitsCatchUpWithoutSkipping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		w := NewWaiter(c, Virtual())
		for i := range int64(100) {
			due := i * int64(time.Millisecond)
			want := due
			if i == 10 {
				time.Sleep(time.Duration(50)*time.Millisecond - time.Duration(c.Now()))
			}
			if i >= 10 && i < 50 {
				want = int64(50 * time.Millisecond)
			}
			if got := w.Until(due); got != want {
				t.Fatalf("instant %d: fired at %v, want %v", i, time.Duration(got), time.Duration(want))
			}
		}
	})
}
