package ledger

import "math"

// A Book counts the outcomes of messages at one subscription. In every book
//
//	Sent == Confirmed + Failed + Unconfirmed
//	Confirmed == Delivered + Corrupted + Missing + Unknown
type Book struct {
	Sent        uint64 // handed to the client library
	Confirmed   uint64 // the system confirmed it
	Failed      uint64 // the system or the client library reported that it did not arrive, or gave up
	Unconfirmed uint64 // fate unknown

	Delivered uint64 // confirmed, and the first delivery was good
	Corrupted uint64 // confirmed, and the first delivery was damaged; later ones are duplicates
	Missing   uint64 // confirmed and never delivered: lost or pending, which the ledger cannot know
	// Unknown counts the confirmed messages that were not delivered, or not yet confirmed, when the
	// memory bound closed them: their fate after that is not known individually.
	Unknown uint64

	FailedDelivered      uint64 // failed but delivered, good or damaged
	UnconfirmedDelivered uint64 // unconfirmed but delivered, good or damaged
	CorruptedUnconfirmed uint64 // those of the last two with a damaged first delivery

	Duplicated  uint64 // deliveries after the first of a message, each counted; excludes Late
	Redelivered uint64 // deliveries that the system flagged as redelivered
	// Reordered counts the first deliveries with a sequence below the highest that the
	// same consumer had received of the same stream and partition. Deliveries of all
	// sorts raise the highest; duplicates and flagged redeliveries are never counted.
	Reordered uint64
	Foreign   uint64 // deliveries without a header of this run, or of a message never sent; not split by phase

	// Misrouted counts deliveries from another destination than the one that the message was sent
	// to. They count nowhere else: such a message is missing until it arrives where it belongs.
	Misrouted uint64

	// Late counts deliveries of messages that the bound had closed, each either the first of an
	// Unknown message or a duplicate.
	Late uint64
	// Evicted counts the messages that were undelivered when the memory bound closed them, and in
	// the senders' books those of unknown fate.
	Evicted uint64
}

// Fate is the outcome of a message on the sending side.
type Fate uint8

// The fates.
const (
	FateConfirmed Fate = iota
	FateFailed
	FateUnconfirmed
	numFates
)

// String returns the fate's name in reports.
func (f Fate) String() string {
	switch f {
	case FateConfirmed:
		return "confirmed"
	case FateFailed:
		return "failed"
	case FateUnconfirmed:
		return "unconfirmed"
	}
	return "invalid"
}

// plus adds o.
func (b *Book) plus(o *Book) {
	b.Sent += o.Sent
	b.Confirmed += o.Confirmed
	b.Failed += o.Failed
	b.Unconfirmed += o.Unconfirmed
	b.Delivered += o.Delivered
	b.Corrupted += o.Corrupted
	b.Missing += o.Missing
	b.Unknown += o.Unknown
	b.FailedDelivered += o.FailedDelivered
	b.UnconfirmedDelivered += o.UnconfirmedDelivered
	b.CorruptedUnconfirmed += o.CorruptedUnconfirmed
	b.Duplicated += o.Duplicated
	b.Redelivered += o.Redelivered
	b.Reordered += o.Reordered
	b.Foreign += o.Foreign
	b.Misrouted += o.Misrouted
	b.Late += o.Late
	b.Evicted += o.Evicted
}

// add counts a piece.
func (b *Book) add(p piece) {
	n := p.hi - p.lo
	b.Sent += n
	switch p.fate {
	case FateConfirmed:
		b.Confirmed += n
		switch {
		case !p.delivered:
			b.Missing += n
		case p.corrupted:
			b.Corrupted += n
		default:
			b.Delivered += n
		}
		return
	case FateFailed:
		b.Failed += n
		if p.delivered {
			b.FailedDelivered += n
		}
	case FateUnconfirmed:
		b.Unconfirmed += n
		if p.delivered {
			b.UnconfirmedDelivered += n
		}
	}
	if p.corrupted {
		b.CorruptedUnconfirmed += n
	}
}

// A piece is the messages [lo, hi) of one stream, about which the ledger knows the same.
type piece struct {
	lo, hi    uint64
	fate      Fate
	measured  bool
	delivered bool // good or corrupted
	corrupted bool
}

// phase returns the index of the piece's phase.
func (p piece) phase() int {
	if p.measured {
		return measured
	}
	return warmUp
}

// pieces calls visit for all of [lo, hi) of a stream, in order, in the largest possible pieces,
// given the subscription's deliveries d; nil ignores deliveries. The stream's lock must be held;
// only Merge's goroutine changes d.
func (l *Ledger) pieces(stream int, d *delivered, lo, hi uint64, visit func(piece)) {
	s := &l.streams[stream]
	boundary := l.measuredFrom[stream].Load()
	unsettled, failed := s.settled.holes.from(lo), s.failed.from(lo)
	var missing, corrupted cursor
	if d != nil {
		missing, corrupted = d.holes.from(lo), d.corrupted.from(lo)
	}
	for lo < hi {
		p := piece{lo: lo, hi: hi, measured: lo >= boundary}
		until := func(next uint64) { p.hi = min(p.hi, next) }
		if !p.measured {
			until(boundary)
		}
		if in, next := beyond(&s.settled, &unsettled, lo); in {
			p.fate = FateUnconfirmed
			until(next)
		} else {
			until(next)
			in, next := failed.at(lo)
			if in {
				p.fate = FateFailed
			}
			until(next)
		}
		if d != nil {
			in, next := beyond(&d.set, &missing, lo)
			p.delivered = !in
			until(next)
			if p.delivered {
				in, next := corrupted.at(lo)
				p.corrupted = in
				until(next)
			}
		}
		visit(p)
		lo = p.hi
	}
}

// beyond is cursor.at for what is not in s; c iterates over the holes of s.
func beyond(s *set, c *cursor, seq uint64) (in bool, next uint64) {
	if seq >= s.head {
		return true, math.MaxUint64
	}
	in, next = c.at(seq)
	return in, min(next, s.head)
}

// Book returns the books of a subscription, of the whole run and of the measured window (see
// MeasureFrom). Foreign is counted only in the first. Call it when senders, consumers and Merge
// have stopped and everything is merged.
func (l *Ledger) Book(sub int) (all, window Book) {
	l.fold()
	u := &l.subs[sub]
	by := u.closed
	for phase, c := range u.counts {
		by[phase].Duplicated += c.duplicated
		by[phase].Redelivered += c.redelivered
		by[phase].Reordered += c.reordered
		by[phase].Misrouted += c.misrouted
		by[phase].Late += c.late
	}
	foreign := u.foreign
	for _, r := range u.readers {
		foreign += r.foreign.Load()
	}
	for i := range l.streams {
		s, d := &l.streams[i], &u.streams[i]
		s.lock()
		l.pieces(i, d, s.closed, s.sent, func(p piece) { by[p.phase()].add(p) })
		switch { // never sent: not of this run
		case d.floor > s.sent: // known only as a count
			foreign += uint64(max(0, d.first.total()-int64(s.sent)))
		case d.head > s.sent:
			l.pieces(i, d, s.sent, d.head, func(p piece) {
				if p.delivered {
					foreign += p.hi - p.lo
				}
			})
		}
		s.unlock()
	}
	return total(by, foreign)
}

// Senders returns the sending side's books, for a run without subscriptions: Sent, Confirmed,
// Failed, Unconfirmed, and as Evicted those closed by the bound before their fate was known, which
// is nevertheless counted if it becomes known later. Otherwise as Book.
func (l *Ledger) Senders() (all, window Book) {
	l.fold()
	by := l.closedBooks
	for i := range l.streams {
		s := &l.streams[i]
		s.tell()
		s.lock()
		l.pieces(i, nil, s.closed, s.sent, func(p piece) { by[p.phase()].add(p) })
		s.unlock()
	}
	for phase := range by {
		by[phase].Missing = 0
	}
	return total(by, 0)
}

func total(by [2]Book, foreign uint64) (all, window Book) {
	all, window = by[warmUp], by[measured]
	all.plus(&window)
	all.Foreign = foreign
	return all, window
}

// Undelivered calls visit for all messages without a good first delivery at a subscription: the
// missing, the corrupted, and those that neither were confirmed nor arrived, except for those that
// Unknown visits. They come in groups of n; no message of a group was due after due or started
// after start, so that an age computed from these is at most the message's own. As long as a stream
// has no more messages than its timeline has points (2^18 over the number of streams, at least 4)
// due and start are the message's own; after that an age is too small by at most 2/points of the
// time since the stream's first message. Call it when Book may be called.
func (l *Ledger) Undelivered(sub int, visit func(fate Fate, measured bool, n uint64, due, start int64)) {
	u := &l.subs[sub]
	u.damaged.each(visit)
	for i := range l.streams {
		s := &l.streams[i]
		s.tell()
		s.lock()
		l.pieces(i, &u.streams[i], s.closed, s.sent, func(p piece) {
			if !p.delivered || p.corrupted {
				s.dated(p, s.last, visit)
			}
		})
		s.unlock()
	}
}

// Missed calls visit for all confirmed messages that a subscription has not received, good or
// corrupted, otherwise as Undelivered.
func (l *Ledger) Missed(sub int, visit func(n uint64, due int64)) {
	u := &l.subs[sub]
	for i := range l.streams {
		s := &l.streams[i]
		s.tell()
		s.lock()
		l.pieces(i, &u.streams[i], s.closed, s.sent, func(p piece) {
			if p.fate == FateConfirmed && !p.delivered {
				s.dated(p, s.last, func(_ Fate, _ bool, n uint64, due, _ int64) { visit(n, due) })
			}
		})
		s.unlock()
	}
}

// Unknown calls visit for all messages, of whatever fate, that a subscription had not received when
// the bound closed them, with lower bounds of their response and service times: their age at that
// point. Otherwise as Undelivered.
func (l *Ledger) Unknown(sub int, visit func(measured bool, n uint64, response, service int64)) {
	l.subs[sub].unknown.each(func(_ Fate, measured bool, n uint64, due, start int64) {
		visit(measured, n, max(0, -due), max(0, -start))
	})
}

// Unsuccessful calls visit for all messages that failed or stayed unconfirmed,
// otherwise as Undelivered.
func (l *Ledger) Unsuccessful(visit func(fate Fate, measured bool, n uint64, due, start int64)) {
	l.fold()
	l.closedFates.each(visit)
	for i := range l.streams {
		s := &l.streams[i]
		s.tell()
		s.lock()
		l.pieces(i, nil, s.closed, s.sent, func(p piece) {
			if p.fate != FateConfirmed {
				s.dated(p, s.last, visit)
			}
		})
		s.unlock()
	}
}

// dated calls visit for p, in parts that share a point of the timeline.
func (s *stream) dated(p piece, rest point, visit func(fate Fate, measured bool, n uint64, due, start int64)) {
	for lo := p.lo; lo < p.hi; {
		at, until := s.line.at(lo, rest)
		until = min(until, p.hi)
		visit(p.fate, p.measured, until-lo, at.due, at.start)
		lo = until
	}
}

// Fates calls visit for all messages sent, in order of stream and number, in the largest runs [lo,
// hi) of one fate. It reports whether it visited all: numbers of messages closed by the bound are
// unknown. Call it when Book may be called.
func (l *Ledger) Fates(visit func(stream uint32, fate Fate, lo, hi uint64)) bool {
	all := true
	for i := range l.streams {
		s := &l.streams[i]
		s.tell()
		s.lock()
		all = all && s.closed == 0
		l.pieces(i, nil, s.closed, s.sent, func(p piece) { visit(uint32(i), p.fate, p.lo, p.hi) })
		s.unlock()
	}
	return all
}

// Passed returns how many messages the subscription has not received although it has later ones of
// the same stream, as far as merged. Any goroutine may call it.
func (l *Ledger) Passed(sub int) uint64 { return l.subs[sub].passed.Load() }

// behind returns the largest number, over the subscriptions, of messages confirmed minus those
// delivered at least once and merged; 0 if that is negative. Messages that failed or are not
// confirmed yet but were delivered count as delivered, so that it is too small by their number;
// what waits in the rings makes it too large, and so, briefly, do messages confirmed out of order.
// Any goroutine may call it, at any time; it looks at every stream without waiting.
func (l *Ledger) behind() uint64 {
	if len(l.subs) == 0 {
		return 0
	}
	// Read before the confirmed, so that no confirmed message is hidden by a delivery that comes
	// meanwhile.
	least := uint64(math.MaxUint64)
	for i := range l.subs {
		least = min(least, l.subs[i].distinct.Load())
	}
	confirmed := l.Confirmations()
	return confirmed - min(confirmed, least)
}

// Missing returns how many of the messages confirmed until now the subscription has not received,
// good or corrupted, exactly as far as merged. Unknown messages count as the number of deliveries
// still needed for all. It must be called by the goroutine that calls Merge; senders and consumers
// may be running. It takes the lock of every stream in turn, for some 20 ns per hole.
func (l *Ledger) Missing(sub int) uint64 {
	u := &l.subs[sub]
	l.fold()
	n := u.closed[warmUp].Unknown + u.closed[measured].Unknown
	n -= min(n, u.counts[warmUp].late+u.counts[measured].late)
	for i := range l.streams {
		s, d := &l.streams[i], &u.streams[i]
		s.lock()
		if s.settled.head > d.head || d.holes.n > 0 {
			l.pieces(i, d, s.closed, s.settled.head, func(p piece) {
				if p.fate == FateConfirmed && !p.delivered {
					n += p.hi - p.lo
				}
			})
		}
		s.unlock()
	}
	return n
}

// Complete reports whether every subscription has received every message confirmed until now, good
// or corrupted. True is exact. It is cheap to call repeatedly: as long as behind is above 0
// something is missing and the result is false, because deliveries of unconfirmed messages can only
// make behind too small (it is too large only briefly, while something is confirmed); only then
// does Missing look more closely. It is called as Missing is.
func (l *Ledger) Complete() bool {
	if l.behind() > 0 {
		return false
	}
	for i := range l.subs {
		if l.Missing(i) > 0 {
			return false
		}
	}
	return true
}
