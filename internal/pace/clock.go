// Package pace provides the clock of a process and waits for instants on it.
//
// Every instant in weir is a number of nanoseconds since the epoch of a run, read by [Clock.Now]
// from the monotonic clock that Go's time package uses, or, between [Clock.Follow] and its stop, from
// the processor's counter that is compared with it. The offset to the monotonic clock that the
// host's processes share (CLOCK_MONOTONIC on Linux) is measured once, when a [Clock] is created,
// with its error, so that two processes of one host given the same epoch agree.
//
// A [Waiter] waits for an instant: it sleeps in the kernel until a calibrated margin before it and
// spins the rest. [Calibrate] measures that margin. The package does not decide when anything is
// due.
package pace

import (
	"math"
	"os"
	"time"
)

// readings is how many bracketed readings NewClock takes. Each costs two clock readings and a
// system call, well under a microsecond, so that all take less than a millisecond; the bracket
// stops narrowing long before.
const readings = 1000

// An Epoch is the instant from which a run counts its nanoseconds.
type Epoch struct {
	// Wall is the epoch as UTC wall time. It is read once, when the Clock is created, and is as
	// accurate as the host's wall clock was then.
	Wall time.Time
	// MonotonicNS is the epoch on the host's monotonic clock: CLOCK_MONOTONIC
	// on Linux, which does not count the time that the host is suspended.
	MonotonicNS int64
	// BootID identifies the boot that MonotonicNS belongs to; empty if unknown. Monotonic readings
	// of different boots do not compare.
	BootID string
	// ErrorNS bounds how far an instant of this process may lie from the same instant read by
	// another process of the host, on this process's side: the error of two processes is the sum.
	// -1 if the host has no clock that processes share; MonotonicNS then counts from the wall
	// clock's 1970.
	ErrorNS int64
}

// A Clock reads instants. It never goes back and does not follow steps of the
// wall clock. A Clock is immutable: all its methods may be called from any
// goroutine, none blocks, and none but Epoch allocates.
type Clock struct {
	base   time.Time // carries Go's monotonic reading
	shift  int64     // from base to the epoch: Now is time since base plus shift
	offset int64     // the host's monotonic clock at base
	err    int64     // of offset; -1 unknown
	bubble bool      // time moves only while all goroutines sleep: testing/synctest
	fault  *fault    // of a deliberately wrong clock; nil in all others
	// counter is what Now reads while Follow lasts; nil in a bubble and for a wrong clock.
	counter *counter
}

// NewClock returns a clock whose epoch is now. It takes less than a millisecond.
//
// In a testing/synctest bubble, where time stands still between sleeps, MonotonicNS counts from the
// bubble's 1970, so that clocks created there agree exactly.
func NewClock() *Clock {
	c := &Clock{base: time.Now()}
	o := compare(c.sinceBase, hostMonotonic)
	if o.shared {
		c.offset, c.err, c.counter = o.ns, o.err, new(counter)
		return c
	}
	// Either the host has no shared clock, or ours is that of a bubble. Two clocks can then at best
	// agree on the wall clock.
	c.offset, c.err, c.bubble = c.base.UnixNano(), o.err, o.still
	return c
}

// At returns the same clock counting from another epoch, given on the host's monotonic clock: that
// of another process of this host, or one in the future at which all start. Its error is the error
// of c.
func (c *Clock) At(monotonicNS int64) *Clock {
	d := *c
	d.shift = c.offset - monotonicNS
	return &d
}

// Now returns the nanoseconds since the epoch, negative before it. It costs one reading of the
// monotonic clock: without a system call if the host's clock allows that; less while Follow lasts.
func (c *Clock) Now() int64 {
	if c.counter != nil {
		if l := c.counter.line.Load(); l != nil {
			if d := ticksOrdered() - l.at; d < l.life {
				return l.value(d) + c.shift
			}
		}
	}
	return c.monotonicNow()
}

// NowUnordered is Now for an instant at which something begins. While Follow lasts it costs half of
// it, as the processor may read its counter before instructions that precede the call have completed:
// behind loads that miss every cache, by microseconds. So the instant is never too late, and what is
// counted from it never too short. Nothing may be counted to it.
func (c *Clock) NowUnordered() int64 {
	if c.counter != nil {
		if l := c.counter.line.Load(); l != nil {
			if d := ticksUnordered() - l.at; d < l.life {
				return l.value(d) + c.shift
			}
		}
	}
	return c.monotonicNow()
}

// monotonicNow is Now by the monotonic clock.
func (c *Clock) monotonicNow() int64 {
	if c.fault != nil {
		return c.wrongNow()
	}
	return c.sinceBase() + c.shift
}

// Wall reads the host's wall clock, which a time daemon steers; do not measure durations with it.
func (c *Clock) Wall() time.Time {
	if c.fault != nil {
		return time.Now().Add(c.fault.wall)
	}
	return time.Now()
}

// Monotonic reads the host's monotonic clock, ns.
func (c *Clock) Monotonic() int64 { return c.Epoch().MonotonicNS + c.Now() }

// WallAhead returns how far the wall clock, in ns since 1970, is ahead of the host's
// monotonic clock, to within bound.
func (c *Clock) WallAhead() (ns, bound int64) {
	before := c.Monotonic()
	wall := c.Wall().UnixNano()
	half := (c.Monotonic() - before) / 2
	return wall - before - half, half + 1
}

// ClockID identifies the monotonic clock of this process: processes with the same ID read the same
// clock. It is "" if the host does not report its boot.
func ClockID() string {
	boot := BootID()
	if boot == "" {
		return ""
	}
	namespace, _ := os.Readlink("/proc/self/ns/time") // "" before Linux 5.6, which has only one
	return boot + namespace
}

// Epoch returns the epoch from which Now counts.
func (c *Clock) Epoch() Epoch {
	return Epoch{
		Wall:        c.base.Add(time.Duration(-c.shift)).Round(0).UTC(), // Round strips the monotonic reading
		MonotonicNS: c.offset - c.shift,
		BootID:      c.bootID(),
		ErrorNS:     c.err,
	}
}

func (c *Clock) sinceBase() int64 { return int64(time.Since(c.base)) }

// monotonic returns the instant t on the host's true monotonic clock, by which the kernel sleeps,
// saturated at its limits.
func (c *Clock) monotonic(t int64) int64 {
	if c.fault != nil {
		return c.trueMonotonic(t)
	}
	epoch := c.offset - c.shift
	if epoch > 0 && t > math.MaxInt64-epoch {
		return math.MaxInt64
	}
	return t + epoch
}

// An offset is a host clock's reading minus ours.
type offset struct {
	ns     int64
	err    int64 // bound of ns; -1 unknown
	shared bool  // ns may be used between processes
	still  bool  // ours did not move while the host's did
}

// compare brackets readings of a host clock between two of ours. A host reading h between a and b
// puts the offset in [h-b, h-a]. If both clocks run at one rate, as two views of the same clock do,
// it lies in all of those intervals, and their intersection is tighter than the best of them. If
// the intersection is empty, the clocks run at different rates, and the narrowest bracket is the
// best estimate.
func compare(ours func() int64, host func() (int64, bool)) offset {
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	best := offset{err: math.MaxInt64, shared: true}
	var oursFirst, oursLast, hostFirst, hostLast int64
	for i := range readings {
		a := ours()
		h, ok := host()
		b := ours()
		if !ok {
			return offset{err: -1}
		}
		if i == 0 {
			oursFirst, hostFirst = a, h
		}
		oursLast, hostLast = b, h
		lo, hi = max(lo, h-b), min(hi, h-a)
		if half := (b - a + 1) / 2; half < best.err {
			best.ns, best.err = h-b+(b-a)/2, half
		}
	}
	if oursLast == oursFirst && hostLast != hostFirst {
		return offset{still: true}
	}
	if lo <= hi {
		best.ns, best.err = lo+(hi-lo)/2, (hi-lo+1)/2
	}
	return best
}
