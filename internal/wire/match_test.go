package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/stamp"
)

const (
	testRun   = 0x12345678
	testEpoch = 5_000_000
)

// payload returns a message of that size.
func payload(stream uint32, seq uint64, size int) []byte {
	b := bytes.Repeat([]byte{0x78}, size) // a byte of the run number
	stamp.Put(b, &stamp.Stamp{Run: testRun, Stream: stream, Seq: seq, CRC: stamp.Checksum(b[stamp.Size:])})
	return b
}

// A wiretap builds a window from segments.
type wiretap struct {
	*window
	next map[direction]uint32
}

func newWiretap() *wiretap {
	w := &wiretap{newWindow(testRun, testEpoch), map[direction]uint32{}}
	w.until = 1 << 40
	return w
}

// send adds the next segment of a direction.
func (w *wiretap) send(at int64, conn uint32, out bool, data []byte) {
	d := direction{conn, out}
	w.put(at, d, w.next[d], data)
	w.next[d] += uint32(len(data))
}

func (w *wiretap) put(at int64, d direction, seq uint32, data []byte) {
	w.add(&segment{at: at + testEpoch, conn: d.conn, out: d.out, seq: 4_294_967_000 + seq, length: uint32(len(data)), payload: data})
}

// known returns the three parts of the only message in p.
func known(t *testing.T, p *Parts) (out, system, in int64) {
	t.Helper()
	if p.Known() != 1 || p.Sampled() != 1 {
		t.Fatalf("%+v: want one known message", p)
	}
	return p.HostOut.Max(), p.System.Max(), p.HostIn.Max()
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func message(start, end int64, size int) *Message {
	return &Message{Stream: 3, Seq: 9, Bytes: size, Due: start - 50, Late: 20, Start: start, End: end}
}

func TestConfirmationInOneSegmentIsExact(t *testing.T) {
	w := newWiretap()
	w.send(90, 0, false, []byte("before it left"))
	w.send(110, 0, true, join([]byte("PUB x 64\r\n"), payload(3, 8, 64), payload(3, 9, 64)))
	w.send(120, 1, false, []byte("another connection"))
	w.send(150, 0, false, []byte("ack"))
	w.send(190, 0, false, []byte("after it was confirmed"))
	w.order()
	var p Parts
	w.confirmed(message(100, 180, 64), &p)
	if out, system, in := known(t, &p); out != 10 || system != 40 || in != 30 || p.Exact != 1 {
		t.Errorf("%d, %d, %d: %+v", out, system, in, p)
	}
	l := p.Levels[0]
	if l.Lateness != 20 || l.Blocked != 30 || l.HostNS() != 60 || l.TotalNS() != 130 {
		t.Errorf("%+v", l)
	}
}

func TestConfirmationInSeveralSegments(t *testing.T) {
	for _, x := range []struct {
		name          string
		second        int64
		bounded, left uint64
	}{{"close together", 10_400, 1, 0}, {"far apart", 14_000, 0, 1}} {
		w := newWiretap()
		w.send(1000, 0, true, payload(3, 9, 64))
		w.send(10_000, 0, false, []byte("one"))
		w.send(x.second, 0, false, []byte("two"))
		w.order()
		var p Parts
		w.confirmed(message(0, 20_000, 64), &p)
		if p.Bounded != x.bounded || p.Ambiguous != x.left || p.Sampled() != 1 {
			t.Errorf("%s: %+v", x.name, p)
		}
		if x.bounded == 1 && p.HostIn.Max() != 9_800 {
			t.Errorf("%s: host in %d, want that of the middle", x.name, p.HostIn.Max())
		}
	}
}

// TestTimeBeforeAnAnswerIsHeld: the client may have waited for it.
func TestTimeBeforeAnAnswerIsHeld(t *testing.T) {
	w := newWiretap()
	w.send(90, 0, false, []byte("before the hand-over"))
	w.send(120, 0, false, []byte("an answer"))
	w.send(130, 0, false, []byte("another"))
	w.send(135, 1, false, []byte("another connection"))
	w.send(140, 0, true, payload(3, 9, 64))
	w.send(150, 0, false, []byte("ack"))
	w.send(160, 1, false, payload(3, 9, 64))
	w.order()
	for _, add := range []func(*Message, *Parts){w.confirmed, w.delivered} {
		var p Parts
		add(message(100, 180, 64), &p)
		if out, _, _ := known(t, &p); out != 10 || p.Held.Max() != 30 || p.Levels[0].Held != 30 || p.Levels[0].TotalNS() != 130 {
			t.Errorf("host out %d: %+v", out, p.Levels)
		}
	}
}

// TestDeliveryIsKnownByItsHeader: however many are in flight.
func TestDeliveryIsKnownByItsHeader(t *testing.T) {
	w := newWiretap()
	w.send(110, 0, true, join(payload(3, 9, 64), payload(3, 10, 64)))
	for i := range 5 {
		w.send(int64(120+i), 1, false, payload(3, uint64(i), 64))
	}
	w.send(140, 1, false, join([]byte("MSG"), payload(3, 9, 64)))
	w.send(145, 1, false, payload(3, 10, 64))
	w.order()
	var p Parts
	w.delivered(message(100, 180, 64), &p)
	if out, system, in := known(t, &p); out != 10 || system != 30 || in != 40 || p.Exact != 1 {
		t.Errorf("%d, %d, %d", out, system, in)
	}
	w.send(150, 2, false, payload(3, 9, 64))
	w.order()
	p = Parts{}
	w.delivered(message(100, 180, 64), &p)
	if p.Ambiguous != 1 || p.Sampled() != 1 {
		t.Errorf("delivered twice: %+v", p)
	}
}

// TestLastByteCounts: of a message in several segments.
func TestLastByteCounts(t *testing.T) {
	w := newWiretap()
	b := payload(3, 9, 300)
	w.send(110, 0, true, b[:100])
	w.send(115, 0, true, b[100:200])
	w.send(117, 0, true, join(b[200:], []byte("the next")))
	w.send(140, 0, false, b[:250])
	w.send(160, 0, false, b[250:])
	w.order()
	var p Parts
	w.delivered(message(100, 180, 300), &p)
	if out, system, in := known(t, &p); out != 17 || system != 43 || in != 20 {
		t.Errorf("%d, %d, %d", out, system, in)
	}
}

// TestHeaderOfOtherBodyDoesNotMatch: a compressor or a protocol's frames may leave a header as it is,
// and not what follows. By byte numbers, the last byte would then have passed with something else, later or earlier.
func TestHeaderOfOtherBodyDoesNotMatch(t *testing.T) {
	whole := payload(3, 9, 300)
	for _, x := range []struct {
		name  string
		sent  [][]byte
		known uint64
	}{
		{"as it is", [][]byte{whole}, 1},
		{"as it is, in three segments", [][]byte{whole[:20+stamp.Size], whole[20+stamp.Size : 200], join(whole[200:], []byte("next"))}, 1},
		{"compressed, before another batch", [][]byte{join(whole[:40], []byte("run of x")), join(payload(3, 10, 300)[:40], bytes.Repeat([]byte{1}, 300))}, 0},
		{"in frames", [][]byte{join(whole[:150], []byte("frame"), whole[150:])}, 0},
		{"one byte is missing", [][]byte{join(whole[:299], []byte{0})}, 0},
	} {
		w := newWiretap()
		for i, b := range x.sent {
			w.send(110+int64(i), 0, true, b)
			w.send(140+int64(i), 1, false, b)
		}
		w.send(150, 0, false, []byte("ack"))
		w.order()
		var sent, got Parts
		w.confirmed(message(100, 180, 300), &sent)
		w.delivered(message(100, 180, 300), &got)
		if sent.Known() != x.known || got.Known() != x.known || sent.Unseen != 1-x.known || got.Unseen != 1-x.known {
			t.Errorf("%s: %+v, %+v", x.name, sent, got)
		}
	}
}

// TestMessageInACutSegment: of a long segment, a record holds the beginning.
func TestMessageInACutSegment(t *testing.T) {
	b := join(payload(3, 9, 300), payload(3, 10, 300))
	for kept, want := range map[int]uint64{300: 1, 299: 0} {
		w := newWiretap()
		w.add(&segment{at: 110 + testEpoch, conn: 0, out: true, seq: 7, length: uint32(len(b)), payload: b[:kept]})
		w.send(150, 0, false, []byte("ack"))
		w.order()
		var p Parts
		w.confirmed(message(100, 180, 300), &p)
		if p.Known() != want || p.Sampled() != 1 {
			t.Errorf("%d bytes: %+v", kept, p)
		}
	}
}

// TestSegmentAfterGapNotReady: the program cannot read it before the hole is filled.
func TestSegmentAfterGapNotReady(t *testing.T) {
	w := newWiretap()
	w.send(110, 0, true, payload(3, 9, 64))
	in := direction{conn: 1}
	w.put(120, in, 0, []byte("first"))
	w.put(130, in, 100, payload(3, 9, 64)) // 5 to 99 are missing
	w.put(170, in, 5, bytes.Repeat([]byte{1}, 95))
	w.order()
	var p Parts
	w.delivered(message(100, 180, 64), &p)
	if out, system, in := known(t, &p); out != 10 || system != 60 || in != 10 {
		t.Errorf("%d, %d, %d", out, system, in)
	}
}

func TestRetransmissionIsNotWhenItLeft(t *testing.T) {
	w := newWiretap()
	out := direction{0, true}
	w.put(110, out, 0, payload(3, 9, 64))
	w.put(150, out, 0, payload(3, 9, 64))
	w.send(160, 1, false, payload(3, 9, 64))
	w.order()
	var p Parts
	w.delivered(message(100, 180, 64), &p)
	if out, _, _ := known(t, &p); out != 10 {
		t.Errorf("host out %d", out)
	}
}

func TestLeftOutMessagesAreCounted(t *testing.T) {
	w := newWiretap()
	w.until = 500
	w.send(110, 0, true, payload(3, 9, 64))
	w.order()
	var p Parts
	w.confirmed(message(100, 180, 64), &p)
	w.delivered(message(100, 180, 64), &p)
	w.delivered(&Message{Stream: 4, Seq: 9, Bytes: 64, Start: 100, End: 180}, &p)
	w.confirmed(message(100, 501, 64), &p)
	if p.Unseen != 3 || p.Late != 1 || p.Sampled() != 4 || p.Known() != 0 {
		t.Errorf("%+v", p)
	}
	if _, ok := p.Around(130); ok {
		t.Error("a share is known of no messages")
	}
}

// The clocks of kernel and process may differ a little; a segment that left long before its message was begun is not its.
func TestSegmentBeforeMessageIgnored(t *testing.T) {
	for _, x := range []struct {
		start int64
		known uint64
	}{{111, 1}, {110 + clocksApart, 1}, {111 + clocksApart, 0}} {
		w := newWiretap()
		w.send(110, 0, true, payload(3, 9, 64))
		w.send(120, 0, false, []byte("ack"))
		w.send(121, 1, false, payload(3, 9, 64))
		w.order()
		w.delays = newDelays(0, 10*clocksApart)
		w.delays.add(delayed{at: 7 * clocksApart, by: 4 * clocksApart})
		var sent, got Parts
		w.confirmed(message(x.start, 3*clocksApart, 64), &sent)
		w.delivered(message(x.start, 3*clocksApart, 64), &got)
		if sent.Known() != x.known || got.Known() != x.known || sent.Unseen != 1-x.known || got.Unseen != 1-x.known {
			t.Errorf("begun at %d: %+v, %+v", x.start, sent, got)
		}
	}
}

// TestHeadersAreFoundAtAnyOffset also tests text that looks like the beginning of one.
func TestHeadersAreFoundAtAnyOffset(t *testing.T) {
	number := []byte{0x78, 0x56, 0x34, 0x12}
	b := join(number, []byte("ab"), number, payload(1, 2, 40), number, payload(3, 4, 32), payload(5, 6, 33), payload(7, 8, 64)[:31])
	var got []uint64
	headers(b, testRun, func(offset int, k uint64) { got = append(got, uint64(offset), k>>40, k&stamp.MaxSeq) })
	want := []uint64{10, 1, 2, 54, 3, 4, 86, 5, 6}
	if len(got) != len(want) {
		t.Fatalf("%v; want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%v; want %v", got, want)
		}
	}
}

func TestBucketsAreAnEighthWide(t *testing.T) {
	last := Bucket(0)
	for ns := int64(8); ns < 4_000_000; ns++ {
		b := Bucket(ns)
		if b != last && b != last+1 {
			t.Fatalf("bucket of %d is %d, after %d", ns, b, last)
		}
		if Bucket(ns+ns/7+1) == b {
			t.Fatalf("%d and %d share a bucket", ns, ns+ns/7+1)
		}
		last = b
	}
}

// TestReportsAddUp also after they travelled as JSON.
func TestReportsAddUp(t *testing.T) {
	part := func(latency, out, from, delay int64) *Report {
		r := &Report{Windows: 1, Segments: 7, CostNS: 2, UsedNS: 100}
		for range 10 {
			r.E2E.know(&window{from: from, delays: delays{step: never, most: []int64{delay}}}, &Message{Start: 0, End: latency}, 0, out, latency-out, &r.E2E.Exact)
		}
		r.E2E.leave(&Message{End: latency}, &r.E2E.Late)
		b := must.Get(json.Marshal(r))(t)
		var again Report
		must.Do(t, json.Unmarshal(b, &again))
		return &again
	}
	sum := part(1000, 100, 0, 70)
	sum.Merge(part(1000, 300, 350e6, 65))
	sum.Merge(part(4000, 1000, 10e9, 1))
	if sum.Windows != 3 || sum.E2E.Exact != 30 || sum.E2E.Late != 3 || sum.E2E.HostOut.Total() != 30 || sum.E2E.HostOut.Max() != 1000 {
		t.Fatalf("%+v", sum)
	}
	l, ok := sum.E2E.Around(1000)
	if !ok || l.Known != 20 || l.LeftOut != 2 || l.HostNS() != 10*(200+600) || l.TotalNS() != 20*1000 {
		t.Errorf("%+v, %v", l, ok)
	}
	if sum.E2E.Latency.Max() != 4000 || sum.E2E.Rest.Max() != 2000 {
		t.Errorf("latency %d, rest %d", sum.E2E.Latency.Max(), sum.E2E.Rest.Max())
	}
	groups := sum.E2E.Groups // the later windows need steps of 200 ms
	if len(groups) != 3 || sum.E2E.StepNS != 2*firstStep || groups[0].Delay != 96 || groups[1].Step != 1 || groups[2].Step != 50 || groups[2].System.Total() != 10 {
		t.Errorf("steps of %d ns: %+v", sum.E2E.StepNS, groups)
	}
}

func TestDelaysAreRoundedUp(t *testing.T) {
	for ns, want := range map[int64]int64{-5: 1, 0: 1, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 6, 7: 8, 8: 8, 9: 12, 1000: 1024, 1_100_000: 1_572_864} {
		if got := roundedDelay(ns); got != want {
			t.Errorf("%d: %d, want %d", ns, got, want)
		}
	}
}
