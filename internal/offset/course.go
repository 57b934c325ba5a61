package offset

import (
	"math"
	"slices"
)

// A Line is a stretch of time over which one straight line tells the offset.
type Line struct {
	// From and To are the agent's instants of the first and the last exchange
	// that the line rests on.
	From int64 `json:"from_ns"`
	To   int64 `json:"to_ns"`
	// Offset is the offset at From, in ns; DriftPPB is by how many ns a second it
	// grows.
	Offset   int64   `json:"offset_ns"`
	DriftPPB float64 `json:"drift_ppb"`
	// Bound is how far the true offset may lie from the line anywhere in [From,
	// To], in ns; DriftBoundPPB is by how many ns a second that grows before and
	// after.
	Bound         int64   `json:"bound_ns"`
	DriftBoundPPB float64 `json:"drift_bound_ppb"`
	// Wander is the part of Bound that is there because no clock keeps to a line,
	// in ns: what is assumed of any for the time, and twice what the exchanges
	// showed beyond that.
	Wander int64 `json:"wander_ns"`
}

// At returns the offset at an agent's instant, and how far the true one may lie
// from it: Bound within the line's time, more outside.
func (l Line) At(t int64) (offset, bound int64) {
	offset = satAdd(l.Offset, round(l.DriftPPB*seconds(l.From, t)))
	outside := max(seconds(t, l.From), seconds(l.To, t), 0)
	return offset, satAdd(l.Bound, ceil((l.DriftBoundPPB+WanderRate*1e9)*outside))
}

// A Step is where the agent's clock left one line and took to another: it was
// set, the coordinator's was, or the rate of either changed, and then By is
// small.
type Step struct {
	// At is the middle of the time within which it happened, on the agent's
	// clock, and Uncertain half of that time, in ns.
	At        int64 `json:"at_ns"`
	Uncertain int64 `json:"uncertain_ns"`
	// By is how much larger the offset is by the line after than by the one
	// before, both at At, in ns: less than zero where the agent's clock jumped
	// ahead.
	By int64 `json:"by_ns"`
}

// A Course is how the offset went over a run: one line, or several with a step
// between each two.
type Course struct {
	Lines []Line `json:"lines"`
	Steps []Step `json:"steps,omitempty"`
}

// At returns the offset at an agent's instant and how far the true one may lie
// from it. Where it is not known whether a step had been taken yet, the bound
// includes the step. Before the first exchange and after the last the bound
// grows; a step there is not known. A course without lines has no offset: it
// gives 0 and the largest bound there is.
func (c Course) At(t int64) (offset, bound int64) {
	if len(c.Lines) == 0 {
		return 0, math.MaxInt64
	}
	i := 0
	for i < len(c.Steps) && c.Steps[i].At <= t {
		i++
	}
	offset, own := c.Lines[i].At(t)
	bound = own
	perhaps := func(s Step, l Line) { // l is the line on the other side of s
		if max(t-s.At, s.At-t) <= s.Uncertain {
			o, b := l.At(t)
			bound = max(bound, satAdd(max(own, b), max(o-offset, offset-o)))
		}
	}
	if i > 0 {
		perhaps(c.Steps[i-1], c.Lines[i-1])
	}
	if i < len(c.Steps) {
		perhaps(c.Steps[i], c.Lines[i+1])
	}
	return offset, bound
}

// Bound is the largest bound of At between the first exchange and the last.
func (c Course) Bound() int64 {
	if len(c.Lines) == 0 {
		return math.MaxInt64
	}
	worst := int64(0)
	for _, l := range c.Lines {
		worst = max(worst, l.Bound)
	}
	// Within the time of a step the bound is convex, hence largest at an end, but
	// for the rounding of both offsets.
	for _, s := range c.Steps {
		for _, t := range []int64{s.At - s.Uncertain, s.At + s.Uncertain} {
			_, b := c.At(t)
			worst = max(worst, satAdd(b, 2*rounding))
		}
	}
	return worst
}

// fit finds the course of exchanges in the order of time. There is at least one.
//
// Where not all allow one line, they are split: each piece as long as it can be.
// From the front that gives the latest time at which each step can have been, as
// exchanges with wide limits after it may suit both lines; from the back the
// earliest. Only what lies between, and so belongs to one line for certain, is
// what the line is made of. Where nothing does, as steps come faster than the
// exchanges can tell, it is what the front gives.
func fit(es []Exchange) Course {
	most := wander(es[len(es)-1].T4-es[0].T1) + float64(MaxWander)
	var r region
	starts := split(es, &r, most)
	if len(starts) == 1 {
		return Course{Lines: []Line{line(es, &r, most)}}
	}
	ends := splitBack(es, &r, most)
	var c Course
	var last Exchange // of the line before
	for i, start := range starts {
		end := len(es)
		if i+1 < len(starts) {
			end = starts[i+1]
			// The same number of pieces comes out both ways, but for rounding.
			if len(ends) == len(starts) && ends[i] > start {
				end = ends[i]
			}
		}
		l := line(es[start:end], &r, most)
		if i > 0 {
			at := last.T1 + (es[start].T4-last.T1)/2
			before, _ := c.Lines[i-1].At(at)
			after, _ := l.At(at)
			c.Steps = append(c.Steps, Step{At: at, Uncertain: es[start].T4 - at, By: satAdd(after, -before)})
		}
		c.Lines = append(c.Lines, l)
		last = es[end-1]
	}
	return c
}

// split returns the indices at which pieces begin, each piece as long as it can
// be from the front.
func split(es []Exchange, r *region, slack float64) []int {
	starts := []int{0}
	r.begin(es[0], slack)
	for i, e := range es[1:] {
		if !r.add(e, slack) {
			starts = append(starts, i+1)
			r.begin(e, slack)
		}
	}
	return starts
}

// splitBack returns the indices at which pieces end, each piece as long as it can
// be from the back.
func splitBack(es []Exchange, r *region, slack float64) []int {
	ends := []int{len(es)}
	r.begin(es[len(es)-1], slack)
	for i := len(es) - 2; i >= 0; i-- {
		if !r.add(es[i], slack) {
			ends = append(ends, i+1)
			r.begin(es[i], slack)
		}
	}
	slices.Reverse(ends)
	return ends
}

// line makes the line of exchanges that are known to allow one with a slack of `most`. It
// goes through the middle of what is possible at both ends, which is the line with the
// least largest error there. In between the possible offsets form a convex shape, so that
// the largest error of all is at an end.
func line(es []Exchange, r *region, most float64) Line {
	first, last := es[0], es[len(es)-1]
	slack, ok := r.settle(es, most)
	if !ok {
		// Only rounding could bring this about. The first exchange always has a line.
		r.begin(first, most)
		slack = most
	}
	return r.line(first.T1, last.T4, slack)
}

// line is the line through the middle of the region at two instants. Where they
// are so close that its drift says nothing, it has the middle of the drifts that
// are possible, for what is before and after.
func (r *region) line(from, to int64, slack float64) Line {
	dt := seconds(from, to)
	lo0, hi0 := r.span(from)
	lo1, hi1 := r.span(to)
	at0, at1 := (lo0+hi0)/2, (lo1+hi1)/2
	bound := max(hi0-lo0, hi1-lo1) / 2
	slowest, fastest := r.drifts()
	drift := (slowest + fastest) / 2
	start := (at0+at1)/2 - drift*dt/2
	end := start + drift*dt
	if worst := max(hi0-start, start-lo0, hi1-end, end-lo1); worst <= 1.01*bound {
		bound = worst
	} else {
		start, drift = at0, min(max((at1-at0)/dt, slowest), fastest) // but for rounding it is between them
	}
	return Line{
		From:          from,
		To:            to,
		Offset:        satAdd(r.y0, round(start)),
		DriftPPB:      drift,
		Bound:         ceil(bound+slack) + rounding, // the offset is rounded, too
		DriftBoundPPB: max(fastest-drift, drift-slowest),
		Wander:        ceil(slack),
	}
}

// seconds is the time from one instant to another; instants of centuries away
// are taken to be nearer.
func seconds(from, to int64) float64 {
	clamp := func(t int64) int64 { return min(max(t, -farthest), farthest) }
	return float64(clamp(to)-clamp(from)) / 1e9
}

func round(x float64) int64 { return int64(math.Round(min(max(x, -farthest), farthest))) }

func ceil(x float64) int64 { return int64(math.Ceil(min(max(x, -farthest), farthest))) }

// satAdd is a+b, or the end of what an int64 holds that the sum lies beyond.
func satAdd(a, b int64) int64 {
	switch s := a + b; {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	default:
		return s
	}
}
