package ledger

import (
	"fmt"
	"math"

	"github.com/weirmq/weir/internal/varint"
)

// UnmarshalBinary sets p to the part that all of b encodes. It allocates at most 128 bytes per byte
// of b, whatever size b claims for the run; sizes beyond p.Limits, which stay, are rejected. It
// keeps nothing of b. An error is ErrFormat, with the cause and the byte offset; p is empty then.
// It accepts only what AppendBinary writes: encoding the result yields the same bytes.
func (p *Part) UnmarshalBinary(b []byte) error {
	p.clear()
	r := reader{Reader: varint.NewReader(b)}
	r.part(p)
	if r.Left() > 0 {
		r.Fail("there is more behind the end")
	}
	if err := r.Err(); err != nil {
		p.clear()
		return fmt.Errorf("%w: byte %d: %w", ErrFormat, r.At(), err)
	}
	return nil
}

// A reader decodes the form of a part.
type reader struct {
	varint.Reader

	first, last int64 // as in writer
}

// check fails unless ok.
func (r *reader) check(ok bool, what string) {
	if !ok {
		r.Fail("%s", what)
	}
}

// number reads a number up to most.
func (r *reader) number(most uint64) uint64 {
	n := r.Uint()
	if n > most {
		r.Fail("a number is out of its range")
		return 0
	}
	return n
}

// positive is number for a value that is only written if it is not 0.
func (r *reader) positive(most uint64) uint64 {
	n := r.number(most)
	r.check(n > 0, "what is announced is 0")
	return n
}

// length reads how many items follow, each of at least that many bytes.
func (r *reader) length(most, bytes int) int {
	n := r.number(uint64(max(most, 0)))
	if n > uint64(r.Left()/bytes) {
		r.Fail("it ends too early")
		return 0
	}
	return int(n)
}

// signed reads a message count that may be negative.
func (r *reader) signed() int64 {
	n := r.Int()
	r.check(n <= maxSequence && n >= -maxSequence, "a number is out of its range")
	return n
}

// instant reads what the writer's instant wrote.
func (r *reader) instant(from int64) int64 {
	t := from + r.Int() // from is small: an overflow is out of range
	if t > maxInstant || t < -maxInstant {
		r.Fail("an instant is out of its range")
		return 0
	}
	return t
}

func (r *reader) point(from int64) (p point) {
	p.due = r.instant(from)
	p.start = r.instant(p.due)
	return p
}

func (r *reader) part(p *Part) {
	if r.Uint() != formatVersion {
		r.Fail("it is not of version 2")
	}
	p.streams = int(r.positive(uint64(max(p.Limits.Streams, 0))))
	subs := r.length(p.Limits.Subscriptions, 1)
	p.closedUnknown = r.number(maxCount)
	r.accounts(&p.closedBooks)
	r.groups(&p.closedFates)
	for phase, b := range p.closedBooks {
		g := &p.closedFates
		r.check(b.Missing == b.Confirmed && g.messages(FateConfirmed, phase) == 0 && g.messages(FateFailed, phase) == b.Failed &&
			g.messages(FateUnconfirmed, phase) == b.Unconfirmed, "the closed groups are not of the closed messages")
	}
	var closed uint64 // messages
	next, n := uint64(0), r.length(p.streams, 5)
	most := pointsEach(n)
	for range n {
		e := sentPart{stream: r.stream(p, &next)}
		r.sent(p, &e, most)
		closed += e.closed
		r.check(closed <= 6*maxCount, "a number is out of its range")
		if r.Err() != nil {
			return
		}
		p.sent = append(p.sent, e)
	}
	r.check(closed == p.closedBooks[warmUp].Sent+p.closedBooks[measured].Sent, "the closed books are not of the closed messages")
	for range subs {
		if r.Err() != nil {
			return
		}
		r.sub(p, p.sub())
	}
}

// stream reads which stream comes next.
func (r *reader) stream(p *Part, next *uint64) uint32 {
	i := *next + r.number(math.MaxUint32)
	r.check(i < uint64(p.streams), "a stream is not of the run")
	*next = i + 1
	return uint32(i)
}

func (r *reader) sent(p *Part, e *sentPart, most int) {
	flags := r.number(allOfSent)
	e.sent = r.positive(maxSequence)
	e.measuredFrom = math.MaxUint64
	if flags&hasMeasured != 0 {
		e.measuredFrom = r.number(maxSequence)
	}
	e.head = e.sent
	if flags&hasUnsettled != 0 {
		e.head -= r.positive(e.sent)
	}
	if flags&hasClosed != 0 {
		e.closed = r.positive(e.head)
	}
	if flags&hasUnconfirmed != 0 {
		e.unconfirmed = r.positive(e.head)
	}
	e.last = r.point(r.last)
	r.last = e.last.due
	var open, failed uint64
	if flags&hasHoles != 0 {
		e.holes, open = r.spans(p, e.closed, e.head)
		r.check(open == 0 || p.spans[e.holes.to-1].hi < e.head, "a head is not settled")
	}
	if flags&hasFailed != 0 {
		e.failed, failed = r.spans(p, e.closed, e.head)
	}
	r.apart(p, e.holes, e.failed)
	// For closed messages, the unconfirmed are not known by stream.
	known := open + failed
	r.check(known <= e.unconfirmed && e.unconfirmed-known <= e.closed, "the unconfirmed are not those of the sets")
	e.step = 1
	if flags&hasPoints == 0 {
		return
	}
	log := r.number(48)
	e.step <<= log
	n := r.length(most, 2)
	r.check(n > 0, "what is announced is 0")
	r.check(uint64(n) <= e.sent>>log, "a timeline is longer than its stream")
	from, before := len(p.points), point{r.first, math.MinInt64}
	for i := range n {
		x := r.point(before.due)
		r.check((i == 0 || x.due >= before.due) && x.start >= before.start, "a timeline goes backwards")
		if i == 0 {
			r.first = x.due
		}
		if r.Err() != nil {
			return
		}
		p.points, before = append(p.points, x), x
	}
	r.check(before.due <= e.last.due && before.start <= e.last.start, "a timeline goes beyond its end")
	e.points = window{from, len(p.points)}
}

func (r *reader) got(p *Part, e *gotPart) {
	flags := r.number(allOfGot)
	r.check(flags&^allOfGot == 0, "an unknown flag is set")
	e.head = r.positive(maxSequence)
	e.measured = math.MaxUint64
	if flags&hasMeasured != 0 {
		e.measured = e.head - 1 - r.number(max(e.head, 1)-1)
	}
	if flags&hasFloor != 0 {
		e.floor = r.positive(e.head)
		e.since = r.instant(0)
	}
	e.newest = r.point(r.last)
	r.last = e.newest.due
	if flags&hasHoles != 0 {
		e.holes, _ = r.spans(p, e.floor, e.head)
		r.check(r.Err() != nil || p.spans[e.holes.to-1].hi < e.head, "a head is not in its set")
	}
	if flags&hasCorrupted != 0 {
		e.corrupted, _ = r.spans(p, e.floor, e.head)
	}
	r.apart(p, e.holes, e.corrupted)
	if r.Err() != nil {
		return
	}
	members := p.members(e)
	e.first = members
	if flags&hasFirst != 0 {
		for phase := range e.first {
			e.first[phase].good, e.first[phase].corrupted = r.signed(), r.signed()
		}
		r.check(e.first != members, "what is announced is as expected")
	}
}

// spans reads at least one span, all of them between end and limit, and returns how many sequences
// they contain.
func (r *reader) spans(p *Part, end, limit uint64) (w window, in uint64) {
	n := r.length(math.MaxInt, 2)
	r.check(n > 0, "what is announced is 0")
	w.from = len(p.spans)
	for i := range n {
		gap := r.number(maxSequence)
		r.check(i == 0 || gap > 0, "two spans touch")
		lo := end + gap
		end = lo + 1 + r.number(maxSequence)
		r.check(end <= limit, "a span is beyond the head of its set")
		if r.Err() != nil {
			return window{}, 0
		}
		p.spans = append(p.spans, span{lo, end})
		in += end - lo
	}
	w.to = len(p.spans)
	return w, in
}

// apart fails if two sets have a sequence in common.
func (r *reader) apart(p *Part, a, b window) {
	for a.from < a.to && b.from < b.to {
		switch x, y := p.spans[a.from], p.spans[b.from]; {
		case x.hi <= y.lo:
			a.from++
		case y.hi <= x.lo:
			b.from++
		default:
			r.Fail("two sets have a sequence in common")
			return
		}
	}
}

func (r *reader) sub(p *Part, x *subPart) {
	for phase := range x.counts {
		for _, n := range x.counts[phase].all() {
			*n = r.number(maxCount)
		}
	}
	x.foreign = r.number(maxCount)
	r.accounts(&x.closed)
	for phase := range x.closed {
		a, b := &x.closed[phase], &p.closedBooks[phase]
		a.Missing, a.Unknown = 0, a.Missing
		r.check(a.Confirmed == b.Confirmed && a.Failed == b.Failed && a.Unconfirmed == b.Unconfirmed, "a closed book is not of the closed messages")
	}
	r.groups(&x.damaged)
	r.groups(&x.unknown)
	for phase, b := range x.closed {
		g := &x.damaged
		r.check(g.messages(FateConfirmed, phase) == b.Corrupted &&
			g.messages(FateFailed, phase)+g.messages(FateUnconfirmed, phase) == b.CorruptedUnconfirmed,
			"the closed groups are not of the closed messages")
		g = &x.unknown
		r.check(g.messages(FateConfirmed, phase) <= b.Evicted && g.messages(FateFailed, phase)+g.messages(FateUnconfirmed, phase) == 0,
			"the unknown groups are not of the closed messages")
	}
	x.last = r.instant(0)
	r.last = 0
	next := uint64(0)
	for range r.length(p.streams, 5) {
		e := gotPart{stream: r.stream(p, &next)}
		r.got(p, &e)
		if r.Err() != nil {
			return
		}
		x.got = append(x.got, e)
	}
}

func (r *reader) accounts(by *[2]Book) {
	for phase := range by {
		if r.number(1) == 0 {
			continue
		}
		b := &by[phase]
		for _, n := range b.closed() {
			*n = r.number(maxCount)
		}
		b.Sent = b.Confirmed + b.Failed + b.Unconfirmed
		r.check(*b != Book{}, "what is announced is 0")
		r.check(b.Delivered+b.Corrupted <= b.Confirmed && b.FailedDelivered <= b.Failed && b.UnconfirmedDelivered <= b.Unconfirmed &&
			b.CorruptedUnconfirmed <= b.FailedDelivered+b.UnconfirmedDelivered, "a closed book does not balance")
		b.Missing = b.Confirmed - b.Delivered - b.Corrupted
	}
}

func (r *reader) groups(g *groups) {
	for fate := range g {
		for phase := range g[fate] {
			before := int64(0)
			for range r.length(maxGroups, 3) {
				x := group{n: r.positive(maxCount)}
				at := r.point(before)
				x.due, x.start = at.due, at.start
				before = x.due
				if r.Err() != nil {
					return
				}
				g[fate][phase] = append(g[fate][phase], x)
			}
		}
	}
}
