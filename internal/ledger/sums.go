package ledger

import "slices"

// Confirmations returns how many messages are confirmed, at most some too many
// while others are at it. Any goroutine may call it, at any time; it looks at
// every stream, and waits for none.
func (l *Ledger) Confirmations() (n uint64) {
	for i := range l.streams {
		n += l.streams[i].confirmed()
	}
	return n
}

// Distinct returns how many messages were delivered to the subscription at least
// once and merged, good or corrupted. Any goroutine may call it.
func (l *Ledger) Distinct(sub int) uint64 { return l.subs[sub].distinct.Load() }

// Empty reports whether p is nothing: no ledger's part was made into it or read.
func (p *Part) Empty() bool { return p.streams == 0 }

// Of returns how many streams and subscriptions the run has that p is of.
func (p *Part) Of() Limits { return Limits{p.streams, len(p.subs)} }

// Assign makes p a copy of o that shares nothing with it, reusing p's memory. The
// limits stay.
func (p *Part) Assign(o *Part) {
	subs := p.subs[:0]
	for i := range o.subs {
		var s subPart
		if i < len(p.subs) {
			s = p.subs[i]
		}
		x := o.subs[i]
		x.got = append(s.got[:0], o.subs[i].got...)
		x.missing = o.subs[i].missing.clone()
		subs = append(subs, x)
	}
	*p = Part{
		Limits: p.Limits, streams: o.streams, sent: append(p.sent[:0], o.sent...), subs: subs,
		closedBooks: o.closedBooks, closedFates: o.closedFates.clone(), closedUnknown: o.closedUnknown,
		spans: append(p.spans[:0], o.spans...), points: append(p.points[:0], o.points...),
	}
}

// clone returns a copy that shares nothing with g.
func (g *groups) clone() (c groups) {
	for fate := range g {
		for phase := range g[fate] {
			c[fate][phase] = slices.Clone(g[fate][phase])
		}
	}
	return c
}
