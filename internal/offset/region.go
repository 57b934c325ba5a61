package offset

import "math"

// A region is the set of all lines, offset over time, within the limits of some exchanges.
//
// A line has two parameters, drift and offset at time 0, and thus is a point in a plane. Each limit is
// a line in that plane with the allowed lines on one side, so that the region is a convex polygon, and
// is stored as one: a new limit cuts off a corner. That is exact and needs no iteration, and the
// extremes of anything linear, such as the offset at an instant, are at corners. After an hour a
// region has about fifteen corners, and one limit in twenty-five has cut it.
//
// Time is in seconds and the offset in nanoseconds, both relative to the first exchange, so that a
// float64 is exact to far below a nanosecond.
type region struct {
	t0, y0  int64
	corners []corner
	spare   []corner // buffer for the next cut
}

// A corner is the line y = c + s x.
type corner struct {
	s float64 // ns per second
	c float64 // ns
}

// steepest is MaxDrift in ns per second.
const steepest = MaxDrift * 1e9

// begin makes r the region of one exchange, with its limits widened by slack on either side.
func (r *region) begin(e Exchange, slack float64) {
	lo, hi := e.Limits()
	r.t0, r.y0 = e.T1, lo
	top := float64(hi-lo) + slack + rounding
	bottom := -slack - rounding - steepest*r.x(e.T4)
	r.corners = append(r.corners[:0], corner{-steepest, bottom}, corner{steepest, bottom}, corner{steepest, top}, corner{-steepest, top})
	r.add(e, slack) // never empty: Check rejects what no drift explains
}

// add narrows r to the lines within the limits of e as well, and reports whether any are left. If none
// are, r must be begun again.
func (r *region) add(e Exchange, slack float64) bool {
	lo, hi := e.Limits()
	return r.narrow(r.x(e.T1), float64(hi-r.y0)+slack+rounding, 1) &&
		r.narrow(r.x(e.T4), float64(lo-r.y0)-slack-rounding, -1)
}

// narrow cuts r to the lines below y at x (side 1) or above it (side -1), and reports whether any are
// left. If none are, r is unchanged.
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

// cut appends to dst the part of a polygon on the given side of a line, by walking around it
// (Sutherland and Hodgman).
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

// x converts an instant to the region's seconds.
func (r *region) x(t int64) float64 {
	return float64(min(max(t, -farthest), farthest)-r.t0) / 1e9
}

// span returns the lowest and the highest offset, relative to y0, of the region's lines at an instant.
func (r *region) span(t int64) (lo, hi float64) {
	x := r.x(t)
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range r.corners {
		y := p.c + p.s*x
		lo, hi = min(lo, y), max(hi, y)
	}
	return lo, hi
}

// drifts returns the lowest and the highest drift of the region's lines, in ns per second.
func (r *region) drifts() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range r.corners {
		lo, hi = min(lo, p.s), max(hi, p.s)
	}
	return lo, hi
}

// fill makes r the region of all exchanges and reports whether it is non-empty.
func (r *region) fill(es []Exchange, slack float64) bool {
	r.begin(es[0], slack)
	for _, e := range es[1:] {
		if !r.add(e, slack) {
			return false
		}
	}
	return true
}

// settle fills r with the smallest slack for which the exchanges allow a line, and returns how far the
// clock is taken to have wandered from that line; false if even `most` is too little.
//
// If the limits allow a line for a clock that wanders as little as any does in that time, the slack is
// that wander. Otherwise the clock was seen to leave every line by some minimum beyond it. As it will
// have gone further than is visible between limits that have a width, twice that minimum is assumed.
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

// wander returns how far, in ns, a clock strays from the nearest straight line over a time if only its
// own rate changes, by WanderRate in total. The worst case is half the time at one rate and half at
// the other: an angle whose height is an eighth of the whole change on either side of the line through
// its middle. It is at most MaxWander: clocks are held to that over more than 400 s, and one that
// exceeds it gets a course of several lines.
func wander(ns int64) float64 {
	return min(float64(MaxWander), WanderRate/8*float64(ns))
}
