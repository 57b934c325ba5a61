package ledger

// Confirmations returns how many messages are confirmed, possibly slightly too many during
// concurrent calls. Any goroutine may call it, at any time; it looks at every stream without
// waiting.
func (l *Ledger) Confirmations() (n uint64) {
	for i := range l.streams {
		n += l.streams[i].confirmed()
	}
	return n
}

// Distinct returns how many messages were delivered to the subscription at least
// once and merged, good or corrupted. Any goroutine may call it.
func (l *Ledger) Distinct(sub int) uint64 { return l.subs[sub].distinct.Load() }

// Empty reports whether p is empty: nothing was stored in it.
func (p *Part) Empty() bool { return p.streams == 0 }

// Of returns the number of streams and subscriptions of p's run.
func (p *Part) Of() Limits { return Limits{p.streams, len(p.subs)} }

// Assign makes p a deep copy of o, reusing p's memory. The limits stay.
func (p *Part) Assign(o *Part) {
	p.clear()
	p.streams, p.closedBooks, p.closedUnknown = o.streams, o.closedBooks, o.closedUnknown
	p.closedFates.copy(&o.closedFates)
	p.sent = append(p.sent, o.sent...)
	p.spans, p.points = append(p.spans, o.spans...), append(p.points, o.points...)
	for i := range o.subs {
		from, x := &o.subs[i], p.sub()
		x.got = append(x.got, from.got...)
		x.damaged.copy(&from.damaged)
		x.unknown.copy(&from.unknown)
		x.counts, x.foreign, x.closed, x.last = from.counts, from.foreign, from.closed, from.last
	}
}
