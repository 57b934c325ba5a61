package pace

import (
	"math"
	"time"
)

// Durations in ns that determine how to sleep.
const (
	// sleepCost is the minimum time that is spun rather than slept, even with a smaller margin: a
	// call for an instant that has already come takes 3 to 15 us on the hosts tried, and occupies
	// the core as long as spinning does.
	sleepCost = 5_000

	// lead is how long before its end a long sleep is interrupted and followed by a short one. The
	// longer a core sleeps the deeper it sleeps and the slower it wakes: a sleep of 10 ms overshot
	// by 42 to 66 us in the median and 80 to 120 us at the 99th percentile on a virtual machine
	// where one of 0.1 ms overshot by 4 and 11. Split like this it overshoots as the short one
	// does, for one more wake-up of some microseconds. The lead must cover the overshoot of the
	// long sleep.
	lead = 150_000
)

// A Waiter waits for instants of one clock, on behalf of one goroutine.
type Waiter struct {
	clock   *Clock
	margin  int64 // the final nanoseconds, which are spun
	virtual bool
	fifo    bool  // request real-time priority in Lock
	review  int64 // when to check again whether it may keep the priority; never without one
	turn    turn
}

// NewWaiter returns a waiter on c. If cal.Spin is set it spins the last cal.Margin nanoseconds of
// each wait; otherwise it sleeps to the very instant and is late by the overshoot. On a clock made
// in a bubble of testing/synctest every calibration acts as Virtual.
func NewWaiter(c *Clock, cal Calibration) *Waiter {
	w := &Waiter{clock: c, virtual: cal.virtual || c.bubble, fifo: cal.FIFO, review: math.MaxInt64}
	if cal.Spin {
		w.margin = max(0, cal.Margin)
	}
	return w
}

// Lock locks the calling goroutine to its thread and makes the thread's sleeps end as close to
// their instant as the kernel can (on Linux a timer slack of 1 ns instead of 50 us). If the
// calibration says FIFO, the thread gets real-time priority. The waiting goroutine should call it
// before its first wait. Until works without it, less precisely.
//
// The goroutine calls unlock when it stops waiting, to restore slack and scheduling policy. Later
// calls of unlock do nothing. A virtual waiter has nothing to lock.
func (w *Waiter) Lock() (unlock func()) {
	if w.virtual {
		return func() {}
	}
	if w.fifo {
		return w.lockFirst()
	}
	return lockThread()
}

// Until returns the first reading of the clock that is not before t; it never returns early. For an
// instant that has passed it costs one reading and no system call, except two per 50 ms if the
// waiter has real-time priority. It allocates nothing.
//
// Until blocks for as long as it takes and cannot be cancelled: callers that must be able to stop
// wait in steps. Only one goroutine may be in Until.
func (w *Waiter) Until(t int64) int64 {
	now := w.clock.NowUnordered()
	if now >= w.review {
		w.look(now, now < t)
	}
	if now >= t {
		return now
	}
	return w.wait(t, now)
}

// wait is Until for an instant in the future.
func (w *Waiter) wait(t, now int64) int64 {
	if w.virtual {
		// A bubble's time moves only while all in it sleep: spinning in it would never end.
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
		now = w.clock.NowUnordered()
	}
	return now
}

// nap sleeps until the instant wake, given a reading before it, and returns a reading after the
// sleep. That may be before wake by the clock's error, since the kernel's clock and ours differ by
// that; another sleep would cost more.
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

// satSub returns a-b for b >= 0, saturated at the smallest int64.
func satSub(a, b int64) int64 {
	if a < math.MinInt64+b {
		return math.MinInt64
	}
	return a - b
}
