package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// ErrFormat is wrapped by the errors of UnmarshalBinary, if bytes are not a part's, and of
// AppendBinary, if a part has figures beyond the range of the form.
var ErrFormat = errors.New("not a part of a ledger")

// The form of a part, version 2. All numbers are unsigned varints in their shortest form; those
// that may be negative are folded (0, -1, 1, -2, ...). The form is canonical.
//
//	version, streams of the run, subscriptions
//	messages closed of unknown fate, closed books (2), groups of the closed fates
//	streams sent, each: how many the number is above the one expected next, flags,
//	  sent, what the flags announce, last point, sets
//	each subscription: counts (2), foreign, closed books (2), groups of the damaged
//	  and of the unknown, last,
//	  streams received, each like a stream sent
//
// A book is 0 if it is empty. A set's spans are their number, then each the distance from the end
// of the one before and its length less one. A point is the distance of its due from the one
// before, and that of its start from its due.
const formatVersion = 2

// The bounds of the form.
const (
	maxSequence = 1 << 48 // of heads
	maxCount    = 1 << 50
	maxInstant  = 1 << 56 // ns, either side of the epoch
)

// partPoints is how many timeline points the form of a part has, over all its streams, but at least
// leastPoints of each stream.
const (
	partPoints  = 1 << 13
	leastPoints = 2
)

// pointsEach returns the number of points in the form for each of n streams.
func pointsEach(n int) int { return max(leastPoints, partPoints/max(n, 1)) }

// Flags of a stream sent, and of one received.
const (
	hasMeasured = 1 << iota
	hasUnsettled
	hasClosed
	hasUnconfirmed
	hasHoles
	hasFailed
	hasPoints
	hasFirst
	allOfSent = hasFirst - 1

	hasFloor     = hasClosed
	hasCorrupted = hasFailed
	allOfGot     = hasMeasured | hasFloor | hasHoles | hasCorrupted | hasFirst
)

// AppendBinary appends the part's form to b: 15 to 30 bytes per stream sent in order, about 10 per
// stream received in order, 2 per hole that is near the next. Of the timelines it has 8192 points
// over the streams sent, but at least 2 of each; what Part says of 1024 points applies to the
// number kept here. An error is ErrFormat: a sequence above 2^48, a count above 2^50, an instant
// more than 2^56 ns from the epoch; then it returns b unchanged.
func (p *Part) AppendBinary(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.number(formatVersion, formatVersion)
	w.number(uint64(p.streams), math.MaxUint32)
	w.number(uint64(len(p.subs)), math.MaxUint32)
	w.number(p.closedUnknown, maxCount)
	w.accounts(&p.closedBooks)
	w.groups(&p.closedFates)
	w.number(uint64(len(p.sent)), math.MaxUint32)
	next, most := uint32(0), pointsEach(len(p.sent))
	w.first, w.last = 0, 0
	for i := range p.sent {
		e := &p.sent[i]
		w.number(uint64(e.stream-next), math.MaxUint32)
		next = e.stream + 1
		w.sent(p, e, most)
	}
	for i := range p.subs {
		x := &p.subs[i]
		for _, c := range x.counts {
			for _, n := range c.all() {
				w.number(*n, maxCount)
			}
		}
		w.number(x.foreign, maxCount)
		w.accounts(&x.closed)
		w.groups(&x.damaged)
		w.groups(&x.unknown)
		w.instant(x.last, 0)
		w.number(uint64(len(x.got)), math.MaxUint32)
		next = 0
		w.last = 0
		for k := range x.got {
			e := &x.got[k]
			w.number(uint64(e.stream-next), math.MaxUint32)
			next = e.stream + 1
			w.got(p, e)
		}
	}
	if w.beyond {
		return b, fmt.Errorf("%w: a figure is beyond what its form has room for", ErrFormat)
	}
	return w.b, nil
}

// A writer encodes the form of a part.
type writer struct {
	b      []byte
	beyond bool // something is out of bounds

	first, last int64 // the first and the last due of the previous stream
}

func (w *writer) number(n, most uint64) {
	if n > most {
		w.beyond = true
	}
	w.b = binary.AppendUvarint(w.b, n)
}

// instant writes t as its distance from another.
func (w *writer) instant(t, from int64) {
	if t > maxInstant || t < -maxInstant {
		w.beyond = true
	}
	w.b = binary.AppendVarint(w.b, t-from)
}

// signed writes a message count that may be negative.
func (w *writer) signed(n int64) {
	if n > maxSequence || n < -maxSequence {
		w.beyond = true
	}
	w.b = binary.AppendVarint(w.b, n)
}

func (w *writer) point(p point, from int64) {
	w.instant(p.due, from)
	w.instant(p.start, p.due)
}

func (w *writer) sent(p *Part, e *sentPart, most int) {
	points := p.points[e.points.from:e.points.to]
	by := stride(len(points), most)
	flags := uint64(0)
	for _, has := range []struct {
		flag uint64
		is   bool
	}{
		{hasMeasured, e.measuredFrom != math.MaxUint64},
		{hasUnsettled, e.head != e.sent},
		{hasClosed, e.closed > 0},
		{hasUnconfirmed, e.unconfirmed > 0},
		{hasHoles, e.holes.from < e.holes.to},
		{hasFailed, e.failed.from < e.failed.to},
		{hasPoints, len(points) > 0}, // at least one is kept
	} {
		if has.is {
			flags |= has.flag
		}
	}
	w.number(flags, allOfSent)
	w.number(e.sent, maxSequence)
	if flags&hasMeasured != 0 {
		w.number(e.measuredFrom, maxSequence)
	}
	if flags&hasUnsettled != 0 {
		w.number(e.sent-e.head, maxSequence)
	}
	if flags&hasClosed != 0 {
		w.number(e.closed, maxSequence)
	}
	if flags&hasUnconfirmed != 0 {
		w.number(e.unconfirmed, maxSequence)
	}
	w.point(e.last, w.last)
	w.last = e.last.due
	if flags&hasHoles != 0 {
		w.spans(p.spans[e.holes.from:e.holes.to], e.closed)
	}
	if flags&hasFailed != 0 {
		w.spans(p.spans[e.failed.from:e.failed.to], e.closed)
	}
	if flags&hasPoints != 0 {
		w.number(uint64(bits.TrailingZeros64(e.step*uint64(by))), 63)
		w.number(uint64(len(points)/by), math.MaxUint32)
		before := w.first
		w.first = points[by-1].due
		for k := by - 1; k < len(points); k += by {
			w.point(points[k], before)
			before = points[k].due
		}
	}
}

func (w *writer) got(p *Part, e *gotPart) {
	flags := uint64(0)
	for _, has := range []struct {
		flag uint64
		is   bool
	}{
		{hasMeasured, e.measured != math.MaxUint64},
		{hasFloor, e.floor > 0},
		{hasHoles, e.holes.from < e.holes.to},
		{hasCorrupted, e.corrupted.from < e.corrupted.to},
		{hasFirst, e.first != p.members(e)},
	} {
		if has.is {
			flags |= has.flag
		}
	}
	w.number(flags, allOfGot)
	w.number(e.head, maxSequence)
	if flags&hasMeasured != 0 {
		w.number(e.head-1-e.measured, maxSequence)
	}
	if flags&hasFloor != 0 {
		w.number(e.floor, maxSequence)
		w.instant(e.since, 0)
	}
	w.point(e.newest, w.last)
	w.last = e.newest.due
	if flags&hasHoles != 0 {
		w.spans(p.spans[e.holes.from:e.holes.to], e.floor)
	}
	if flags&hasCorrupted != 0 {
		w.spans(p.spans[e.corrupted.from:e.corrupted.to], e.floor)
	}
	if flags&hasFirst != 0 {
		for _, n := range e.first {
			w.signed(n.good)
			w.signed(n.corrupted)
		}
	}
}

// members returns how many messages are in the set of what arrived, which nearly always equals the
// number of arrivals.
func (p *Part) members(e *gotPart) (n arrivals) {
	count := func(x span, corrupted bool, times int64) {
		early := min(x.hi, max(x.lo, e.measured)) - x.lo
		n.count(warmUp, corrupted, times*int64(early))
		n.count(measured, corrupted, times*int64(x.hi-x.lo-early))
	}
	count(span{0, e.head}, false, 1)
	for _, x := range p.spans[e.holes.from:e.holes.to] {
		count(x, false, -1)
	}
	for _, x := range p.spans[e.corrupted.from:e.corrupted.to] {
		count(x, false, -1)
		count(x, true, 1)
	}
	return n
}

// spans writes spans that begin at or after end.
func (w *writer) spans(all []span, end uint64) {
	w.number(uint64(len(all)), math.MaxUint32)
	for _, x := range all {
		w.number(x.lo-end, maxSequence)
		w.number(x.hi-x.lo-1, maxSequence)
		end = x.hi
	}
}

// books writes what the bound closed.
func (w *writer) accounts(by *[2]Book) {
	for phase := range by {
		b := &by[phase]
		if *b == (Book{}) {
			w.number(0, 0)
			continue
		}
		w.number(1, 1)
		for _, n := range b.closed() {
			w.number(*n, maxCount)
		}
	}
}

// closed returns the figures of a closed book from which the others follow.
func (b *Book) closed() []*uint64 {
	return []*uint64{
		&b.Confirmed, &b.Failed, &b.Unconfirmed, &b.Delivered, &b.Corrupted,
		&b.FailedDelivered, &b.UnconfirmedDelivered, &b.CorruptedUnconfirmed, &b.Evicted,
	}
}

func (w *writer) groups(g *groups) {
	for fate := range g {
		for _, list := range g[fate] {
			w.number(uint64(len(list)), maxGroups)
			before := int64(0)
			for _, x := range list {
				w.number(x.n, maxCount)
				w.point(point{x.due, x.start}, before)
				before = x.due
			}
		}
	}
}
