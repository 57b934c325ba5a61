package fault

import (
	"slices"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A Course records how a run went, in steps of equal length, to determine the effects of faults. The
// zero value is ready to use. It is not safe for concurrent use.
type Course struct {
	parts []part
	step  int // intervals in each step; 0 means 1
	held  int // intervals in the last step

	closed                bool
	due, sent, done       uint64 // totals so far: due, sent, and finished (acked, failed or given up)
	delivered, subscribed bool   // whether there were any
}

// A part is one step of the run.
type part struct {
	from, to                    int64 // ns since the epoch
	sent, confirmed, failed, in uint64
	p99, worst                  int64  // of first deliveries, or of confirmations if none is received; -1: none
	n                           uint64 // samples behind p99
	owed                        bool   // something was due, or neither acked nor failed
	waits                       measure.Backlog
}

// mostParts limits a Course to an hour at ten steps a second; beyond that, pairs are merged.
const mostParts = 36_000

// Add adds the next interval of the run, in order of time. closed marks a closed loop, which has
// service times only.
func (c *Course) Add(iv *measure.Interval, closed bool) {
	e2e, send := measure.E2EResponse, measure.SendResponse
	if closed {
		e2e, send = measure.E2EService, measure.SendService
	}
	p := part{from: iv.From, to: iv.To, waits: slices.Clone(iv.Backlog)}
	c.closed, c.subscribed = closed, c.subscribed || len(iv.Backlog) > 0
	p.owed = max(c.due, c.sent) > c.done
	for _, n := range iv.Counters {
		p.owed = p.owed || n.Scheduled+n.Sent > 0
		c.due += n.Scheduled
		c.sent += n.Sent
		c.done += n.Confirmed + n.Failed + n.Dropped + n.Unsent
		p.sent += n.Sent
		p.confirmed += n.Confirmed
		p.failed += n.Failed
		p.in += n.Received
	}
	if p.p99, p.worst, p.n = tail(iv, e2e); p.n > 0 {
		c.delivered = true
	} else if !c.delivered {
		p.p99, p.worst, p.n = tail(iv, send)
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

// tail returns the 99th percentile and the maximum of a kind over both phases, -1 if there are none,
// and the number of samples. With few samples the percentile is the maximum.
func tail(iv *measure.Interval, k measure.Kind) (p99, worst int64, n uint64) {
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
		return -1, -1, 0
	}
	return one.Percentile(99), one.Max(), one.Total()
}

func join(a, b part) part {
	return part{a.from, b.to, a.sent + b.sent, a.confirmed + b.confirmed, a.failed + b.failed, a.in + b.in, max(a.p99, b.p99), max(a.worst, b.worst), a.n + b.n, a.owed || b.owed, b.waits}
}

// halve merges pairs of steps.
func (c *Course) halve() {
	for i := 0; i+1 < len(c.parts); i += 2 {
		c.parts[i/2] = join(c.parts[i], c.parts[i+1])
	}
	c.parts = c.parts[:len(c.parts)/2]
	c.step = 2 * max(c.step, 1)
}

// Effects completes faults, which are in order of time, with their effects: until the next fault
// starts, or the measured window ends. from and to delimit that window, since the epoch; later
// deliveries until the end of the run belong to the last fault. A failure counts for one fault only.
// end describes what had not arrived when the run ended.
func (c *Course) Effects(faults []result.Fault, from, to, ended int64, end End) {
	var calm []part // before the first fault
	first, counted := true, 0
	for i := range faults {
		f := &faults[i]
		if len(f.Processes) == 0 {
			continue // it did not happen
		}
		began := earliest(f)
		if first {
			calm, first = c.calm(from, began), false
		}
		until, late, last := to, ended, true
		for j := range faults[i+1:] {
			if later := &faults[i+1+j]; len(later.Processes) > 0 && later.BeganNS > f.BeganNS {
				until = min(until, earliest(later))
				late, last = until, false
				break
			}
		}
		f.Effect = c.effect(calm, began, until, late, end)
		// A step counts once: for the first fault that started in it, or else for the latest one before. Steps
		// of a fleet overlap, since its agents do not read at the same instant.
		lo, hi := c.bounds(began, late)
		for counted = max(counted, lo); counted < hi; counted++ {
			p := c.parts[counted]
			if !last && p.to > late && p.from > began {
				break
			}
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

// earliest returns the earliest possible start of a fault, given the error of the clock that recorded
// it.
func earliest(f *result.Fault) int64 {
	if f.BoundNS == nil {
		return f.BeganNS
	}
	return f.BeganNS - *f.BoundNS
}

// settle is left out at the start of a run without warm-up before the first fault, while connections
// are new.
const settle = int64(1e9)

// calm returns the steps of the measured window before the first fault, including the warm-up if there
// are too few.
func (c *Course) calm(from, first int64) []part {
	const few = 5
	if parts := c.between(from, first); len(parts) >= few {
		return parts[:len(parts)-1] // the last step may overlap the fault
	}
	parts := c.between(settle, first)
	return parts[:max(0, len(parts)-1)]
}

// effect computes what happened from a fault until an instant, compared with the time before.
func (c *Course) effect(calm []part, from, until, late int64, end End) *result.FaultEffect {
	parts, all := c.between(from, until), c.between(from, late)
	e := &result.FaultEffect{UntilNS: until}
	if len(parts) == 0 {
		return e
	}
	e.StepNS = parts[0].to - parts[0].from
	confirmed := func(p part) (uint64, bool) { return p.confirmed, p.owed }
	received := func(p part) (uint64, bool) { return p.in, c.awaits(p, end) }
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
	never, dated := c.never(parts, from, until, end)
	back, stalled, seen := parts[0].from, int64(0), false
	for i, p := range parts {
		if p.n > 0 || !p.owed && !c.awaits(p, end) {
			stalled = 0
		} else {
			stalled += p.to - p.from
		}
		slow := p.p99 > band
		if n := never[i]; n > 0 {
			slow = measure.Rank(99, p.n+n) > p.n || p.worst > band
		}
		switch {
		case slow || p.failed > 0 || stalled >= band+e.StepNS: // failed messages are in no percentile
			back = -1
		case p.n > 0:
			if seen = true; back < 0 {
				back = p.from
			}
		}
	}
	switch {
	case back < 0 || !seen:
	case !dated:
		e.BandNS = nil
	default:
		back = max(0, back-from)
		e.BackNS = &back
	}
	return e
}

// An End describes what had not arrived when a run ended.
type End struct {
	Censored *[measure.NumKinds][measure.NumPhases]measure.Censored // nil: everything arrived
	Lost     []*measure.Lost                                        // by subscription
}

// awaits reports whether a delivery was due or outstanding in a step. A run that sends nothing cannot
// tell, and always reports true.
func (c *Course) awaits(p part, end End) bool {
	return c.subscribed && (p.owed || c.due+c.sent == 0 || p.waits.Net(p.to, end.Lost) > 0)
}

// never returns how many messages due in each step never arrived, of the kind with the most losses,
// and whether that is known for all of them.
func (c *Course) never(parts []part, from, until int64, end End) (never []uint64, dated bool) {
	never, dated = make([]uint64, len(parts)), true
	kinds := []measure.Kind{measure.E2EResponse, measure.SendResponse, measure.RTTResponse}
	if c.closed {
		kinds = []measure.Kind{measure.E2EService, measure.SendService, measure.RTTService}
	}
	if end.Censored == nil {
		return never, dated
	}
	for _, k := range kinds {
		of := make([]uint64, len(parts))
		for p := range end.Censored[k] {
			x := &end.Censored[k][p]
			dated = dated && x.Dated()
			for at, n := range x.Cells() {
				if at.To <= from || at.From >= until {
					continue
				}
				last := min(at.To, until) - 1
				i, _ := slices.BinarySearchFunc(parts, last, func(p part, at int64) int {
					if p.to <= at {
						return -1
					}
					return 1
				})
				of[min(i, len(of)-1)] += n
			}
		}
		for i, n := range of {
			never[i] = max(never[i], n)
		}
	}
	return never, dated
}

// bandOf returns the highest 99th percentile that counts as normal: twice the median of the steps
// before, or their maximum if that is more.
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

// quiet returns the longest span in which nothing was counted although something was due; nil if there
// is none. Steps in which nothing was due neither start nor end it.
func quiet(parts []part, count func(part) (n uint64, due bool)) *result.Span {
	var most, open *result.Span
	for i, p := range parts {
		n, due := count(p)
		if n > 0 {
			open = nil
			continue
		}
		if last := i == len(parts)-1; !due && (open == nil || !last) {
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

// longer returns a if it is more than twice as long as the corresponding span before.
func longer(a, before *result.Span) *result.Span {
	if a == nil || before != nil && a.ToNS-a.FromNS <= 2*(before.ToNS-before.FromNS) {
		return nil
	}
	return a
}

// between returns the steps that end after from and start before to.
func (c *Course) between(from, to int64) []part {
	lo, hi := c.bounds(from, to)
	return c.parts[lo:hi]
}

// bounds returns the first step of between, and the one after the last.
func (c *Course) bounds(from, to int64) (lo, hi int) {
	lo, _ = slices.BinarySearchFunc(c.parts, from, func(p part, at int64) int {
		if p.to <= at {
			return -1
		}
		return 1
	})
	hi, _ = slices.BinarySearchFunc(c.parts, to, func(p part, at int64) int {
		if p.from < at {
			return -1
		}
		return 1
	})
	return lo, max(lo, hi)
}
