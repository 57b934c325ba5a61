package ledger

import (
	"math/bits"
	"slices"
)

// Evicted returns how many messages the bound on memory closed before all was
// known of them: undelivered, once for each subscription, or of unknown fate. It
// is called by the goroutine that calls Merge, or when that has stopped.
func (l *Ledger) Evicted() uint64 {
	n := l.closedUnknown
	for i := range l.subs {
		n += l.subs[i].closed[warmUp].Evicted + l.subs[i].closed[measured].Evicted
	}
	return n
}

// evict closes the oldest messages until the ledger holds no more spans than it
// may, or nothing is left that may be closed: the newest messages of a stream,
// fewer than reachEach, may not, because the sender alone knows when they
// started.
//
// Closing a message is final for all that is known of it. Where it was delivered
// everywhere and its fate is known, as is so of nearly all messages older than
// the oldest hole, nothing is lost by it.
func (l *Ledger) evict() {
	for open := l.open(); open > l.maxOpen; {
		// Streams with at least half of the average hold at least half of all,
		// so that every round is worth its walk over the streams, and no stream
		// pays for another's disorder.
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

// closeOldest closes the messages of a stream up to the end of the oldest eighth
// of the spans of that of its sets which has most, where the stream has at least
// that many spans in all.
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
	l.close(i, upTo)
}

// farAhead is how many messages of a stream were delivered, at the least, when it
// is taken for one that another process sends. A sender here would have told of
// them: it does so every reachEach.
const farAhead = 4 * reachEach

// elsewhere reports whether another process sends the stream. The stream's lock
// is held. Should it be wrong, what was closed is known less exactly, no more.
func (l *Ledger) elsewhere(i int) bool {
	s := &l.streams[i]
	head := uint64(0)
	for j := range l.subs {
		head = max(head, l.subs[j].streams[i].head)
	}
	return head > farAhead && s.line.limit() == 0 && s.settled.head == 0
}

// closeArrivals is closeOldest for deliveries of a stream that another process
// sends, of whose fates nothing is known here. Of what is closed it is forgotten
// which messages arrived; how many did stays, and Join holds that against what
// the sender knows.
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
				sub.closed[warmUp].Evicted += min(next, max(lo, d.measured)) - lo
				sub.closed[measured].Evicted += next - min(next, max(lo, d.measured))
			}
			lo = next
		}
		d.floor = max(d.floor, upTo)
		l.forget(d, upTo)
	}
}

// forget forgets of deliveries what is below upTo.
func (l *Ledger) forget(d *delivered, upTo uint64) {
	before := d.holes.n + d.corrupted.n
	d.fill(upTo)
	d.corrupted.cut(upTo)
	l.held += d.holes.n + d.corrupted.n - before
}

// close counts the messages of a stream below upTo into the closed books, and
// forgets them. The stream's lock is held.
func (l *Ledger) close(i int, upTo uint64) {
	s := &l.streams[i]
	newest := s.line.newest()
	l.pieces(i, nil, s.closed, upTo, func(p piece) {
		b := &l.closedBooks[p.phase()]
		b.add(p)
		if p.fate == FateUnconfirmed {
			b.Evicted += p.hi - p.lo
			l.closedUnknown += p.hi - p.lo
		}
		if p.fate != FateConfirmed {
			s.dated(p, newest, l.closedFates.add)
		}
	})
	for j := range l.subs {
		sub := &l.subs[j]
		d := &sub.streams[i]
		l.pieces(i, d, s.closed, upTo, func(p piece) {
			b := &sub.closed[p.phase()]
			b.add(p)
			if !p.delivered {
				b.Evicted += p.hi - p.lo
			}
			if p.delivered {
				d.first.count(p.phase(), p.corrupted, -int64(p.hi-p.lo))
			}
			if !p.delivered || p.corrupted {
				s.dated(p, newest, sub.missing.add)
			}
		})
		l.forget(d, upTo)
	}
	before := s.settled.holes.n + s.failed.n
	if ahead := upTo - min(s.settled.head, upTo); ahead > 0 {
		s.next.Store(upTo*2 + frozen) // first, as in settle
		s.unconfirmed.Add(ahead)      // for good; so are the holes that are filled
	}
	s.settled.fill(upTo)
	s.failed.cut(upTo)
	l.spans(uint32(i), s.settled.holes.n+s.failed.n-before)
	s.closed = upTo
}

// maxGroups is how many groups of one fate and phase are kept of what the bound
// closed: 24 KiB each.
const maxGroups = 1 << 10

// groups is messages by fate and phase, with instants that are not before their
// own; a bounded number, beyond which neighbours are joined.
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

// messages returns how many there are of a kind.
func (g *groups) messages(fate Fate, phase int) (n uint64) {
	for _, x := range g[fate][phase] {
		n += x.n
	}
	return n
}

// drop takes n messages of a kind out, evenly over its groups.
func (g *groups) drop(fate Fate, phase int, n uint64) {
	list, all := g[fate][phase], g.messages(fate, phase)
	n = min(n, all)
	// Of the messages up to each group so many go that the share is n of all.
	seen, gone := uint64(0), uint64(0)
	for i := range list {
		seen += list[i].n
		due := mulDiv(seen, n, all)
		list[i].n -= due - gone
		gone = due
	}
	g[fate][phase] = slices.DeleteFunc(list, func(x group) bool { return x.n == 0 })
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
