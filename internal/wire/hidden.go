package wire

import (
	"cmp"
	"slices"
)

// An encrypted message shows no header. It is found by elimination: its last byte left this host, and its
// answer came in, between its hand-over and its end. What is left of all segments of that time says between
// which instants both happened. Where one segment is left of each, they are known exactly, whatever else was
// in flight.

// A mark is the instant by which a number of bytes had passed in a direction.
type mark struct {
	at     int64
	length uint32
}

// marks returns what passed, in order of time: what was received when it could be read.
func (t *track) marks() []mark {
	all := make([]mark, 0, len(t.segments))
	for i := range t.segments {
		p := &t.segments[i]
		m := mark{p.at, p.length}
		if !t.out {
			m.at = p.ready
		}
		if m.at != never {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	return all
}

// A stretch of time in which the last byte of something passed, on a track.
type stretch struct {
	*track
	first, last int64
}

// between returns where, and when, the last of at least this many bytes passed from one instant to another, both
// included. n is the number of tracks where that can be.
func (w *window) between(out bool, conn *uint32, from, to int64, bytes int) (s stretch, n int) {
	for d, t := range w.tracks {
		if d.out != out || conn != nil && d.conn != *conn {
			continue
		}
		i, _ := slices.BinarySearchFunc(t.passed, from, func(m mark, at int64) int { return cmp.Compare(m.at, at) })
		after, _ := slices.BinarySearchFunc(t.passed, to+1, func(m mark, at int64) int { return cmp.Compare(m.at, at) })
		for got := 0; i < after; i++ {
			if got += int(t.passed[i].length); got >= bytes {
				s, n = stretch{t, t.passed[i].at, t.passed[after-1].at}, n+1
				break
			}
		}
	}
	return s, n
}

// hiddenMessage adds an encrypted message to p: delivered, or confirmed on the connection by which it left.
func (w *window) hiddenMessage(m *Message, p *Parts, delivered bool) {
	if m.End > w.until {
		p.leave(m, &p.Late)
		return
	}
	bytes := 1
	if w.sized {
		bytes = m.Bytes
	}
	left, n := w.between(true, nil, m.Start, m.End, bytes)
	if n != 1 || w.unwatched {
		p.leave(m, leftOut(p, n))
		return
	}
	var came stretch
	if delivered {
		came, n = w.between(false, nil, left.first+1, m.End, bytes)
	} else {
		came, n = w.between(false, &left.conn, left.first+1, m.End, 1)
	}
	if n != 1 {
		p.leave(m, leftOut(p, n))
		return
	}
	left, _ = w.between(true, &left.conn, m.Start, came.last-1, bytes) // what left later is not what was answered
	at, in := (left.first+left.last)/2, (came.first+came.last)/2
	in = max(in, at)
	held := w.tracks[direction{conn: left.conn}].held(m.Start, at)
	switch apart := float64(left.last - left.first + came.last - came.first); {
	case apart == 0:
		p.know(w, m, held, at, in, &p.Exact)
	case apart <= Tolerance*float64(m.End-m.Start):
		p.know(w, m, held, at, in, &p.Bounded)
	case apart <= Tolerance*float64(m.End-m.Due):
		p.Ambiguous++
		p.level(m, held, at, in)
	default:
		p.leave(m, &p.Ambiguous)
	}
}

// leftOut returns what counts a message whose segments may be on that many tracks.
func leftOut(p *Parts, tracks int) *uint64 {
	if tracks == 0 {
		return &p.Unseen
	}
	return &p.Ambiguous
}
