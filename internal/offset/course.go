package offset

import (
	"math"
	"slices"
)

// A Line is a period during which one straight line describes the offset.
type Line struct {
	// From and To are the agent's instants of the first and last exchange behind the line.
	From int64 `json:"from_ns"`
	To   int64 `json:"to_ns"`
	// Offset is the offset at From, in ns; DriftPPB is its growth in ns per second.
	Offset   int64   `json:"offset_ns"`
	DriftPPB float64 `json:"drift_ppb"`
	// Bound is how far the true offset may be from the line anywhere in [From, To], in ns; DriftBoundPPB
	// is the growth of the bound outside of it, in ns per second.
	Bound         int64   `json:"bound_ns"`
	DriftBoundPPB float64 `json:"drift_bound_ppb"`
	// Wander is the part of Bound, in ns, that allows for clocks leaving a straight line: the amount
	// assumed of any clock over that time, plus twice what the exchanges showed beyond that.
	Wander int64 `json:"wander_ns"`
}

// At returns the offset at an agent's instant, and how far the true one may be from it: Bound within
// the line's time, more outside.
func (l Line) At(t int64) (offset, bound int64) {
	offset = satAdd(l.Offset, round(l.DriftPPB*seconds(l.From, t)))
	outside := max(seconds(t, l.From), seconds(l.To, t), 0)
	return offset, satAdd(l.Bound, ceil((l.DriftBoundPPB+WanderRate*1e9)*outside))
}

// A Step is where the agent's clock changed from one line to another: it was set, the coordinator's
// was, or the rate of either changed, in which case By is small.
type Step struct {
	// At is the middle of the interval in which it happened, on the agent's clock; Uncertain is half that
	// interval, in ns.
	At        int64 `json:"at_ns"`
	Uncertain int64 `json:"uncertain_ns"`
	// By is the change of the offset from the line before to the line after, at At, in ns: negative if the
	// agent's clock jumped ahead.
	By int64 `json:"by_ns"`
}

// A Course is the offset over a run: one line, or several with a step between each pair.
type Course struct {
	Lines []Line `json:"lines"`
	Steps []Step `json:"steps,omitempty"`
}

// At returns the offset at an agent's instant and how far the true one may be from it. If a step may
// or may not have been taken yet, the bound includes the step. Before the first exchange and after the
// last the bound grows; steps there are unknown. A course without lines returns 0 and the largest
// bound.
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

// Bound returns the largest bound of At between the first and the last exchange.
func (c Course) Bound() int64 {
	if len(c.Lines) == 0 {
		return math.MaxInt64
	}
	worst := int64(0)
	for _, l := range c.Lines {
		worst = max(worst, l.Bound)
	}
	// Within a step's interval the bound is convex, so that its maximum is at an end, except for rounding.
	for _, s := range c.Steps {
		for _, t := range []int64{s.At - s.Uncertain, s.At + s.Uncertain} {
			_, b := c.At(t)
			worst = max(worst, satAdd(b, 2*rounding))
		}
	}
	return worst
}

// fit returns the course of exchanges, at least one, in order of time.
//
// If no single line fits all of them, they are split into pieces that are as long as possible.
// Splitting from the front gives the latest time at which each step can have happened, since exchanges
// with wide limits may fit both lines; splitting from the back gives the earliest. A line is made only
// of the exchanges in between, which certainly belong to it. If there are none, because steps come
// faster than the exchanges can resolve, the split from the front is used.
func fit(es []Exchange) Course {
	most := wander(es[len(es)-1].T4-es[0].T1) + float64(MaxWander)
	var r region
	starts := split(es, &r, most)
	if len(starts) == 1 {
		return Course{Lines: []Line{line(es, &r, most)}}
	}
	ends := splitBack(es, &r, most)
	var c Course
	var last Exchange // of the previous line
	for i, start := range starts {
		end := len(es)
		if i+1 < len(starts) {
			end = starts[i+1]
			// Both splits yield the same number of pieces, except for rounding.
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

// split returns the indices at which pieces start, each as long as possible from the front.
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

// splitBack returns the indices at which pieces end, each as long as possible from the back.
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

// line returns the line of exchanges that are known to allow one with a slack of `most`. It runs
// through the middle of the possible range at both ends, which minimizes the largest error there. The
// possible offsets in between form a convex shape, so that the overall largest error is at an end.
func line(es []Exchange, r *region, most float64) Line {
	first, last := es[0], es[len(es)-1]
	slack, ok := r.settle(es, most)
	if !ok {
		// Only rounding could cause this. The first exchange always has a line.
		r.begin(first, most)
		slack = most
	}
	return r.line(first.T1, last.T4, slack)
}

// line returns the line through the middle of the region at two instants. If they are too close to
// determine the drift, it uses the middle of the possible drifts, for the time before and after.
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
		start, drift = at0, min(max((at1-at0)/dt, slowest), fastest) // it is between them, except for rounding
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

// seconds returns the time between two instants; instants centuries apart are clamped.
func seconds(from, to int64) float64 {
	clamp := func(t int64) int64 { return min(max(t, -farthest), farthest) }
	return float64(clamp(to)-clamp(from)) / 1e9
}

func round(x float64) int64 { return int64(math.Round(min(max(x, -farthest), farthest))) }

func ceil(x float64) int64 { return int64(math.Ceil(min(max(x, -farthest), farthest))) }

// satAdd returns a+b, saturated to an int64.
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
