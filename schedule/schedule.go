// Package schedule computes when messages are due, and everything that follows from a seed and a
// message's index: its producer, size and key, and the batches and destinations of a producer. It
// never reads a clock: a Schedule is a pure function of its Spec, fixed before the run begins, and
// the same on every machine and in every process that computes a part of it.
//
// Instants are nanoseconds since the run's start: a message is due at its exact instant rounded
// down, however long the run, and the fraction of a message at the end of a phase is carried into
// the next. No instant depends on floating point, except for the gaps of gamma arrival, where every
// rounding is explicit.
//
// With constant and Poisson arrival a message costs a few nanoseconds and no allocation. With
// constant arrival a part strides over the others' messages; with random arrival every part draws
// the same sequence of gaps and keeps its own messages, so that the run does not depend on the
// number of parts.
package schedule

import (
	"iter"
	"sort"
	"time"
)

// A Schedule is built from a Spec by New. It is immutable; its methods may be called by any
// goroutine, allocate nothing unless they say so, and never block.
type Schedule struct {
	spec     Spec
	segments []segment // in order, without gaps, from 0; none: closed loop or trace
	end      int64
	limit    uint64 // random arrival: no message from this index on
	gamma    *gamma // nil except for Gamma

	gaps, owners, batches, sizes, keys stream

	sizeTable []uint64 // running sums of the weights
	maxSize   int
	zipf      *zipf
}

// noLimit is the limit of a schedule that its last phase ends.
const noLimit = ^uint64(0)

// New builds a Schedule. It returns every error in the Spec, joined, each naming the field. With
// Messages and random arrival it draws all gaps to find the end, which takes some 30 ns a message
// (gamma: 130 to 200); otherwise it is fast.
func New(spec Spec) (*Schedule, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	s := build(spec)
	if err := s.findEnd(); err != nil {
		return nil, err
	}
	return s, nil
}

// build builds the schedule of a valid Spec, without the end if Messages determines it.
func build(spec Spec) *Schedule {
	seed := stream(spec.Seed)
	s := &Schedule{
		spec:    spec,
		limit:   noLimit,
		gaps:    seed.split(0),
		owners:  seed.split(1),
		batches: seed.split(2),
		sizes:   seed.split(3),
		keys:    seed.split(4),
	}
	if spec.Arrival.Kind == Gamma {
		s.gamma = newGamma(spec.Arrival.CV)
	}
	s.makeSizes()
	if spec.Keys.Kind == ZipfKeys {
		s.zipf = newZipf(int(spec.Keys.N), spec.Keys.S)
	}
	s.end = int64(spec.WarmUp)
	if len(spec.Phases) > 0 && spec.WarmUp > 0 {
		first := spec.Phases[0]
		first.To = first.From
		s.end = 0
		s.append(first, spec.WarmUp)
	}
	if spec.Messages > 0 {
		return s
	}
	for _, p := range spec.Phases {
		s.append(p, p.For)
	}
	if t := spec.Arrival.Trace; len(t) > 0 {
		s.end = t[len(t)-1] + 1
	}
	return s
}

// append adds a phase at the end.
func (s *Schedule) append(p Phase, length time.Duration) {
	level, bursted := u128{}, uint64(0)
	if n := len(s.segments); n > 0 {
		level, bursted = s.segments[n-1].levelEnd, s.segments[n-1].burstsAfter()
	}
	s.segments = append(s.segments, segmentOf(p, s.end, int64(length), level, bursted))
	s.end += int64(length)
}

// findEnd adds the phase that lasts for Messages messages, if there is one.
func (s *Schedule) findEnd() error {
	n := s.spec.Messages
	if n == 0 {
		return nil
	}
	p := s.spec.Phases[0]
	var f faults
	f.add("Messages: %d messages at %v last longer than a run may: %s", n, p.From, tooLong)
	errTooLong := f[0]
	if s.spec.Arrival.Kind == Constant {
		// n messages take n/rate, rounded up. The window holds them all: the
		// last is due before the exact instant n/rate after the warm-up, since
		// less than one message is left over from it.
		flow := product(n, perMessage)
		if flow.hi >= 2*uint64(p.From) {
			return errTooLong
		}
		length := flow.overUp(2 * uint64(p.From))
		if length > uint64(maxInstant-s.end) {
			return errTooLong
		}
		s.append(p, time.Duration(length))
		// The next one may be due within the same nanosecond.
		last := &s.segments[len(s.segments)-1]
		last.last = last.first + n
		return nil
	}
	warm := s.end
	s.append(p, time.Duration(maxInstant-warm))
	for i, due := range s.random(Part{0, 1}) {
		if due < warm {
			continue
		}
		if n--; n == 0 {
			s.limit, s.end = i+1, due+1
			g := &s.segments[len(s.segments)-1]
			g.end = s.end
			return nil
		}
	}
	return errTooLong
}

// WarmUp returns the start of the measured window.
func (s *Schedule) WarmUp() int64 { return int64(s.spec.WarmUp) }

// End returns the end of the measured window, [WarmUp, End): every due instant is before it. It is
// the end of the last phase; with Messages and constant arrival that many messages' time after the
// warm-up, rounded up; with Messages and random arrival, and for a trace, 1 ns after the last due
// instant; for a closed loop, which has no end of its own, WarmUp.
func (s *Schedule) End() int64 { return s.end }

// Rate returns the intended rate at t, rounded down to a Rate: of bursts their
// average, of a trace its average from 0 to End. It is 0 outside [0, End) and
// for a closed loop.
func (s *Schedule) Rate(t int64) Rate {
	if t < 0 || t >= s.end {
		return 0
	}
	if n := uint64(len(s.spec.Arrival.Trace)); n > 0 {
		flow := product(n, uint64(MaxRate))
		if flow.hi >= uint64(s.end) {
			return ^Rate(0)
		}
		q, _ := flow.over(uint64(s.end))
		return Rate(q)
	}
	i := sort.Search(len(s.segments), func(i int) bool { return t < s.segments[i].end })
	if i == len(s.segments) {
		return 0
	}
	return s.segments[i].rate(t)
}

// Due yields the global index and the due instant of every message of part p, in order of both.
// Parts are disjoint, and their union is the same for every Count. Each call starts over, with a
// few allocations; a message allocates nothing. It panics if p is not a valid part (Count below 1,
// or Index not in [0, Count)).
func (s *Schedule) Due(p Part) iter.Seq2[uint64, int64] {
	p.check()
	switch {
	case s.spec.Arrival.Kind == Trace:
		return s.trace(p)
	case len(s.segments) == 0:
		return func(func(uint64, int64) bool) {}
	case s.spec.Arrival.Kind == Constant:
		return s.constant(p, 0)
	}
	return s.random(p)
}
