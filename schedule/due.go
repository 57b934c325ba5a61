package schedule

import (
	"iter"
	"math/bits"
)

// A stride enumerates the indices of a part when producers take turns: those i for which i %
// producers belongs to the part.
type stride struct {
	producers   uint64
	first, last uint64 // lowest and highest producer of the part
	count       uint64 // from one producer of the part to the next
	wrap        uint64 // from the last producer to the first of the next turn
	empty       bool   // the part has no producer
}

func newStride(producers int, p Part) stride {
	n, k, c := uint64(producers), uint64(p.Index), uint64(p.Count)
	if k >= n {
		return stride{empty: true}
	}
	last := k + (n-1-k)/c*c
	return stride{producers: n, first: k, last: last, count: c, wrap: n - last + k}
}

// from returns the first index of the part that is at least i, and its producer.
func (s *stride) from(i uint64) (index, producer uint64) {
	turn, at := i-i%s.producers, i%s.producers
	switch {
	case at <= s.first:
		return turn + s.first, s.first
	case at > s.last:
		return turn + s.producers + s.first, s.first
	}
	producer = s.first + (at-s.first+s.count-1)/s.count*s.count
	return turn + producer, producer
}

// next returns the index that follows the producer's index i, and its producer.
func (s *stride) next(i, producer uint64) (uint64, uint64) {
	if producer == s.last {
		return i + s.wrap, s.first
	}
	return i + s.count, producer + s.count
}

// trace yields a trace's instants.
func (s *Schedule) trace(p Part) iter.Seq2[uint64, int64] {
	return func(yield func(uint64, int64) bool) {
		st, due := newStride(s.spec.Producers, p), s.spec.Arrival.Trace
		if st.empty {
			return
		}
		for i, q := st.from(0); i < uint64(len(due)); i, q = st.next(i, q) {
			if !yield(i, due[i]) {
				return
			}
		}
	}
}

// constant yields the messages of constant arrival from index begin on.
func (s *Schedule) constant(p Part, begin uint64) iter.Seq2[uint64, int64] {
	return func(yield func(uint64, int64) bool) {
		st := newStride(s.spec.Producers, p)
		if st.empty {
			return
		}
		i, q := st.from(begin)
		for n := range s.segments {
			g := &s.segments[n]
			if i >= g.last {
				continue
			}
			ok := false
			switch {
			case g.burst > 0:
				i, q, ok = g.yieldBursts(&st, i, q, yield)
			case g.from == g.to:
				i, q, ok = g.yieldStep(&st, i, q, yield)
			default:
				i, q, ok = g.yieldRamp(&st, i, q, yield)
			}
			if !ok {
				return
			}
		}
	}
}

// yieldStep carries the remainder of the division by the rate from message to message, so that only
// the first costs a division.
func (g *segment) yieldStep(st *stride, i, q uint64, yield func(uint64, int64) bool) (uint64, uint64, bool) {
	rate := 2 * uint64(g.from)
	ns, rem := g.target(i).over(rate)
	due := g.start + int64(ns)
	stepNS, stepRem := gap(st.count, rate)
	wrapNS, wrapRem := gap(st.wrap, rate)
	if st.count == st.wrap {
		for i < g.last {
			if !yield(i, due) {
				return i, q, false
			}
			i += st.count
			due, rem = carry(due+stepNS, rem+stepRem, rate)
		}
		return i, i % st.producers, true
	}
	for i < g.last {
		if !yield(i, due) {
			return i, q, false
		}
		if q != st.last {
			due, rem = carry(due+stepNS, rem+stepRem, rate)
		} else {
			due, rem = carry(due+wrapNS, rem+wrapRem, rate)
		}
		i, q = st.next(i, q)
	}
	return i, q, true
}

// carry turns a remainder of once the rate into a nanosecond. The remainder is
// the sum of two below 2^63, so that it did not overflow. There is no branch: it
// would be as unpredictable as the remainders.
func carry(due int64, rem, rate uint64) (int64, uint64) {
	less, borrow := bits.Sub64(rem, rate, 0)
	return due + int64(1-borrow), less + rate&-borrow
}

// gap returns how long n messages take, and the remainder. If that is 2^64 ns or more, the next
// message lies beyond every segment, and its instant is not used.
func gap(n, rate uint64) (int64, uint64) {
	flow := product(n, perMessage)
	if flow.hi >= rate {
		return 0, 0
	}
	ns, rem := flow.over(rate)
	return int64(ns), rem
}

func (g *segment) yieldRamp(st *stride, i, q uint64, yield func(uint64, int64) bool) (uint64, uint64, bool) {
	for ; i < g.last; i, q = st.next(i, q) {
		if !yield(i, g.invert(g.target(i))) {
			return i, q, false
		}
	}
	return i, q, true
}

func (g *segment) yieldBursts(st *stride, i, q uint64, yield func(uint64, int64) bool) (uint64, uint64, bool) {
	for i < g.last {
		n := (i - g.first) / g.burst
		due, end := g.start+int64(n)*g.every, g.first+(n+1)*g.burst
		for ; i < end; i, q = st.next(i, q) {
			if !yield(i, due) {
				return i, q, false
			}
		}
	}
	return i, q, true
}

// random yields the messages of random arrival: flow message j is due when the
// flow reaches the sum of the first j+1 gaps. Each part draws every gap, and
// divides only for its own messages.
func (s *Schedule) random(p Part) iter.Seq2[uint64, int64] {
	// Parts beyond the number of producers draw nothing.
	index, count := uint32(p.Index), uint32(min(p.Count, s.spec.Producers))
	// x % count == index, by a multiplication: Lemire, Kaser, Kurz, "Faster
	// remainder by direct computation" (2019), exact for 32 bits.
	inverse := ^uint64(0)/uint64(count) + 1
	return func(yield func(uint64, int64) bool) {
		if p.Index >= s.spec.Producers {
			return
		}
		mine := func(i uint64) bool {
			return count == 1 || uint32(below(inverse*uint64(s.owner(i)), uint64(count))) == index
		}
		var i, j uint64 // index, and number of the flow message
		flow := s.gap(0)
		for n := range s.segments {
			g := &s.segments[n]
			for b := uint64(0); g.burst > 0 && b < g.bursts(); b++ {
				for end := i + g.burst; i < end; i++ {
					if mine(i) && !yield(i, g.start+int64(b)*g.every) {
						return
					}
				}
			}
			for flow.below(g.levelEnd) {
				if mine(i) && !yield(i, g.invert(flow.minus(g.level))) {
					return
				}
				i++
				if i >= s.limit {
					return
				}
				j++
				flow = flow.plus(s.gap(j))
			}
		}
	}
}

// gap returns the gap before flow message j of random arrival.
func (s *Schedule) gap(j uint64) u128 {
	if s.gamma != nil {
		return s.gamma.gap(s.gaps.split(j))
	}
	return exponential(s.gaps.at(j))
}
