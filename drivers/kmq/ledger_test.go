package kmq

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// A log is a partition of markers.
type log struct{ next int64 }

func (l *log) mark(offset int64, value []byte) *kgo.Record {
	key := make([]byte, keySize)
	putKey(key, 3, offset)
	l.next++
	return &kgo.Record{Partition: 3, Offset: l.next - 1, Key: key, Value: value}
}

func (l *log) start(offset int64) *kgo.Record { return l.mark(offset, startValue(time.Second)) }
func (l *log) end(offset int64) *kgo.Record   { return l.mark(offset, endValue[:]) }

func TestLedgerTracksOpenAndDueMessages(t *testing.T) {
	const ticks = 10
	var at log
	l := newLedger()
	if l.position() != -1 || l.due(100, ticks) {
		t.Fatal("a new ledger has read something")
	}
	take := func(now int64, rs ...*kgo.Record) {
		for _, r := range rs {
			if !l.take(r, now) {
				t.Fatalf("%v is not a marker", r)
			}
		}
	}
	take(0, at.start(5), at.start(6), at.start(7)) // markers 0 to 2
	take(1, at.end(6))
	if l.position() != 0 || l.due(9, ticks) || !l.due(10, ticks) {
		t.Errorf("position %d, due at 9 %v, at 10 %v; want 0, false, true", l.position(), l.due(9, ticks), l.due(10, ticks))
	}
	take(5, at.end(5), at.start(8)) // 4 and 5
	if l.position() != 2 {
		t.Errorf("position %d; want 2, of message 7", l.position())
	}
	// What is due waits for the markers that existed then.
	l.asked, l.asOf, l.until = true, 10, at.next+1
	if got := l.overdue(ticks); got != nil {
		t.Errorf("%v before the last marker was read", got)
	}
	take(12, at.start(9)) // 6
	if got := l.overdue(ticks); !slices.Equal(got, []int64{7}) {
		t.Errorf("overdue %v; want 7: message 8 was started 5 ticks ago", got)
	}
	if l.due(14, ticks) || !l.due(15, ticks) {
		t.Error("what is being sent again is due, or what is behind it is not")
	}
	l.failed([]int64{7})
	if !l.due(14, ticks) {
		t.Error("what could not be sent again is not due")
	}
	take(15, at.end(7), at.end(8), at.end(9))
	if l.position() != at.next || len(l.open) != 0 || l.due(1000, ticks) {
		t.Errorf("position %d, open %v; want %d and none", l.position(), l.open, at.next)
	}
}

func TestRestartedMessageCountsFromSecondStart(t *testing.T) {
	var at log
	l := newLedger()
	l.take(at.start(1), 0)
	l.take(at.start(1), 8)
	if l.position() != 1 || l.due(12, 10) || !l.due(18, 10) {
		t.Errorf("position %d, due at 12 %v, at 18 %v; want 1, false, true", l.position(), l.due(12, 10), l.due(18, 10))
	}
	if l.take(at.end(1), 9); l.position() != 3 {
		t.Errorf("position %d; want 3: one end is enough", l.position())
	}
}

func TestLedgerKeepsOnlyOpenMessages(t *testing.T) {
	var at log
	l := newLedger()
	l.take(at.start(0), 0)
	for i := int64(1); i < 50_000; i++ {
		l.take(at.start(i), i)
		l.take(at.end(i-1), i)
		l.position()
	}
	if len(l.open) != 1 || len(l.order) > 2*compactAt {
		t.Errorf("%d open, %d in order; want 1 and few", len(l.open), len(l.order))
	}
}

func TestNonMarkerIsRejected(t *testing.T) {
	var at log
	other := at.start(1)
	other.Partition = 4
	for name, r := range map[string]*kgo.Record{
		"no key": {Value: []byte{0}}, "a short key": {Key: []byte("short"), Value: []byte{0}}, "no value": at.mark(1, nil),
		"an unknown kind": at.mark(1, []byte{2}), "of another partition": other,
	} {
		l := newLedger()
		if l.take(r, 0) || len(l.open) > 0 || l.next != r.Offset+1 {
			t.Errorf("%s: taken as a marker", name)
		}
	}
}

func TestRedeliveriesAreCounted(t *testing.T) {
	r := &kgo.Record{Topic: "q", Partition: 2, Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "theirs", Value: []byte("x")}}}
	for n := 1; n <= 300; n++ {
		r = again(r)
		if got := sentAgain(r); got != n || len(r.Headers) != 2 || r.Headers[0].Key != "theirs" || r.Partition != 2 || string(r.Key) != "k" || string(r.Value) != "v" {
			t.Fatalf("after %d times: %d, %+v", n, got, r)
		}
	}
}

func TestTicksAreShortAndCoverTheTime(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{100 * time.Millisecond: 10 * time.Millisecond, 5 * time.Second: 500 * time.Millisecond, time.Hour: 500 * time.Millisecond} {
		each, n := tick(after)
		if each != want || time.Duration(n)*each < after {
			t.Errorf("%v: %d ticks of %v", after, n, each)
		}
	}
}

// A silent sink counts settlements and calls.
type silent struct{ settled, failed, calls, faults int }

func (s *silent) Ready()                          {}
func (s *silent) Deliver([]driver.Delivery) error { return nil }
func (s *silent) Fault(error)                     { s.faults++ }
func (s *silent) Settled(ds []driver.Delivery, err error) {
	s.calls++
	if err != nil {
		s.failed += len(ds)
		return
	}
	s.settled += len(ds)
}

func TestEndMarkersAck(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		settle                         driver.Settle
		err                            error // of the second of 5
		settled, failed, calls, faults int
	}{
		{driver.SettleEach, nil, 5, 0, 5, 0},
		{driver.SettleBatch, nil, 5, 0, 1, 0},
		{driver.SettleEach, lost, 4, 1, 5, 1},
		{driver.SettleBatch, lost, 4, 1, 5, 1},
	} {
		sink := &silent{}
		r := newRunning(&consumer{Consumer: &kafkaconn.Consumer{Spec: driver.ConsumerSpec{Settle: c.settle}}, conn: &conn{cfg: *newConfig()}}, sink)
		e := r.ending(5)
		e.ds = make([]driver.Delivery, 5)
		e.left.Store(5)
		for i, m := range e.marks {
			var err error
			if i == 1 {
				err = c.err
			}
			m.done(&m.record, err)
		}
		if want := (silent{c.settled, c.failed, c.calls, c.faults}); *sink != want || r.open != 0 {
			t.Errorf("settle %v, %v: %+v, %d open; want %+v, 0", c.settle, c.err, *sink, r.open, want)
		}
	}
}

// TestMarkersAllocateNothingOfTheDriversOwn covers what Take does per message, apart from the
// client.
func TestMarkersAllocateNothingOfTheDriversOwn(t *testing.T) {
	r := newRunning(&consumer{Consumer: &kafkaconn.Consumer{}, conn: &conn{cfg: *newConfig()}}, &silent{})
	rs := make([]*kgo.Record, 500)
	for i := range rs {
		rs[i] = &kgo.Record{Topic: "d", Offset: int64(i)}
	}
	markers := map[string]string{"d": "d.markers"}
	ds := make([]driver.Delivery, len(rs))
	poll := func() {
		r.starting.prepare(rs, markers)
		e := r.ending(len(rs))
		e.ds = append(e.ds[:0], ds...)
		e.left.Store(int64(len(rs)))
		for _, m := range e.marks {
			m.done(&m.record, nil)
		}
	}
	poll()
	if n := testing.AllocsPerRun(20, poll); n > 0 {
		t.Errorf("%v allocations for %d messages; want none", n, len(rs))
	}
}
