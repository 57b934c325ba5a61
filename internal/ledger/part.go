package ledger

import "math"

// A Part is a snapshot of what the ledger of one process knows of a run; it shares nothing with the
// ledger. It takes as much memory as the ledger's contents (16 bytes per span and timeline point),
// which the next Part into it reuses. It is not for concurrent use. The zero value is empty.
//
// A process sends some of the run's streams and receives some of its deliveries; its Part contains
// only those.
type Part struct {
	// Limits bounds what UnmarshalBinary accepts; zeros accept nothing.
	Limits Limits

	streams int // of the run
	sent    []sentPart
	subs    []subPart // all the run's

	closedBooks   [2]Book
	closedFates   groups
	closedUnknown uint64

	spans  []span  // of all sets, each a window
	points []point // of all timelines
}

// Limits is the maximum number of streams and subscriptions of a run. Joining parts allocates
// memory for all of them.
type Limits struct{ Streams, Subscriptions int }

// A window is a range of a part's spans or points.
type window struct{ from, to int }

// A sentPart is a stream that the process has sent on.
type sentPart struct {
	stream        uint32
	sent          uint64 // above 0
	measuredFrom  uint64
	last          point
	head, closed  uint64 // of the settled
	unconfirmed   uint64
	holes, failed window

	step   uint64 // of the timeline
	points window
}

// A subPart is what the process received of a subscription.
type subPart struct {
	got     []gotPart
	counts  [2]counts
	foreign uint64
	closed  [2]Book
	damaged groups
	unknown groups
	last    int64
}

// A gotPart is a stream that the process has received from.
type gotPart struct {
	stream    uint32
	head      uint64 // above 0
	newest    point
	measured  uint64
	first     arrivals
	floor     uint64
	since     int64 // if floor is not 0
	holes     window
	corrupted window
}

// livePoints is the maximum number of points of a timeline in a Part of a running ledger: the
// sender waits while they are copied.
const livePoints = 1 << 10

// Part sets into to what the ledger knows now. It must be called by the goroutine that calls Merge,
// between two of those calls; senders and consumers may be running. Deliveries are those merged. A
// stream's messages count as sent if they are confirmed or failed, and otherwise except for the
// newest, fewer than 16 (which may be all of a stream of which nothing is settled): senders report
// in batches of 16. Each stream is a snapshot of one instant, later than that of the deliveries and
// different for each stream. So every message with a known fate is also sent, and one delivered
// here need not be.
//
// As long as a stream has no more than 1024 messages, due and start of each are kept; after that an
// age (see Undelivered) is too small by at most 1/512 of the time since the stream's first message.
// Messages not yet reported are dated as the last reported one.
//
// A sender or a completion waits while its own stream is copied: 8 KiB, or the size of the stream's
// holes.
func (l *Ledger) Part(into *Part) { l.part(into, livePoints) }

// LastPart sets into to everything the ledger knows. Call it when senders, consumers and Merge have
// stopped and everything is merged; then the books that Join makes of it are those of the ledger.
// All points of the timelines are kept (see Undelivered).
func (l *Ledger) LastPart(into *Part) {
	for i := range l.streams {
		l.streams[i].tell()
	}
	l.part(into, math.MaxInt)
}

// part is Part with a maximum number of points of each timeline.
func (l *Ledger) part(p *Part, most int) {
	p.clear()
	l.fold()
	p.streams = len(l.streams)
	p.closedBooks, p.closedUnknown = l.closedBooks, l.closedUnknown
	p.closedFates.copy(&l.closedFates)
	for i := range l.streams {
		s := &l.streams[i]
		if s.line.limit() == 0 && s.next.Load() < 2 {
			continue
		}
		e := sentPart{stream: uint32(i)}
		s.lock()
		e.head, e.closed, e.unconfirmed = s.settled.head, s.closed, s.unconfirmed.Load()
		e.holes, e.failed = p.keep(&s.settled.holes), p.keep(&s.failed)
		s.unlock()
		s.line.mu.Lock()
		from := len(p.points)
		by := stride(len(s.line.points), most)
		for k := by - 1; k < len(s.line.points); k += by {
			p.points = append(p.points, s.line.points[k])
		}
		e.points, e.step = window{from, len(p.points)}, s.line.step*uint64(by)
		e.sent, e.last = max(s.line.reached, e.head), s.line.latest
		s.line.mu.Unlock()
		// Read last: it was set before any later message was sent.
		e.measuredFrom = l.measuredFrom[i].Load()
		p.sent = append(p.sent, e)
	}
	for i := range l.subs {
		u, x := &l.subs[i], p.sub()
		x.counts, x.closed, x.last = u.counts, u.closed, u.last.Load()
		x.damaged.copy(&u.damaged)
		x.unknown.copy(&u.unknown)
		x.foreign = u.foreign
		for _, r := range u.readers {
			x.foreign += r.foreign.Load()
		}
		for j := range u.streams {
			if d := &u.streams[j]; d.head > 0 {
				x.got = append(x.got, gotPart{
					stream: uint32(j), head: d.head, newest: d.newest, measured: d.measured, first: d.first, floor: d.floor, since: d.since,
					holes: p.keep(&d.holes), corrupted: p.keep(&d.corrupted),
				})
			}
		}
	}
}

// clear empties p, except for its limits, and keeps its memory.
func (p *Part) clear() {
	p.streams, p.closedBooks, p.closedUnknown = 0, [2]Book{}, 0
	p.sent, p.subs, p.spans, p.points = p.sent[:0], p.subs[:0], p.spans[:0], p.points[:0]
	p.closedFates.copy(&groups{})
}

// sub appends a subscription, reusing the memory of an earlier one. It is valid until the next
// call.
func (p *Part) sub() *subPart {
	if len(p.subs) < cap(p.subs) {
		p.subs = p.subs[:len(p.subs)+1]
	} else {
		p.subs = append(p.subs, subPart{})
	}
	x := &p.subs[len(p.subs)-1]
	got, damaged, unknown := x.got[:0], x.damaged, x.unknown
	*x = subPart{got: got, damaged: damaged, unknown: unknown}
	x.damaged.copy(&groups{})
	x.unknown.copy(&groups{})
	return x
}

// keep copies a set's spans.
func (p *Part) keep(s *spans) window {
	from := len(p.spans)
	p.spans = s.all(p.spans)
	return window{from, len(p.spans)}
}

// view returns spans of the part, read-only.
func (p *Part) view(w window) spans {
	if w.from == w.to {
		return spans{}
	}
	return spans{chunks: []chunk{{list: p.spans[w.from:w.to]}}, n: w.to - w.from}
}

// delivered returns what the part received of a stream, read-only.
func (p *Part) delivered(e *gotPart) delivered {
	return delivered{
		newest: e.newest, measured: e.measured, first: e.first, floor: e.floor,
		set: set{head: e.head, holes: p.view(e.holes)}, corrupted: p.view(e.corrupted),
	}
}
