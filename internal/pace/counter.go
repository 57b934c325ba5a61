package pace

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// How a counter follows the monotonic clock.
const (
	comparePeriod = 100 * time.Millisecond
	// lineLife is how long a line is used at most. It outlasts a follower that wakes late; on a host
	// that holds it up for longer, readings come from the monotonic clock.
	lineLife = 400 * time.Millisecond
	// driftLimit is the difference in ns at which the counter is given up. A time daemon that slews
	// the clock by 5 ppm stays below it, one that slews by 10 does not.
	driftLimit = 1000
	// coarse is the half bracket in ns beyond which a comparison says too little.
	coarse = 250
	// brackets is how many readings a comparison takes: together some 2 us.
	brackets = 32
	// remember is over how many comparisons the rate is measured: a few ns of error in each make some
	// 20 ppb, and a change of rate is followed within 0.3 s.
	remember = 4 // comparisons
)

// A line converts readings of the processor's counter to ns since a clock's base. Lines are
// immutable.
type line struct {
	at   uint64 // ticks at which it begins
	life uint64 // ticks for which it holds
	ns   int64  // since the base, at its beginning
	rate uint64 // ns per tick, times 1<<32; lineLife times that does not overflow
}

// value returns the ns at d ticks from the line's beginning.
func (l *line) value(d uint64) int64 { return l.ns + int64(d*l.rate>>32) }

// A comparison is one bracketed reading of the monotonic clock between two of the counter.
type comparison struct {
	ticks uint64 // the middle of the bracket
	half  uint64 // half of the bracket, ticks
	ns    int64  // since the base
}

// A counter is the processor's counter used as a clock, while a Follower compares it with the
// monotonic clock. Clocks made by At share the one of their original.
type counter struct {
	line     atomic.Pointer[line] // nil: read the monotonic clock
	followed atomic.Bool
}

// A follower keeps a counter in step with the monotonic clock: piecewise linear and continuous, a new
// line every comparePeriod. It is used by one goroutine.
//
// Readings of one goroutine, and of several that synchronize, decrease by no more than twice the
// bound, and only where the counter is taken into use or given up, or where one of them was held up
// between the two steps of a reading across the beginning of a new line.
type follower struct {
	lines []*line      // that a reader may still use; the last is the current one
	past  []comparison // the last ones, for the rate
	bound int64        // ns: largest difference between a line in use and the monotonic clock, bracket included
	lost  string       // why the counter was given up
}

// next takes a comparison, and returns the line to use from then on; nil: none yet, or the counter
// has been given up.
func (f *follower) next(c comparison) *line {
	if f.lost != "" {
		return nil
	}
	if len(f.past) == 0 {
		f.past = append(f.past, c)
		return nil
	}
	from := f.past[0]
	if int64(c.ticks-from.ticks) <= 0 || c.ns <= from.ns {
		f.lost = "the counter or CLOCK_MONOTONIC did not advance"
		return nil
	}
	rate := float64(c.ns-from.ns) / float64(c.ticks-from.ticks) // ns per tick
	half := int64(math.Ceil(float64(c.half) * rate))
	if half > coarse {
		if n := len(f.lines); n > 0 {
			return f.lines[n-1]
		}
		return nil
	}
	start, ahead := c.ns, int64(0)
	kept := f.lines[:0]
	for _, l := range f.lines {
		d := c.ticks - l.at
		if d >= l.life {
			continue
		}
		kept = append(kept, l)
		start = l.value(d)
		ahead = start - c.ns
		apart := max(ahead, -ahead)
		f.bound = max(f.bound, apart+half)
		if apart-half > driftLimit {
			f.lost = fmt.Sprintf("the counter and CLOCK_MONOTONIC were %v apart", time.Duration(apart))
			return nil
		}
	}
	f.lines = kept
	f.bound = max(f.bound, half)
	if len(f.past) == remember {
		f.past = append(f.past[:0], f.past[1:]...)
	}
	f.past = append(f.past, c)
	// The new line begins where the current one is, and meets the monotonic clock two periods later.
	rate *= 1 - float64(ahead)/float64(2*comparePeriod)
	l := &line{at: c.ticks, life: uint64(float64(lineLife) / rate), ns: start, rate: uint64(math.Round(rate * (1 << 32)))}
	f.lines = append(f.lines, l)
	return l
}

// compareCounter returns the tightest of some bracketed readings.
func (c *Clock) compareCounter() comparison {
	best := comparison{half: math.MaxUint64}
	for range brackets {
		a := ticksOrdered()
		ns := int64(time.Since(c.base))
		b := ticksOrdered()
		if half := (b - a + 1) / 2; half < best.half {
			best = comparison{ticks: a + (b-a)/2, half: half, ns: ns}
		}
	}
	return best
}

// A Followed describes how instants were read.
type Followed struct {
	// Counter is what was read instead of the monotonic clock, from 0.1 s after the call of Follow:
	// "tsc" or "cntvct"; "" for none.
	Counter string
	// BoundNS is the largest difference seen between an instant by the counter and the monotonic
	// clock, with the error of the comparison.
	BoundNS int64
	// Lost is why the counter was given up in favour of the monotonic clock; "": it was not.
	Lost string
}

// Follow makes this clock, and those made from it by At, read the processor's counter where the
// kernel does the same for CLOCK_MONOTONIC: a goroutine compares both ten times a second. stop ends
// that; readings are those of the monotonic clock again. lost is called once if the counter is given
// up before. A second call while a first lasts follows nothing, and its stop does nothing.
func (c *Clock) Follow(lost func(why string)) (stop func() Followed) {
	name := counterName()
	if c.counter == nil || name == "" || c.counter.followed.Swap(true) {
		return func() Followed { return Followed{} }
	}
	var f follower
	leave, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		tick := time.NewTicker(comparePeriod)
		defer tick.Stop()
		for {
			c.counter.line.Store(f.next(c.compareCounter()))
			if f.lost != "" {
				lost(f.lost)
				return
			}
			select {
			case <-tick.C:
			case <-leave:
				return
			}
		}
	}()
	return sync.OnceValue(func() Followed {
		close(leave)
		<-left
		c.counter.line.Store(nil)
		c.counter.followed.Store(false)
		if len(f.lines) == 0 && f.lost == "" {
			return Followed{}
		}
		return Followed{Counter: name, BoundNS: f.bound, Lost: f.lost}
	})
}
