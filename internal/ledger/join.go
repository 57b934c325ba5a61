package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// ErrJoin is wrapped by Join's error if parts cannot belong to one run.
var ErrJoin = errors.New("the parts are not of one run")

// Join combines the parts of all processes of a run into its books, each part at most once, in any
// order. It keeps nothing of them. A stream is sent by one process; its deliveries to a
// subscription may be in several parts:
//
//   - A message whose first delivery k processes saw counts as delivered once and k-1 times as
//     duplicated. Joined.Twice has the sum.
//   - It counts as corrupted if all of those were. Which was the very first cannot be told, and
//     if a good one was the first in its process, Merge reported it there. So every message that
//     was reported is delivered.
//   - Reordered is the sum of the processes' counts, each of first deliveries in its process.
//
// missing, which may be nil, reports whether a stream's sender vanished, so that its part is
// outdated or absent. Then the messages up to the highest that was delivered anywhere count as
// sent, and beyond what the part knows as unconfirmed; undelivered ones among them are dated as the
// highest is. For any other stream a delivery of what was not sent is foreign. In books of parts
// taken during the run this includes messages that the sender has sent since.
//
// If the memory bound of a process closed deliveries of streams that another sends, only their
// number is known. They count as arrivals first of what was confirmed, then of what is unconfirmed,
// then of what failed; any excess counts as duplicated, and the remaining confirmed messages are
// unknown. Evicted is the sum over the parts: of messages that a process closed without having
// received them, though another may have.
//
// An error is ErrJoin: no parts, parts of runs with other numbers of streams or subscriptions, or
// two that sent the same stream.
func Join(parts []*Part, missing func(stream uint32) bool) (*Joined, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrJoin)
	}
	streams, subs := parts[0].streams, len(parts[0].subs)
	j := &joining{
		parts: parts,
		l: &Ledger{
			streams: make([]stream, streams), measuredFrom: make([]atomic.Uint64, streams), subs: make([]subscription, subs),
			maxOpen: math.MaxInt,
		},
		sender: make([]*Part, streams), floors: make([]uint64, streams), lowest: make([]uint64, streams), next: make([]int, len(parts)),
		shared: make([][]uint32, subs), since: map[place]int64{},
	}
	for i := range j.l.streams {
		j.l.streams[i].line.step = 1
		j.l.measuredFrom[i].Store(math.MaxUint64)
	}
	for _, p := range parts {
		if p.streams != streams || len(p.subs) != subs {
			return nil, fmt.Errorf("%w: one has %d streams and %d subscriptions, another %d and %d", ErrJoin, streams, subs, p.streams, len(p.subs))
		}
		if err := j.senders(p); err != nil {
			return nil, err
		}
	}
	j.survey(missing)
	for sub := range subs {
		j.own(sub)
	}
	j.close()
	joined := &Joined{l: j.l, twice: make([][2]Twice, subs), shared: j.shared}
	for sub := range subs {
		joined.twice[sub] = j.others(sub)
	}
	return joined, nil
}

// A joining is the state of Join.
type joining struct {
	parts  []*Part
	l      *Ledger         // the result
	sender []*Part         // of each stream; nil: none
	floors []uint64        // per stream, the highest of all parts and subscriptions
	since  map[place]int64 // when a stream at a subscription was first closed by number
	lowest []uint64        // per stream, the lowest of the window that arrived anywhere
	next   []int           // per part, the position in a subscription's streams
	have   []arrived
	shared [][]uint32 // per subscription, the streams that several processes received
}

// A place is a stream at a subscription.
type place struct {
	sub    int
	stream uint32
}

// An arrived is what one part has of a stream at a subscription, with an iterator over it.
type arrived struct {
	delivered
	own              bool // the part is the sender's: its closed books include what it received
	missing, damaged cursor
}

// senders takes over what the part knows as a sender.
func (j *joining) senders(p *Part) error {
	l := j.l
	for k := range p.sent {
		e := &p.sent[k]
		if j.sender[e.stream] != nil {
			return fmt.Errorf("%w: two of them sent of stream %d", ErrJoin, e.stream)
		}
		j.sender[e.stream] = p
		l.measuredFrom[e.stream].Store(e.measuredFrom)
		s := &l.streams[e.stream]
		s.closed = e.closed
		s.line.points, s.line.step = slices.Clone(p.points[e.points.from:e.points.to]), e.step
		s.sentUpTo(e.sent, e.last)
		s.settled.head = e.head
		s.settled.holes.load(p.spans[e.holes.from:e.holes.to])
		s.failed.load(p.spans[e.failed.from:e.failed.to])
		s.next.Store(e.head * 2)
		s.unconfirmed.Store(e.unconfirmed)
	}
	for phase := range p.closedBooks {
		l.closedBooks[phase].plus(&p.closedBooks[phase])
	}
	p.closedFates.each(l.closedFates.add)
	l.closedUnknown += p.closedUnknown
	return nil
}

// sentUpTo marks n messages as sent, the last of them at the point.
func (s *stream) sentUpTo(n uint64, last point) {
	s.sent, s.entered, s.line.reached = n, n, n
	s.last, s.line.latest = last, last
}

// survey records the floors of all deliveries, and raises what the streams of vanished processes
// sent to what was delivered of them.
func (j *joining) survey(missing func(stream uint32) bool) {
	vanished := make([]bool, len(j.floors))
	for i := range vanished {
		vanished[i] = missing != nil && missing(uint32(i))
	}
	for i := range j.lowest {
		j.lowest[i] = math.MaxUint64
	}
	for _, p := range j.parts {
		for sub := range p.subs {
			for k := range p.subs[sub].got {
				e := &p.subs[sub].got[k]
				j.floors[e.stream] = max(j.floors[e.stream], e.floor)
				if at, ok := j.since[place{sub, e.stream}]; e.floor > 0 && (!ok || e.since < at) {
					j.since[place{sub, e.stream}] = e.since
				}
				j.lowest[e.stream] = min(j.lowest[e.stream], e.measured)
				if s := &j.l.streams[e.stream]; vanished[e.stream] {
					s.sentUpTo(max(s.sent, e.head), point{max(s.last.due, e.newest.due), max(s.last.start, e.newest.start)})
				}
			}
		}
	}
	for i, gone := range vanished {
		if from := &j.l.measuredFrom[i]; gone && from.Load() == math.MaxUint64 {
			from.Store(j.lowest[i])
		}
	}
}

// own takes over a subscription's figures, and for each stream what its sending process received.
func (j *joining) own(sub int) {
	u := &j.l.subs[sub]
	u.streams = make([]delivered, len(j.l.streams))
	last := int64(0)
	for _, p := range j.parts {
		x := &p.subs[sub]
		for phase, c := range x.counts {
			u.counts[phase].plus(c)
			u.closed[phase].plus(&x.closed[phase])
		}
		u.foreign += x.foreign
		last = max(last, x.last)
		x.damaged.each(u.damaged.add)
		x.unknown.each(u.unknown.add)
		for k := range x.got {
			if e := &x.got[k]; e.ownOf(j.sender[e.stream], p) {
				d := &u.streams[e.stream]
				d.head, d.first = e.head, e.first
				d.holes.load(p.spans[e.holes.from:e.holes.to])
				d.corrupted.load(p.spans[e.corrupted.from:e.corrupted.to])
			}
		}
	}
	u.last.Store(last)
}

// ownOf reports whether p, the part of e, closed the stream's deliveries together with their fates,
// if at all.
func (e *gotPart) ownOf(sender, p *Part) bool { return sender == p && e.floor == 0 }

func (c *counts) plus(o counts) {
	c.first += o.first
	c.duplicated += o.duplicated
	c.redelivered += o.redelivered
	c.reordered += o.reordered
	c.misrouted += o.misrouted
	c.late += o.late
}

// close closes every stream up to the floors of its deliveries, with what the sender's own process
// received; what others received follows.
func (j *joining) close() {
	// This closes nothing early: it is the end.
	evicted := func(each func(*uint64)) {
		each(&j.l.closedUnknown)
		for phase := range j.l.closedBooks {
			each(&j.l.closedBooks[phase].Evicted)
			for sub := range j.l.subs {
				each(&j.l.subs[sub].closed[phase].Evicted)
			}
		}
	}
	var were []uint64
	evicted(func(n *uint64) { were = append(were, *n) })
	for i, floor := range j.floors {
		s := &j.l.streams[i]
		if upTo := min(floor, s.sent); upTo > s.closed {
			s.lock()
			j.l.close(i, upTo, func(sub int) int64 {
				if at, ok := j.since[place{sub, uint32(i)}]; ok {
					return at
				}
				return j.l.subs[sub].last.Load()
			})
			s.unlock()
		}
	}
	evicted(func(n *uint64) { *n, were = were[0], were[1:] })
}

// others adds to a subscription what processes other than the senders received.
func (j *joining) others(sub int) (twice [2]Twice) {
	u := &j.l.subs[sub]
	clear(j.next)
	var surplus arrivals // exceeding the messages, or replacing closed ones
	for i := range u.streams {
		s, d := &j.l.streams[i], &u.streams[i]
		base := max(s.closed, j.floors[i]) // everything from here on is known individually
		j.gather(sub, uint32(i))
		if len(j.have) == 0 || len(j.have) == 1 && j.have[0].own && base == s.closed {
			continue
		}
		own := d.first // without what close closed of it
		*d = delivered{floor: base, measured: math.MaxUint64, set: set{head: base}}
		head := uint64(0)
		for k := range j.have {
			a := &j.have[k]
			d.measured = min(d.measured, a.measured)
			if a.head > head {
				head, d.newest = a.head, a.newest
			}
		}
		if len(j.have) > 1 {
			j.shared[sub] = append(j.shared[sub], uint32(i))
		}
		var arrived, more arrivals
		unite(d, j.have, j.lowest[i], &arrived)
		for k := range j.have {
			if a := &j.have[k]; a.own {
				more.add(&own, 1)
			} else {
				more.add(&a.first, 1)
			}
		}
		d.first = more
		more.add(&arrived, -1)
		switch {
		case base == 0:
			for phase := range more {
				twice[phase].plus(more.twice(phase))
			}
		case s.sent > 0: // else they are foreign, as in Book
			surplus.add(&more, 1)
		}
	}
	first, again := uint64(0), uint64(0)
	u.arrive(&surplus)
	for phase := range u.counts {
		twice[phase].plus(surplus.twice(phase))
		u.counts[phase].duplicated += twice[phase].Deliveries
		first += u.counts[phase].first + u.counts[phase].late
		again += twice[phase].Deliveries
	}
	u.distinct.Store(first - min(first, again))
	return twice
}

// twice returns the excess of a over the number of messages.
func (a *arrivals) twice(phase int) Twice {
	good, corrupted := uint64(max(0, a[phase].good)), uint64(max(0, a[phase].corrupted))
	return Twice{Deliveries: good + corrupted, Good: good}
}

// gather collects in j.have what the parts have of a stream at a subscription. It must be called
// for the streams in order.
func (j *joining) gather(sub int, stream uint32) {
	j.have = j.have[:0]
	for k, p := range j.parts {
		got := p.subs[sub].got
		if j.next[k] < len(got) && got[j.next[k]].stream == stream {
			e := &got[j.next[k]]
			j.have = append(j.have, arrived{delivered: p.delivered(e), own: e.ownOf(j.sender[stream], p)})
			j.next[k]++
		}
	}
}

// unite sets d, from its head on, to the union of all, and adds the number of messages in it to
// into; the window begins at boundary.
func unite(d *delivered, all []arrived, boundary uint64, into *arrivals) {
	lo, hi := d.head, d.head
	for i := range all {
		a := &all[i]
		hi = max(hi, a.head)
		a.missing, a.damaged = a.holes.from(lo), a.corrupted.from(lo)
	}
	for lo < hi {
		phase, until := measured, hi
		if lo < boundary {
			phase, until = warmUp, min(until, boundary)
		}
		any, good := false, false
		for i := range all {
			a := &all[i]
			not, next := beyond(&a.set, &a.missing, lo)
			until = min(until, next)
			if not {
				continue
			}
			any = true
			damaged, next := a.damaged.at(lo)
			until = min(until, next)
			good = good || !damaged
		}
		switch {
		case !any:
			d.holes.extend(lo, until)
		case !good:
			d.corrupted.extend(lo, until)
		}
		if any {
			into.count(phase, !good, int64(until-lo))
		}
		lo = until
	}
	d.head = hi
}

// arrive counts arrivals of which only the number is known. It takes them from those that were
// closed as undelivered, and leaves the excess in surplus.
func (u *subscription) arrive(surplus *arrivals) {
	for phase := range surplus {
		b := &u.closed[phase]
		// move counts at most most arrivals, good or corrupted.
		move := func(from *int64, good bool, fate Fate, most uint64) uint64 {
			k := min(uint64(max(0, *from)), most)
			*from -= int64(k)
			if good {
				u.unknown.drop(FateConfirmed, phase, k)
			} else if fate != FateConfirmed {
				b.CorruptedUnconfirmed += k
			}
			return k
		}
		for _, good := range []bool{true, false} {
			from, into := &surplus[phase].good, &b.Delivered
			if !good {
				from, into = &surplus[phase].corrupted, &b.Corrupted
			}
			k := move(from, good, FateConfirmed, b.Unknown)
			b.Unknown -= k
			*into += k
			b.UnconfirmedDelivered += move(from, good, FateUnconfirmed, b.Unconfirmed-b.UnconfirmedDelivered)
			b.FailedDelivered += move(from, good, FateFailed, b.Failed-b.FailedDelivered)
		}
	}
}
