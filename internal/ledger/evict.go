package ledger

import (
	"math/bits"
	"slices"
)

// Evicted returns how many messages the memory bound closed before everything was known about them:
// undelivered, once per subscription, or of unknown fate. It must be called by the goroutine that
// calls Merge, or when that has stopped.
func (l *Ledger) Evicted() uint64 {
	n := l.closedUnknown
	for i := range l.subs {
		n += l.subs[i].closed[warmUp].Evicted + l.subs[i].closed[measured].Evicted
	}
	return n
}

// evict closes the oldest messages until the ledger holds no more spans than allowed, or nothing
// can be closed any more: the newest messages of a stream, fewer than reachEach, cannot, because
// only the sender knows when they started.
//
// Closing loses nothing about a message that was delivered everywhere and has a known fate, as
// nearly all messages older than the oldest hole. Undelivered ones become unknown. Messages without
// a fate still get it, as a count (see fold).
func (l *Ledger) evict() {
	for open := l.open(); open > l.maxOpen; {
		// Streams with at least half of the average hold at least half of all, so that every round
		// is worth its walk over the streams, and no stream pays for another's disorder.
		least := open / len(l.streams) / 2
		for i := range l.streams {
			l.closeOldest(i, max(least, 1))
		}
		now := l.open()
		if now >= open {
			return
		}
		open = now
	}
}

// closeOldest closes the messages of a stream up to the end of the oldest eighth of the spans of
// its largest set, if the stream has at least that many spans in all.
func (l *Ledger) closeOldest(i, atLeast int) {
	s := &l.streams[i]
	s.lock()
	defer s.unlock()
	n, most := 0, &s.failed
	count := func(p *spans) {
		n += p.n
		if p.n > most.n {
			most = p
		}
	}
	count(&s.failed)
	count(&s.settled.holes)
	for j := range l.subs {
		count(&l.subs[j].streams[i].holes)
		count(&l.subs[j].streams[i].corrupted)
	}
	if most.n == 0 || n < atLeast {
		return
	}
	if l.elsewhere(i) {
		l.closeArrivals(i)
		return
	}
	upTo := min(most.endOf((most.n-1)/8), s.line.limit())
	if upTo <= s.closed {
		return
	}
	l.close(i, upTo, func(sub int) int64 { return l.subs[sub].last.Load() })
}

// farAhead is the minimum number of delivered messages with which a stream is assumed to be sent by
// another process. A sender in this process would have reported them: it does so every reachEach.
const farAhead = 4 * reachEach

// elsewhere reports whether another process sends the stream. The stream's lock must be held. If it
// is wrong, closed messages are only known less exactly.
func (l *Ledger) elsewhere(i int) bool {
	s := &l.streams[i]
	head := uint64(0)
	for j := range l.subs {
		head = max(head, l.subs[j].streams[i].head)
	}
	return head > farAhead && s.line.limit() == 0 && s.settled.head == 0
}

// closeArrivals is closeOldest for deliveries of a stream that another process sends. Their fates
// are unknown here. It forgets which of the closed messages arrived, but keeps their number, which
// Join compares with what the sender knows.
func (l *Ledger) closeArrivals(i int) {
	for j := range l.subs {
		sub := &l.subs[j]
		d := &sub.streams[i]
		most := &d.holes
		if d.corrupted.n > most.n {
			most = &d.corrupted
		}
		if most.n == 0 {
			continue
		}
		upTo := most.endOf((most.n - 1) / 8)
		holes := d.holes.from(d.floor)
		for lo := d.floor; lo < upTo; {
			missing, next := holes.at(lo)
			next = min(next, upTo)
			if missing {
				d.lacked += next - lo
				sub.closed[warmUp].Evicted += min(next, max(lo, d.measured)) - lo
				sub.closed[measured].Evicted += next - min(next, max(lo, d.measured))
			}
			lo = next
		}
		if d.floor == 0 {
			d.since = sub.last.Load()
		}
		d.floor = max(d.floor, upTo)
		l.forget(d, upTo)
	}
}

// forget drops deliveries below upTo.
func (l *Ledger) forget(d *delivered, upTo uint64) {
	before := d.holes.n + d.corrupted.n
	d.fill(upTo)
	d.corrupted.cut(upTo)
	l.held += d.holes.n + d.corrupted.n - before
}

// close counts the messages of a stream below upTo into the closed books, and forgets them. at
// returns up to which instant a subscription's deliveries are known. The stream's lock must be
// held.
func (l *Ledger) close(i int, upTo uint64, at func(sub int) int64) {
	s := &l.streams[i]
	newest := s.line.newest()
	l.pieces(i, nil, s.closed, upTo, func(p piece) {
		b := &l.closedBooks[p.phase()]
		b.add(p)
		if p.fate == FateUnconfirmed {
			b.Evicted += p.hi - p.lo
			l.closedUnknown += p.hi - p.lo
			s.open[p.phase()] += p.hi - p.lo
		}
		if p.fate != FateConfirmed {
			s.dated(p, newest, l.closedFates.add)
		}
	})
	for j := range l.subs {
		sub := &l.subs[j]
		d, now := &sub.streams[i], at(j)
		l.pieces(i, d, s.closed, upTo, func(p piece) {
			b, n := &sub.closed[p.phase()], p.hi-p.lo
			b.add(p)
			if p.delivered {
				d.first.count(p.phase(), p.corrupted, -int64(n))
				if p.corrupted {
					s.dated(p, newest, sub.damaged.add)
				}
				return
			}
			b.Evicted += n
			d.lacked += n
			b.Missing, b.Unknown = 0, b.Unknown+b.Missing
			s.dated(p, newest, func(_ Fate, isMeasured bool, n uint64, due, start int64) {
				sub.unknown.add(FateConfirmed, isMeasured, n, due-now, start-now)
			})
		})
		l.forget(d, upTo)
	}
	before := s.settled.holes.n + s.failed.n
	if ahead := upTo - min(s.settled.head, upTo); ahead > 0 {
		s.next.Store(upTo*2 + frozen) // first, as in settle
		s.unconfirmed.Add(ahead)      // permanently; so are the holes that are filled
	}
	s.settled.fill(upTo)
	s.failed.cut(upTo)
	l.spans(uint32(i), s.settled.holes.n+s.failed.n-before)
	s.closed = upTo
}

// settleLate records the fate of a message that is already closed. A message has one fate, so it is
// one of those without. The stream's lock must be held.
func (l *Ledger) settleLate(stream uint32, seq uint64, failed bool) {
	s := &l.streams[stream]
	phase := piece{measured: seq >= l.measuredFrom[stream].Load()}.phase()
	if s.open[phase] == 0 {
		return // a second fate
	}
	s.open[phase]--
	if failed {
		s.late[phase].failed++
		return
	}
	s.late[phase].confirmed++
	s.unconfirmed.Add(^uint64(0))
}

// fold updates the closed books with the fates that became known since. It is called by the
// goroutine that calls Merge, or by a reader of the books.
func (l *Ledger) fold() {
	if l.closedUnknown == 0 {
		return
	}
	for i := range l.streams {
		s := &l.streams[i]
		s.lock()
		late := s.late
		s.late = [2]lateFate{}
		s.unlock()
		for phase, x := range late {
			if x == (lateFate{}) {
				continue
			}
			b := &l.closedBooks[phase]
			b.settle(x)
			b.Missing += x.confirmed // as in all books without a subscription
			l.closedFates.settle(phase, x)
			for j := range l.subs {
				sub := &l.subs[j]
				b := &sub.closed[phase]
				b.settle(x)
				b.Unknown += x.confirmed
				// Whether messages with a late fate were among the delivered is unknown.
				more := b.UnconfirmedDelivered - min(b.UnconfirmedDelivered, b.Unconfirmed)
				b.UnconfirmedDelivered -= more
				b.FailedDelivered += min(more, x.failed)
				most := b.FailedDelivered + b.UnconfirmedDelivered
				more = b.CorruptedUnconfirmed - min(b.CorruptedUnconfirmed, most)
				b.CorruptedUnconfirmed -= more
				sub.damaged.drop(FateUnconfirmed, phase, more)
			}
		}
	}
}

// settle gives closed messages their fate.
func (b *Book) settle(x lateFate) {
	b.Unconfirmed -= x.confirmed + x.failed
	b.Confirmed += x.confirmed
	b.Failed += x.failed
}

// maxGroups is how many groups per fate and phase are kept of what the bound closed: 24 KiB each.
const maxGroups = 1 << 10

// groups holds messages by fate and phase, with instants not before their own, in a bounded number
// of groups; beyond it neighbours are merged.
type groups [numFates][2][]group

type group struct {
	n          uint64
	due, start int64
}

// add adds a group. Its signature is that of the visitors.
func (g *groups) add(fate Fate, isMeasured bool, n uint64, due, start int64) {
	list := &g[fate][piece{measured: isMeasured}.phase()]
	if len(*list) == maxGroups {
		half := (*list)[:maxGroups/2]
		for i := range half {
			a, b := (*list)[2*i], (*list)[2*i+1]
			half[i] = group{a.n + b.n, max(a.due, b.due), max(a.start, b.start)}
		}
		*list = half
	}
	*list = append(*list, group{n, due, start})
}

// messages returns the number of messages of a kind.
func (g *groups) messages(fate Fate, phase int) (n uint64) {
	for _, x := range g[fate][phase] {
		n += x.n
	}
	return n
}

// drop removes n messages of a kind, evenly over its groups.
func (g *groups) drop(fate Fate, phase int, n uint64) {
	list, all := g[fate][phase], g.messages(fate, phase)
	n = min(n, all)
	// Up to each group, as many go as n is of all.
	seen, gone := uint64(0), uint64(0)
	for i := range list {
		seen += list[i].n
		due := mulDiv(seen, n, all)
		list[i].n -= due - gone
		gone = due
	}
	g[fate][phase] = slices.DeleteFunc(list, func(x group) bool { return x.n == 0 })
}

// settle removes confirmed messages from the unconfirmed, and turns failed ones into failed, with
// the latest instants of any of them.
func (g *groups) settle(phase int, x lateFate) {
	var latest group
	for i, a := range g[FateUnconfirmed][phase] {
		if i == 0 {
			latest = a
		}
		latest.due, latest.start = max(latest.due, a.due), max(latest.start, a.start)
	}
	g.drop(FateUnconfirmed, phase, x.confirmed+x.failed)
	if x.failed > 0 {
		g.add(FateFailed, phase == measured, x.failed, latest.due, latest.start)
	}
}

// mulDiv returns a*b/c, rounded down; a is at most c.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// copy makes g a copy of o, in g's own memory.
func (g *groups) copy(o *groups) {
	for fate := range o {
		for phase := range o[fate] {
			g[fate][phase] = append(g[fate][phase][:0], o[fate][phase]...)
		}
	}
}

// each calls visit for every group.
func (g *groups) each(visit func(fate Fate, measured bool, n uint64, due, start int64)) {
	for fate := range g {
		for phase, list := range g[fate] {
			for _, x := range list {
				visit(Fate(fate), phase == measured, x.n, x.due, x.start)
			}
		}
	}
}
