package schedule

import (
	"math"
)

// perMessage is the flow of one message. The flow is the integral of the rate over the run so far,
// in halves of a Rate times a nanosecond: one message is 3.6e18 wholes, and with halves the flow of
// a ramp, (from+to)/2 times its length, is an integer too. 78 h at MaxRate are 2^111.
const perMessage = 2 * uint64(MaxRate)

// A segment is a stretch of the run with one law for the rate: the warm-up or a phase.
type segment struct {
	start, end int64  // ns since the run's start, [start, end)
	from, to   Rate   // equal: a step
	burst      uint64 // above 0: bursts
	every      int64

	level    u128 // flow at start
	levelEnd u128 // flow at end; bursts do not change it
	bursted  uint64
	rate2    divisor // steps: by twice the rate, what flows in 1 ns

	// For constant arrival only: the indices of the segment's messages, [first, last). Flow message
	// j has index j+bursted, where bursted is the number of burst messages before the segment.
	first, last uint64
}

// segmentOf returns the segment of a phase that begins at start, given the flow and the burst
// messages so far.
func segmentOf(p Phase, start, length int64, level u128, bursted uint64) segment {
	g := segment{
		start: start, end: start + length,
		from: p.From, to: p.To, burst: p.Burst, every: int64(p.Every),
		level: level, levelEnd: level, bursted: bursted,
	}
	g.first = level.overUp(perMessage) + bursted
	if g.burst > 0 {
		g.last = g.first + g.bursts()*g.burst
		return g
	}
	if p.From > 0 {
		g.rate2 = newDivisor(2 * uint64(p.From))
	}
	g.levelEnd = level.plus(product(uint64(p.From)+uint64(p.To), uint64(length)))
	// Message j is in the segment when its exact instant is before the end, so
	// when j*perMessage < levelEnd.
	g.last = g.levelEnd.overUp(perMessage) + bursted
	return g
}

// bursts is the number of bursts in a segment of bursts.
func (g *segment) bursts() uint64 {
	return uint64(g.end-g.start-1)/uint64(g.every) + 1
}

// burstsAfter is the number of burst messages before the segment that follows.
func (g *segment) burstsAfter() uint64 {
	if g.burst == 0 {
		return g.bursted
	}
	return g.bursted + g.bursts()*g.burst
}

// target returns how much must have flowed since the segment's start for the message of this index
// to be due; constant arrival.
func (g *segment) target(index uint64) u128 {
	return product(index-g.bursted, perMessage).minus(g.level)
}

// invert returns the instant, rounded down, at which target has flowed since the segment's start.
// The segment must be a step or a ramp, and target below its total flow.
func (g *segment) invert(target u128) int64 {
	if g.from == g.to {
		return g.start + int64(g.rate2.divide(target))
	}
	return g.start + g.invertRamp(target)
}

// invertRamp returns the greatest t with flow(t) <= target. The flow of a ramp of length D after t
// ns is 2*from*t + (to-from)*t*t/D. The floating-point guess may differ between machines; it only
// determines where the exact search begins.
func (g *segment) invertRamp(target u128) int64 {
	d := uint64(g.end - g.start)
	want := target.times(d)
	reached := func(t int64) bool { return g.rampFlow(uint64(t)).atMost(want) }

	t := g.guess(target)
	low, high := int64(0), int64(d) // reached(low), !reached(high)
	if reached(t) {
		low = t
		for step := int64(1); low+step < high; step *= 2 {
			if !reached(low + step) {
				high = low + step
				break
			}
			low += step
		}
	} else {
		high = t
		for step := int64(1); high-step > low; step *= 2 {
			if reached(high - step) {
				low = high - step
				break
			}
			high -= step
		}
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		if reached(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// rampFlow returns D times the flow of the ramp after t ns of its D.
func (g *segment) rampFlow(t uint64) u192 {
	base := product(2*uint64(g.from), uint64(g.end-g.start))
	if g.to > g.from {
		base = base.plus(product(uint64(g.to-g.from), t))
	} else {
		base = base.minus(product(uint64(g.from-g.to), t))
	}
	return base.times(t)
}

// guess solves the ramp's quadratic equation in floating point, in the form that avoids
// cancellation for a rising ramp.
func (g *segment) guess(target u128) int64 {
	d := float64(g.end - g.start)
	from, to := float64(g.from), float64(g.to)
	c := float64(target.hi)*0x1p64 + float64(target.lo)
	if c == 0 { // the ramp may begin with a rate of 0
		return 0
	}
	t := c / (from + math.Sqrt(max(0, from*from+(to-from)*c/d)))
	return int64(min(max(t, 0), d))
}

// rate returns the intended rate at t, which lies in the segment.
func (g *segment) rate(t int64) Rate {
	if g.burst > 0 {
		q, _ := product(g.burst, uint64(MaxRate)).over(uint64(g.every))
		return Rate(q)
	}
	d := uint64(g.end - g.start)
	if g.to >= g.from {
		q, _ := product(uint64(g.to-g.from), uint64(t-g.start)).over(d)
		return g.from + Rate(q)
	}
	q, _ := product(uint64(g.from-g.to), uint64(t-g.start)).over(d)
	return g.from - Rate(q)
}
