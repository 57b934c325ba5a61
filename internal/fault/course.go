package fault

import (
	"math"
	"slices"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A Course is how a run went, in parts of equal length, for what followed a fault. The
// zero value is ready. One goroutine at a time uses it.
type Course struct {
	parts []part
	step  int // intervals in each part; 0 stands for 1
	held  int // intervals in the last one
}

// A part is some time of the run.
type part struct {
	from, to                    int64 // ns since the epoch
	sent, confirmed, failed, in uint64
	p99, worst                  int64 // of what was delivered first, or confirmed where nothing is received; -1: nothing was
}

// mostParts bounds a Course: an hour at ten parts a second. After that two become one.
const mostParts = 36_000

// Add takes what is new of the run, in the order of time. closed is that of a closed
// loop, which has service times only.
func (c *Course) Add(iv *measure.Interval, closed bool) {
	e2e, send := measure.E2EResponse, measure.SendResponse
	if closed {
		e2e, send = measure.E2EService, measure.SendService
	}
	p := part{from: iv.From, to: iv.To}
	for _, n := range iv.Counters {
		p.sent += n.Sent
		p.confirmed += n.Confirmed
		p.failed += n.Failed
		p.in += n.Received
	}
	if p.p99, p.worst = tail(iv, e2e); p.p99 < 0 {
		p.p99, p.worst = tail(iv, send)
	}
	step := max(c.step, 1)
	if n := len(c.parts); c.held > 0 && c.held < step && n > 0 {
		c.parts[n-1] = join(c.parts[n-1], p)
	} else {
		if n == mostParts {
			c.halve()
			step = c.step
		}
		c.parts = append(c.parts, p)
		c.held = 0
	}
	if c.held++; c.held >= step {
		c.held = 0
	}
}

// tail returns the 99th percentile and the maximum of a kind over both phases, -1 of
// none. Of few samples the percentile is the maximum.
func tail(iv *measure.Interval, k measure.Kind) (p99, worst int64) {
	var all measure.Counts
	one := &all
	switch a, b := &iv.Kinds[k][measure.WarmUp], &iv.Kinds[k][measure.Measure]; {
	case a.Total() == 0:
		one = b
	case b.Total() == 0:
		one = a
	default:
		all.Merge(a)
		all.Merge(b)
	}
	if one.Total() == 0 {
		return -1, -1
	}
	return one.Percentile(99), one.Max()
}

func join(a, b part) part {
	return part{a.from, b.to, a.sent + b.sent, a.confirmed + b.confirmed, a.failed + b.failed, a.in + b.in, max(a.p99, b.p99), max(a.worst, b.worst)}
}

// halve makes one part of every two.
func (c *Course) halve() {
	for i := 0; i+1 < len(c.parts); i += 2 {
		c.parts[i/2] = join(c.parts[i], c.parts[i+1])
	}
	c.parts = c.parts[:len(c.parts)/2]
	c.step = 2 * max(c.step, 1)
}

// Effects completes faults, which are in order of time, with what followed each: until
// the next that began, or the end of the measured window. from and to are that window's,
// since the epoch; what is delivered later, until the run ended, is the last fault's, too. A
// failure counts for one fault.
func (c *Course) Effects(faults []result.Fault, from, to, ended int64) {
	var calm []part // before the first
	counted := int64(math.MinInt64)
	for i := range faults {
		f := &faults[i]
		if len(f.Processes) == 0 {
			continue // it did not happen
		}
		began := earliest(f)
		if counted == math.MinInt64 {
			calm = c.calm(from, began)
		}
		until, late, last := to, ended, true
		for j := range faults[i+1:] {
			if later := &faults[i+1+j]; len(later.Processes) > 0 && later.BeganNS > f.BeganNS {
				until = min(until, earliest(later))
				late, last = until, false
				break
			}
		}
		f.Effect = c.effect(calm, began, until, late)
		for _, p := range c.between(began, late) {
			// A step counts once, for the first fault that began in it, or else for the latest before.
			if p.from < counted || !last && p.to > late && p.from > began {
				continue
			}
			counted = p.to
			failed(f.Effect, p)
		}
	}
}

// failed adds the failures of a step.
func failed(e *result.FaultEffect, p part) {
	if p.failed == 0 {
		return
	}
	if e.Failed += p.failed; e.Failing == nil {
		e.Failing = &result.Span{FromNS: p.from}
	}
	e.Failing.ToNS = p.to
}

// earliest is when a fault began at the earliest, as far as the clock of who did it is known.
func earliest(f *result.Fault) int64 {
	if f.BoundNS == nil {
		return f.BeganNS
	}
	return f.BeganNS - *f.BoundNS
}

// settle is what is left out at the beginning of a run without a warm-up before its first
// fault: connections are fresh then.
const settle = int64(1e9)

// calm returns the parts of the measured window before the first fault, or those of the
// warm-up, too, where that is too short.
func (c *Course) calm(from, first int64) []part {
	const few = 5
	if parts := c.between(from, first); len(parts) >= few {
		return parts[:len(parts)-1] // the last may reach into the fault
	}
	parts := c.between(settle, first)
	return parts[:max(0, len(parts)-1)]
}

// effect is what happened from a fault on, until an instant, beside how it was before.
func (c *Course) effect(calm []part, from, until, late int64) *result.FaultEffect {
	parts, all := c.between(from, until), c.between(from, late)
	e := &result.FaultEffect{UntilNS: until}
	if len(parts) == 0 {
		return e
	}
	e.StepNS = parts[0].to - parts[0].from
	confirmed := func(p part) uint64 { return p.confirmed }
	received := func(p part) uint64 { return p.in }
	e.Unconfirmed = longer(quiet(parts, confirmed), quiet(calm, confirmed))
	e.Undelivered = longer(quiet(parts, received), quiet(calm, received))
	for _, p := range all {
		if p.worst >= 0 && (e.WorstNS == nil || p.worst > *e.WorstNS) {
			e.WorstNS = &p.worst
		}
	}
	band, known := bandOf(calm)
	if !known {
		return e
	}
	e.BandNS = &band
	back := int64(-1)
	for _, p := range parts {
		switch {
		case p.p99 < 0 || p.p99 > band || p.failed > 0: // what failed is in no percentile
			back = -1
		case back < 0:
			back = p.from
		}
	}
	if back >= 0 {
		back = max(0, back-from)
		e.BackNS = &back
	}
	return e
}

// bandOf is what the 99th percentile of a part may be to count as it was: twice the
// median of those before, or the greatest of them where that is more.
func bandOf(calm []part) (int64, bool) {
	var all []int64
	for _, p := range calm {
		if p.p99 >= 0 {
			all = append(all, p.p99)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return max(2*all[len(all)/2], all[len(all)-1]), true
}

// quiet returns the longest time in which nothing is counted; nil where there is none.
func quiet(parts []part, count func(part) uint64) *result.Span {
	var most, open *result.Span
	for _, p := range parts {
		if count(p) > 0 {
			open = nil
			continue
		}
		if open == nil {
			open = &result.Span{FromNS: p.from}
		}
		open.ToNS = p.to
		if most == nil || open.ToNS-open.FromNS >= most.ToNS-most.FromNS {
			most = open
		}
	}
	return most
}

// longer returns a where it is more than twice as long as such a time was before.
func longer(a, before *result.Span) *result.Span {
	if a == nil || before != nil && a.ToNS-a.FromNS <= 2*(before.ToNS-before.FromNS) {
		return nil
	}
	return a
}

// between returns the parts that end after from and begin before to.
func (c *Course) between(from, to int64) []part {
	lo, _ := slices.BinarySearchFunc(c.parts, from, func(p part, at int64) int {
		if p.to <= at {
			return -1
		}
		return 1
	})
	hi, _ := slices.BinarySearchFunc(c.parts, to, func(p part, at int64) int {
		if p.from < at {
			return -1
		}
		return 1
	})
	return c.parts[lo:max(lo, hi)]
}
