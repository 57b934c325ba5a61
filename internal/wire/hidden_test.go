package wire

import (
	"bytes"
	"testing"
)

// A sealed is a segment of a connection on which TLS hides messages.
type sealed struct {
	at     int64
	conn   uint32
	out    bool
	length int
}

// TestHiddenMessages sends messages of 64 bytes in records of 86. The message is handed over at 1000 and
// confirmed or delivered at 2000. What is not known exactly is bounded or left out.
func TestHiddenMessages(t *testing.T) {
	const out, in = true, false
	type want struct{ exact, bounded, ambiguous, unseen uint64 }
	exact, bounded, ambiguous, unseen := want{exact: 1}, want{bounded: 1}, want{ambiguous: 1}, want{unseen: 1}
	before := []sealed{{900, 0, out, 86}, {950, 0, in, 30}, {960, 1, in, 90}}
	after := []sealed{{2100, 0, out, 86}, {2200, 0, in, 30}, {2300, 1, in, 90}}
	for _, x := range []struct {
		name         string
		segments     []sealed
		sent, got    want
		left         int64 // of those known
		acked, given int64
	}{
		{"one in flight", []sealed{{1200, 0, out, 86}, {1500, 0, in, 30}, {1700, 1, in, 90}}, exact, exact, 1200, 1500, 1700},
		{"one connection for all: the answer or the delivery", []sealed{{1200, 0, out, 86}, {1500, 0, in, 30}, {1700, 0, in, 90}}, ambiguous, exact, 1200, 0, 1700},
		{"housekeeping goes out before, and on another connection", []sealed{{1100, 1, out, 40}, {1150, 0, out, 20}, {1200, 0, out, 86}, {1500, 0, in, 30}, {1700, 1, in, 90}}, exact, exact, 1200, 1500, 1700},
		{"housekeeping after the answer", []sealed{{1200, 0, out, 86}, {1500, 0, in, 30}, {1700, 1, in, 90}, {1900, 0, out, 50}}, exact, exact, 1200, 1500, 1700},
		{"in two records, close together", []sealed{{1200, 0, out, 40}, {1210, 0, out, 50}, {1500, 0, in, 30}, {1700, 1, in, 90}}, exact, exact, 1210, 1500, 1700},
		{"an answer in two, close together", []sealed{{1200, 0, out, 86}, {1500, 0, in, 30}, {1520, 0, in, 30}, {1700, 1, in, 90}}, bounded, exact, 1200, 1510, 1700},
		{"several in a segment", []sealed{{1200, 0, out, 400}, {1500, 0, in, 60}, {1700, 1, in, 500}}, exact, exact, 1200, 1500, 1700},
		{"pipelined: another went later", []sealed{{1200, 0, out, 86}, {1400, 0, out, 86}, {1500, 0, in, 30}, {1600, 0, in, 30}, {1700, 1, in, 90}, {1800, 1, in, 90}}, ambiguous, ambiguous, 0, 0, 0},
		{"pipelined: another's answer", []sealed{{1200, 0, out, 86}, {1300, 0, in, 30}, {1500, 0, in, 30}, {1700, 1, in, 90}}, ambiguous, exact, 1200, 0, 1700},
		{"two producers", []sealed{{1200, 0, out, 86}, {1300, 2, out, 86}, {1500, 0, in, 30}, {1550, 2, in, 30}, {1700, 1, in, 90}}, ambiguous, ambiguous, 0, 0, 0},
		{"two subscriptions", []sealed{{1200, 0, out, 86}, {1500, 0, in, 30}, {1700, 1, in, 90}, {1710, 3, in, 90}}, exact, ambiguous, 1200, 1500, 0},
		{"too small for the message", []sealed{{1200, 0, out, 50}, {1500, 0, in, 30}, {1700, 1, in, 90}}, unseen, unseen, 0, 0, 0},
		{"nothing came", []sealed{{1200, 0, out, 86}}, unseen, unseen, 0, 0, 0},
		{"nothing left", []sealed{{1500, 0, in, 30}, {1700, 1, in, 90}}, unseen, unseen, 0, 0, 0},
	} {
		w := newWiretap()
		w.hidden, w.sized, w.answered = true, true, true
		for _, all := range [][]sealed{before, x.segments, after} {
			for _, s := range all {
				w.send(s.at, s.conn, s.out, bytes.Repeat([]byte{7}, s.length))
			}
		}
		w.order()
		var sent, got Parts
		m := &Message{Stream: 3, Seq: 9, Bytes: 64, Due: 1000, Start: 1000, End: 2000}
		w.confirmed(m, &sent)
		w.delivered(m, &got)
		for _, y := range []struct {
			what string
			p    *Parts
			want want
			came int64
		}{{"confirmed", &sent, x.sent, x.acked}, {"delivered", &got, x.got, x.given}} {
			p := y.p
			if has := (want{p.Exact, p.Bounded, p.Ambiguous, p.Unseen}); has != y.want {
				t.Errorf("%s, %s: %+v, want %+v", x.name, y.what, has, y.want)
				continue
			}
			if p.Known() == 1 && (p.System.Max() != y.came-x.left || p.HostIn.Max() != m.End-y.came) {
				t.Errorf("%s, %s: wire and system %d, host in %d; want %d and %d", x.name, y.what, p.System.Max(), p.HostIn.Max(), y.came-x.left, m.End-y.came)
			}
		}
	}
}

// TestHiddenMessagesOfAnUnknownPlace: without bounds on their size, answers or connections less is known.
func TestHiddenMessagesOfAnUnknownPlace(t *testing.T) {
	for _, x := range []struct {
		name      string
		set       func(w *window)
		sent, got uint64 // known
	}{
		{"all is known", func(*window) {}, 1, 1},
		{"compressible", func(w *window) { w.sized = false }, 0, 0}, // either of the segments that left
		{"confirmed by the client", func(w *window) { w.answered = false }, 0, 1},
		{"a new connection", func(w *window) { w.unwatched = true }, 0, 0},
	} {
		w := newWiretap()
		w.hidden, w.sized, w.answered = true, true, true
		x.set(w.window)
		w.send(1100, 2, true, make([]byte, 20))
		w.send(1200, 0, true, make([]byte, 86))
		w.send(1500, 0, false, make([]byte, 30))
		w.send(1700, 1, false, make([]byte, 90))
		w.order()
		var sent, got Parts
		m := &Message{Stream: 3, Seq: 9, Bytes: 64, Due: 1000, Start: 1000, End: 2000}
		w.confirmed(m, &sent)
		w.delivered(m, &got)
		if sent.Known() != x.sent || got.Known() != x.got || sent.Sampled() != 1 || got.Sampled() != 1 {
			t.Errorf("%s: %+v, %+v", x.name, sent, got)
		}
	}
}
