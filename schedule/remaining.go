package schedule

import (
	"errors"
	"math/bits"
	"sort"
)

// Remaining returns how many messages of part p are due before t, starting at the message with the
// given index, which is due at due and need not be of the part. Remaining(p, 0, 0, t) counts from
// the run's start. It takes some hundred nanoseconds, regardless of the count. It is exact except
// for random arrival, where an exact count would have to draw every gap: there it is the rate
// integrated between due and t, from which the true number differs by chance. It panics where Due
// does.
func (s *Schedule) Remaining(p Part, index uint64, due, t int64) uint64 {
	p.check()
	if p.Index >= s.spec.Producers {
		return 0
	}
	st := newStride(s.spec.Producers, p)
	switch s.spec.Arrival.Kind {
	case Trace:
		trace := s.spec.Arrival.Trace
		return st.between(index, uint64(sort.Search(len(trace), func(i int) bool { return trace[i] >= t })))
	case Constant:
		return st.between(index, s.indexAt(t))
	}
	n := s.indexAt(t)
	n -= min(n, s.indexAt(due))
	if s.limit != noLimit {
		if left := s.limit - min(index, s.limit); t >= s.end || n > left {
			n = left
		}
	}
	own, _ := product(n, st.below(st.producers)).over(st.producers)
	return own
}

// check panics if p is not a valid part.
func (p Part) check() {
	if p.Count < 1 || p.Index < 0 || p.Index >= p.Count {
		panic(errors.New("schedule: a part with an Index outside [0, Count)"))
	}
}

// indexAt returns the index of the first message due at t or later, that is, how many are due
// before, over all parts. With random arrival it is computed from the rate.
func (s *Schedule) indexAt(t int64) uint64 {
	if len(s.segments) == 0 || t <= 0 {
		return 0
	}
	n := sort.Search(len(s.segments), func(i int) bool { return t <= s.segments[i].end })
	if n == len(s.segments) { // t lies after the last segment
		n, t = n-1, s.segments[n-1].end
	}
	return s.segments[n].indexAt(t)
}

// indexAt is the schedule's, of an instant in (start, end].
func (g *segment) indexAt(t int64) uint64 {
	ns := uint64(t - g.start)
	if g.burst > 0 {
		return min(g.first+((ns-1)/uint64(g.every)+1)*g.burst, g.last)
	}
	var flow u128
	if g.from == g.to {
		flow = product(2*uint64(g.from), ns)
	} else {
		flow = g.rampFlow(ns).overUp(uint64(g.end - g.start))
	}
	// Instants are rounded down, so message j is due before t if the flow that it needs, a whole
	// number, is less than the flow at t.
	return min(max(g.level.plus(flow).overUp(perMessage)+g.bursted, g.first), g.last)
}

// below returns how many indices below n the part has.
func (s *stride) below(n uint64) uint64 {
	turns, rest := n/s.producers, n%s.producers
	own := turns * ((s.last-s.first)/s.count + 1)
	if rest > s.first {
		own += (min(rest-1, s.last)-s.first)/s.count + 1
	}
	return own
}

// between returns how many indices of the part are at least low and below high.
func (s *stride) between(low, high uint64) uint64 {
	return s.below(max(low, high)) - s.below(low)
}

// overUp returns a/d, rounded up. The quotient must fit in 128 bits.
func (a u192) overUp(d uint64) u128 {
	hi, rem := bits.Div64(a.hi, a.mid, d)
	lo, rem := bits.Div64(rem, a.lo, d)
	q := u128{hi, lo}
	if rem != 0 {
		q = q.plus(u128{0, 1})
	}
	return q
}
