package ledger

import "fmt"

// Deliveries makes into what arrived at the subscriptions, whichever process received it,
// of those streams that several processes received. It is for Ledger.Adopt of each of
// them.
//
// Where processes share a subscription's deliveries, each sees as a hole what another
// got, so that its memory and its part grow with the messages. Told of all that arrived,
// it keeps as holes only what no process got.
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

// Adopt makes the ledger take for delivered what arrived anywhere, as
// Joined.Deliveries had it of parts of this ledger and of others. Parts of the
// ledger stay exact by it: how many messages it was that arrived here is kept, and
// what was in the union is in the union still. From then on a delivery here of what
// another process had before counts as duplicated at once, and Merge does not
// tell of it.
//
// The goroutine that calls Merge calls it, between two calls of that, as often as
// it likes, with what is older than the last as well. It takes some 50 ns a span.
// Book, Missing and Complete of the ledger itself mean little after it:
// Join has them. An error is ErrJoin, where p is of a run with other numbers of
// streams or subscriptions; then nothing is done.
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
