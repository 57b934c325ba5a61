package pace

import (
	"math"
	"time"
)

// Rests and distances in ns that the sleep is built of.
const (
	// sleepCost is the rest that is spun even where the margin is not: a call for an
	// instant that has come already takes 3 to 15 us on the hosts tried, and burns the
	// core for as long as the spin does.
	sleepCost = 5_000

	// lead is how long before its end a long sleep is broken for a short one.
	// The longer a core sleeps the deeper it sleeps and the colder it wakes: a
	// sleep of 10 ms overshot by 42 to 66 us in the median and 80 to 120 us at
	// the 99th percentile on a virtual machine where one of 0.1 ms overshot by
	// 4 and 11. Broken like this it overshoots as the short one does, for one
	// more wake-up of some microseconds. The lead must cover the overshoot of
	// the long sleep.
	lead = 150_000
)

// A Waiter waits for instants of one clock, on behalf of one goroutine.
type Waiter struct {
	clock   *Clock
	margin  int64 // the last nanoseconds, which are spun
	virtual bool
	fifo    bool  // locks with precedence
	review  int64 // when it is looked at again whether it may keep it; never where it has none
	turn    turn
}

// NewWaiter returns a waiter on c. It spins the last cal.Margin nanoseconds of
// each wait where cal.Spin is set; otherwise it sleeps to the very instant and
// is late by what the sleep overshoots. On a clock made in a bubble of
// testing/synctest every calibration is as Virtual.
func NewWaiter(c *Clock, cal Calibration) *Waiter {
	w := &Waiter{clock: c, virtual: cal.virtual || c.bubble, fifo: cal.FIFO, review: math.MaxInt64}
	if cal.Spin {
		w.margin = max(0, cal.Margin)
	}
	return w
}

// Lock wires the calling goroutine to its thread and lets the thread's sleeps
// end as near to their instant as the kernel can (on Linux a timer slack of
// 1 ns instead of 50 us). Where the calibration says FIFO the thread takes
// precedence over all that has none. The goroutine that waits calls it before its
// first wait. Until works without it, less precisely.
//
// The goroutine calls unlock when it waits no more; that puts back the slack and
// the policy that were there. Later calls of unlock do nothing. A virtual waiter
// has nothing to lock.
func (w *Waiter) Lock() (unlock func()) {
	if w.virtual {
		return func() {}
	}
	if w.fifo {
		return w.lockFirst()
	}
	return lockThread()
}

// Until returns the first reading of the clock that is not before t; it never
// returns early. An instant that has passed costs one reading and no system
// call, but for two in 50 ms where the waiter has precedence. It allocates nothing.
//
// Until blocks for as long as it takes and cannot be cancelled: who must be
// able to stop waits in steps. Only one goroutine may be in Until.
func (w *Waiter) Until(t int64) int64 {
	now := w.clock.Now()
	if now >= w.review {
		w.look(now, now < t)
	}
	if now >= t {
		return now
	}
	return w.wait(t, now)
}

// wait is Until for an instant that has not come.
func (w *Waiter) wait(t, now int64) int64 {
	if w.virtual {
		// A bubble's time moves only while all in it sleep: a spin in it would
		// never end.
		for now < t {
			time.Sleep(w.clock.between(now, t))
			now = w.clock.Now()
		}
		return now
	}
	if t-now > max(w.margin, sleepCost) || t-now < 0 { // below zero: overflowed
		now = nap(w.clock, satSub(t, w.margin), now)
	}
	for now < t {
		now = w.clock.Now()
	}
	return now
}

// nap sleeps until the instant wake, given a reading before it, and returns a
// reading after the sleep. What it returns may be before wake by the clock's
// error, as the kernel's instant and ours differ by that; it is less than
// another sleep would cost.
func nap(c *Clock, wake, now int64) int64 {
	for now < wake {
		until := wake
		if now < satSub(wake, 2*lead) {
			until = wake - lead
		}
		slept := sleepUntil(c, until, now)
		now = c.Now()
		if slept && until == wake {
			break
		}
	}
	return now
}

// satSub is a-b for b >= 0, or the smallest int64 where that is smaller.
func satSub(a, b int64) int64 {
	if a < math.MinInt64+b {
		return math.MinInt64
	}
	return a - b
}
