package offset

import "math"

// A region is the set of all lines, offset over time, that keep within the
// limits of some exchanges.
//
// A line is two numbers, drift and offset at time 0, hence a point of a plane.
// Each limit is a line of that plane with the allowed lines on one side, so that
// the region is a convex polygon, and it is kept as such: a new limit cuts a
// corner off. That is exact, needs no iteration, and the extremes of anything
// linear, such as the offset at an instant, lie at corners. After an hour a region
// has some fifteen, and one limit of twenty-five cut it.
//
// Time is in seconds and the offset in nanoseconds, both from the first
// exchange, so that a float64 is exact to far below a nanosecond.
type region struct {
	t0, y0  int64
	corners []corner
	spare   []corner // what the next cut is made into
}

// A corner is the line y = c + s x.
type corner struct {
	s float64 // ns a second
	c float64 // ns
}

// steepest is MaxDrift in ns a second.
const steepest = MaxDrift * 1e9

// begin makes r the region of one exchange. Its limits are taken to be wider by slack on
// either side.
func (r *region) begin(e Exchange, slack float64) {
	lo, hi := e.Limits()
	r.t0, r.y0 = e.T1, lo
	top := float64(hi-lo) + slack + rounding
	bottom := -slack - rounding - steepest*r.x(e.T4)
	r.corners = append(r.corners[:0], corner{-steepest, bottom}, corner{steepest, bottom}, corner{steepest, top}, corner{-steepest, top})
	r.add(e, slack) // leaves some: Check refuses what no drift explains
}

// add narrows r to the lines that keep within the limits of e as well, and says
// whether there are any. Where there are none r is to be begun again.
func (r *region) add(e Exchange, slack float64) bool {
	lo, hi := e.Limits()
	return r.narrow(r.x(e.T1), float64(hi-r.y0)+slack+rounding, 1) &&
		r.narrow(r.x(e.T4), float64(lo-r.y0)-slack-rounding, -1)
}

// narrow cuts r to the lines that are below y at x (side 1), or above it (side
// -1), and says whether there are any. Where there are none r stays as it was.
func (r *region) narrow(x, y, side float64) bool {
	for _, p := range r.corners {
		if side*(y-p.c-p.s*x) < 0 { // most limits cut nothing
			r.spare = cut(r.spare[:0], r.corners, x, y, side)
			if len(r.spare) == 0 {
				return false
			}
			r.corners, r.spare = r.spare, r.corners
			return true
		}
	}
	return true
}

// cut appends to dst what of a polygon has its lines on that side, by going
// around it (Sutherland and Hodgman).
func cut(dst, polygon []corner, x, y, side float64) []corner {
	from := polygon[len(polygon)-1]
	was := side * (y - from.c - from.s*x)
	for _, to := range polygon {
		is := side * (y - to.c - to.s*x)
		if (was < 0) != (is < 0) {
			f := was / (was - is)
			dst = append(dst, corner{from.s + f*(to.s-from.s), from.c + f*(to.c-from.c)})
		}
		if is >= 0 {
			dst = append(dst, to)
		}
		from, was = to, is
	}
	return dst
}

// x is an instant in the region's seconds.
func (r *region) x(t int64) float64 {
	return float64(min(max(t, -farthest), farthest)-r.t0) / 1e9
}

// span returns the least and the largest offset that a line of the region has at
// an instant, from y0.
func (r *region) span(t int64) (lo, hi float64) {
	x := r.x(t)
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range r.corners {
		y := p.c + p.s*x
		lo, hi = min(lo, y), max(hi, y)
	}
	return lo, hi
}

// drifts returns the least and the largest drift of the region's lines, in ns a
// second.
func (r *region) drifts() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range r.corners {
		lo, hi = min(lo, p.s), max(hi, p.s)
	}
	return lo, hi
}

// fill makes r the region of all exchanges and says whether there is one.
func (r *region) fill(es []Exchange, slack float64) bool {
	r.begin(es[0], slack)
	for _, e := range es[1:] {
		if !r.add(e, slack) {
			return false
		}
	}
	return true
}

// settle fills r with the least slack by which the exchanges allow a line, and
// returns how far the clock is taken to have wandered from it; false where even
// `most` is too little.
//
// Where the limits allow a line for a clock that wanders as little as any does
// in that time, that is the slack. Otherwise the clock was seen to leave every
// line by some least way beyond that. It will have gone further than what is
// seen between limits that have a width, and it is given twice that way.
func (r *region) settle(es []Exchange, most float64) (slack float64, ok bool) {
	assumed := wander(es[len(es)-1].T4 - es[0].T1)
	if r.fill(es, assumed) {
		return assumed, true
	}
	if !r.fill(es, most) {
		return 0, false
	}
	least, enough := assumed, most
	for enough-least > 100 { // ns
		if middle := (least + enough) / 2; r.fill(es, middle) {
			enough = middle
		} else {
			least = middle
		}
	}
	slack = assumed + 2*(enough-assumed)
	return slack, r.fill(es, slack)
}

// wander is how far, in ns, a clock keeps from the nearest straight line over a
// time when nothing but its own rate changes, by WanderRate in all. The worst is
// half the time at one rate and half at the other: an angle, an eighth of the
// whole change high on either side of the line through its middle. It is never
// more than MaxWander: over longer times than 400 s that is asked of a clock, and
// one that does not keep it gets a course of several lines.
func wander(ns int64) float64 {
	return min(float64(MaxWander), WanderRate/8*float64(ns))
}
