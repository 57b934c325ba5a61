package ledger

import "fmt"

// Deliveries sets into to what arrived at the subscriptions, in whichever process, of the streams
// that several processes received. It is for Ledger.Adopt of each of them.
//
// If processes share a subscription's deliveries, each sees what another received as a hole, so
// that its memory and its part grow with the messages. Once told of all arrivals, it keeps as holes
// only what no process received.
func (j *Joined) Deliveries(into *Part) {
	into.clear()
	into.streams = len(j.l.streams)
	for sub := range j.l.subs {
		x := into.sub()
		for _, stream := range j.shared[sub] {
			d := &j.l.subs[sub].streams[stream]
			e := gotPart{
				stream: stream, head: d.head, newest: d.newest, measured: d.measured,
				holes: into.keep(&d.holes), corrupted: into.keep(&d.corrupted),
			}
			e.first = into.members(&e)
			x.got = append(x.got, e)
		}
	}
}

// Adopt makes the ledger count as delivered what arrived anywhere, according to Joined.Deliveries
// of parts of this ledger and of others. Parts of the ledger stay exact: the ledger remembers how
// many messages arrived here, and the union does not change. From then on a delivery here of what
// another process had before counts as duplicated at once, and Merge does not report it.
//
// It must be called by the goroutine that calls Merge, between two of those calls, as often as
// desired, also with older deliveries than before. It takes some 50 ns per span. Book, Missing and
// Complete of the ledger itself mean little after it; use those of Join's result. It returns
// ErrJoin, and does nothing, if p is of a run with other numbers of streams or subscriptions.
func (l *Ledger) Adopt(p *Part) error {
	if p.streams != len(l.streams) || len(p.subs) != len(l.subs) {
		return fmt.Errorf("%w: it has %d streams and %d subscriptions, the ledger %d and %d", ErrJoin, p.streams, len(p.subs), len(l.streams), len(l.subs))
	}
	for sub := range l.subs {
		for k := range p.subs[sub].got {
			e := &p.subs[sub].got[k]
			d := &l.subs[sub].streams[e.stream]
			both := []arrived{{delivered: *d}, {delivered: p.delivered(e)}}
			l.held -= d.holes.n + d.corrupted.n
			if e.head > d.head {
				d.newest = e.newest
			}
			d.measured = min(d.measured, e.measured)
			d.set, d.corrupted = set{}, spans{}
			unite(d, both, 0, new(arrivals))
			l.held += d.holes.n + d.corrupted.n
		}
	}
	return nil
}
