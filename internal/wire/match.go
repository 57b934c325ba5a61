package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/stamp"
)

// A segment is a TCP segment with data, as recorded.
type segment struct {
	at      int64 // CLOCK_MONOTONIC, ns
	conn    uint32
	out     bool // sent; otherwise received
	seq     uint32
	length  uint32
	payload []byte // its first bytes, usually all; valid until the next is read
}

// A window holds what was recorded while some messages were open: their segments by connection, and
// in which of them headers were seen.
type window struct {
	hidden    bool // messages are encrypted: see hiddenMessage
	sized     bool // encrypted, a message has at least the bytes of its payload
	answered  bool // what confirms a message came in behind it
	unwatched bool // a connection was made that is not recorded
	run       uint32
	epoch     int64 // on CLOCK_MONOTONIC
	tracks    map[direction]*track
	sights    map[uint64]*sights
	from      int64 // when sampling began
	until     int64 // when recording ended
	delays    delays
	latest    int64  // when the latest segment passed
	number    int    // of segments
	room      int    // bytes of the ring buffer that they took
	data      []byte // contents of segments, up to mostData
}

// mostData bounds the contents that a window keeps.
const mostData = ringBytes

// A direction of a connection.
type direction struct {
	conn uint32
	out  bool
}

// A track holds the segments of one direction.
type track struct {
	direction
	segments []passage // in order of time
	came     []int64   // received: when segments could be read, ascending
	passed   []mark    // of a hidden window
}

// A passage is a segment without its payload. Its instants are since the run's epoch.
type passage struct {
	seq, length uint32
	data        int    // where the window's data has its contents
	kept        uint32 // how many bytes of them
	at          int64
	ready       int64 // received: when it could be read, since all before it had come; never: it could not
}

const never = math.MaxInt64

// sights are where a message's header was seen: the first time sent, and each time received.
type sights struct {
	out *sight
	in  []sight
}

// A sight is a header in a segment.
type sight struct {
	track   *track
	segment int    // index
	seq     uint32 // of the header's first byte
	body    uint32 // its checksum, as the header has it
}

func newWindow(run uint32, epoch int64) *window {
	return &window{run: run, epoch: epoch, tracks: map[direction]*track{}, sights: map[uint64]*sights{}}
}

// add records a segment.
func (w *window) add(s *segment) {
	w.number++
	w.latest = max(w.latest, s.at-w.epoch)
	w.room += headSize + roomFor(len(s.payload))
	id := direction{s.conn, s.out}
	t := w.tracks[id]
	if t == nil {
		t = &track{direction: id}
		w.tracks[id] = t
	}
	i, kept := len(t.segments), 0
	if !w.hidden && len(w.data)+len(s.payload) <= mostData {
		kept = len(s.payload)
	}
	t.segments = append(t.segments, passage{seq: s.seq, length: s.length, data: len(w.data), kept: uint32(kept), at: s.at - w.epoch, ready: never})
	w.data = append(w.data, s.payload[:kept]...)
	if w.hidden {
		return
	}
	headers(s.payload, w.run, func(offset int, k uint64) {
		x := w.sights[k]
		if x == nil {
			x = &sights{}
			w.sights[k] = x
		}
		at := sight{t, i, s.seq + uint32(offset), stamp.BodyChecksum(s.payload[offset:])}
		if !s.out {
			x.in = append(x.in, at)
		} else if x.out == nil {
			x.out = &at
		}
	})
}

// headers calls visit for each header of the run in b, with its offset and key.
func headers(b []byte, run uint32, visit func(offset int, key uint64)) {
	const before = 4 // bytes of the header before the run number
	var number [4]byte
	binary.LittleEndian.PutUint32(number[:], run)
	for from := before; from < len(b); {
		i := bytes.Index(b[from:], number[:])
		if i < 0 {
			return
		}
		at := from + i - before
		if stream, seq, ok := stamp.Of(b[at:], run); ok {
			visit(at, key(stream, seq))
			from = at + stamp.Size + before
		} else {
			from += i + 1
		}
	}
}

// order finds out when the received segments could be read: TCP keeps what comes before its turn.
func (w *window) order() {
	for _, t := range w.tracks {
		t.order()
		if w.hidden {
			t.passed = t.marks()
		}
	}
}

func (t *track) order() {
	if t.out || len(t.segments) == 0 {
		return
	}
	next := t.segments[0].seq
	var held []int
	for i := range t.segments {
		s := &t.segments[i]
		if ahead := int32(s.seq - next); ahead > 0 {
			held = append(held, i)
			continue
		}
		s.ready = s.at
		next = later(next, s.seq+s.length)
		for again := true; again; {
			again = false
			held = slices.DeleteFunc(held, func(j int) bool {
				h := &t.segments[j]
				if int32(h.seq-next) > 0 {
					return false
				}
				h.ready, next, again = s.at, later(next, h.seq+h.length), true
				return true
			})
		}
	}
	for i := range t.segments {
		if t.segments[i].ready != never {
			t.came = append(t.came, t.segments[i].ready)
		}
	}
	slices.Sort(t.came)
}

// later returns the later of two sequence numbers.
func later(a, b uint32) uint32 {
	if int32(b-a) > 0 {
		return b
	}
	return a
}

// passed returns when the last byte of a message of that size passed, whose header was seen at s;
// never: not in this window, or the bytes behind the header are not the message's. Compression and
// framing may leave a header as it is, and nothing else.
func (w *window) passed(s *sight, size int) int64 {
	end := s.seq + uint32(size) - 1
	body := s.seq + stamp.Size
	var latest int64
	var sum uint32
	for next := s.seq; ; { // a hole in the segments that were sent is a retransmission's
		found := false
		for i := s.segment; i < len(s.track.segments); i++ {
			p := &s.track.segments[i]
			if int32(p.seq-next) > 0 || int32(next-(p.seq+p.length)) >= 0 {
				continue
			}
			at := p.at
			if !s.track.out {
				at = p.ready
			}
			latest = max(latest, at)
			last := int32(end-(p.seq+p.length)) < 0
			from, to := later(next, body)-p.seq, p.length
			if last {
				to = end + 1 - p.seq
			}
			if to > p.kept {
				return never
			}
			if from < to {
				sum = stamp.MoreChecksum(sum, w.data[p.data+int(from):p.data+int(to)])
			}
			if last {
				if sum != s.body {
					return never
				}
				return latest
			}
			next, found = p.seq+p.length, true
			break
		}
		if !found {
			return never
		}
	}
}

// held returns the latest instant between two at which an answer came in; the first if none did. t is
// nil if nothing came in at all.
func (t *track) held(start, left int64) int64 {
	if t == nil {
		return start
	}
	i, _ := slices.BinarySearch(t.came, left)
	if i == 0 {
		return start
	}
	return max(start, t.came[i-1])
}

// clocksApart is more, in ns, than the kernel's clock and weir's may differ by. What left earlier before a message was
// begun is not that message, or the clock of this process was stepped.
const clocksApart = 1_000_000

// left returns where a message was seen, and when its last byte left this host. It leaves the message out of p, and
// returns nil, if that is not known.
func (w *window) left(m *Message, p *Parts) (*sights, int64) {
	if m.End > w.until {
		p.leave(m, &p.Late)
		return nil, 0
	}
	if x := w.sights[m.key()]; x != nil && x.out != nil {
		if left := w.passed(x.out, m.Bytes); left <= m.End && left >= m.Start-clocksApart {
			return x, left
		}
	}
	p.leave(m, &p.Unseen)
	return nil, 0
}

// confirmed adds a confirmed message to p.
func (w *window) confirmed(m *Message, p *Parts) {
	switch {
	case w.hidden && w.answered:
		w.hiddenMessage(m, p, false)
		return
	case w.hidden:
		p.leave(m, &p.Unseen)
		return
	}
	x, left := w.left(m, p)
	if x == nil {
		return
	}
	back := w.tracks[direction{conn: x.out.track.conn}]
	if back == nil {
		p.leave(m, &p.Unseen)
		return
	}
	held := back.held(m.Start, left)
	first, _ := slices.BinarySearch(back.came, left+1)
	after, _ := slices.BinarySearch(back.came, m.End+1)
	switch after - first {
	case 0:
		p.leave(m, &p.Unseen)
		return
	case 1:
		p.know(w, m, held, left, back.came[first], &p.Exact)
		return
	}
	from, to := back.came[first], back.came[after-1]
	middle := (from + to) / 2
	switch apart := float64(to - from); {
	case apart <= Tolerance*float64(m.End-m.Start):
		p.know(w, m, held, left, middle, &p.Bounded)
	case apart <= Tolerance*float64(m.End-m.Due): // of what it waited before, this is little
		p.Ambiguous++
		p.level(m, held, left, middle)
	default:
		p.leave(m, &p.Ambiguous)
	}
}

// delivered adds a delivered message to p.
func (w *window) delivered(m *Message, p *Parts) {
	if w.hidden {
		w.hiddenMessage(m, p, true)
		return
	}
	x, left := w.left(m, p)
	if x == nil {
		return
	}
	came, several := int64(never), false
	for i := range x.in {
		if at := w.passed(&x.in[i], m.Bytes); at >= left && at <= m.End {
			several = came != never
			came = min(came, at)
		}
	}
	switch {
	case several: // several subscriptions, or a second delivery
		p.leave(m, &p.Ambiguous)
	case came == never:
		p.leave(m, &p.Unseen)
	default:
		p.know(w, m, w.tracks[direction{conn: x.out.track.conn}].held(m.Start, left), left, came, &p.Exact)
	}
}
