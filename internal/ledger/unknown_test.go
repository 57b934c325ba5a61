package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// lag sends messages of which every second one belongs to a partition that arrives last, after the
// first half; it returns the books.
func lag(messages uint64, maxOpen int) (all Book, l *Ledger) {
	l = New(Config{Streams: 1, Consumers: []int{1}, MaxOpen: maxOpen})
	r := l.Reader(0, 0)
	l.MeasureFrom(0, 0)
	for seq := range messages {
		l.Sent(0, seq, int64(seq), int64(seq))
		l.Confirmed(0, seq)
		if seq%2 == 0 {
			r.Delivered(&Event{Seq: seq, Due: int64(seq), Start: int64(seq), At: int64(seq)})
		}
		if seq%10_000 == 0 {
			l.Merge(nil)
		}
	}
	for seq := uint64(1); seq < messages; seq += 2 {
		r.Delivered(&Event{Partition: 1, Seq: seq, Due: int64(seq), Start: int64(seq), At: int64(messages + seq)})
		if seq%10_000 == 1 {
			l.Merge(nil)
		}
	}
	l.Merge(nil)
	all, _ = l.Book(0)
	return all, l
}

// What the bound closed before it arrived is neither lost nor, if it arrives later, a duplicate.
func TestMessagesClosedByBoundAreUnknown(t *testing.T) {
	const messages = 30_000
	all, l := lag(messages, 1000)
	if all.Unknown == 0 || all.Unknown != all.Late || all.Unknown != all.Evicted {
		t.Errorf("Unknown = %d, Late = %d, Evicted = %d; want the same, more than 0", all.Unknown, all.Late, all.Evicted)
	}
	want := Book{
		Sent: messages, Confirmed: messages, Delivered: messages - all.Unknown,
		Unknown: all.Unknown, Late: all.Late, Evicted: all.Evicted,
	}
	golden.Equal(t, want, all, "Book")
	if got := l.Distinct(0); got != messages || l.Missing(0) != 0 || !l.Complete() {
		t.Errorf("Distinct = %d, Missing = %d, Complete = %v; want %d, 0, true", got, l.Missing(0), l.Complete(), messages)
	}
	n := uint64(0)
	l.Unknown(0, func(_ bool, k uint64, response, _ int64) {
		n += k
		if response > messages { // it arrived that much later
			t.Errorf("%d messages took %d at least; they took %d", k, response, messages)
		}
	})
	if n != all.Unknown {
		t.Errorf("Unknown visits %d messages; want %d", n, all.Unknown)
	}
	// Deliveries beyond the unknown messages are certainly duplicates.
	l.Reader(0, 0).Delivered(&Event{Seq: 1, At: 3 * messages})
	l.Merge(nil)
	if all, _ = l.Book(0); all.Duplicated != 1 || all.Late != want.Late {
		t.Errorf("Duplicated = %d, Late = %d after one more delivery; want 1, %d", all.Duplicated, all.Late, want.Late)
	}
}

// A fate that becomes known after the bound has closed its message is counted, so that all figures
// agree on what is confirmed.
func TestOutcomeAfterBoundIsCounted(t *testing.T) {
	const messages = 4000
	l := New(Config{Streams: 1, Consumers: []int{1}, MaxOpen: 200})
	for seq := range uint64(messages) {
		l.Sent(0, seq, int64(seq), int64(seq))
		if seq%4 == 0 {
			l.Confirmed(0, seq)
		}
		if seq%3 == 0 {
			l.Reader(0, 0).Delivered(&Event{Seq: seq, At: int64(seq)})
		}
		l.Merge(nil)
	}
	if l.Evicted() == 0 {
		t.Fatal("nothing was evicted")
	}
	for seq := range uint64(messages) {
		switch seq % 4 {
		case 1:
			l.Confirmed(0, seq)
		case 2:
			l.Failed(0, seq)
		}
	}
	all, _ := l.Book(0)
	senders, _ := l.Senders()
	for _, b := range []Book{all, senders} {
		if b.Sent != messages || b.Confirmed != messages/2 || b.Failed != messages/4 || b.Unconfirmed != messages/4 {
			t.Errorf("Sent = %d, Confirmed = %d, Failed = %d, Unconfirmed = %d of %d", b.Sent, b.Confirmed, b.Failed, b.Unconfirmed, messages)
		}
	}
	if got := l.Confirmations(); got != messages/2 {
		t.Errorf("Confirmations = %d; want %d", got, messages/2)
	}
	if all.Confirmed != all.Delivered+all.Corrupted+all.Missing+all.Unknown {
		t.Errorf("Book does not balance: %+v", all)
	}
	n := uint64(0)
	l.Unsuccessful(func(_ Fate, _ bool, k uint64, _, _ int64) { n += k })
	if n != messages/2 {
		t.Errorf("Unsuccessful visits %d; want %d", n, messages/2)
	}
}

// Whatever is closed, the ledger reports no false loss, duplicate or delivery.
func TestBoundNeverClaimsFalseOutcome(t *testing.T) {
	needs.NoRace(t)
	for seed := range uint64(30) {
		w := newWorld(seed)
		w.sound = true
		w.ledger = New(Config{Streams: w.streams, Consumers: w.consumers, MaxOpen: 20, From: w.from})
		w.play(3000)
		w.naive.merge()
		for sub := range w.consumers {
			all, window := w.ledger.Book(sub)
			trueAll, trueWindow := w.naive.book(sub)
			for _, b := range []struct{ got, want Book }{{all, trueAll}, {window, trueWindow}} {
				got, want := b.got, b.want
				if got.Confirmed != want.Confirmed || got.Failed != want.Failed || got.Unconfirmed != want.Unconfirmed {
					t.Errorf("seed %d: Book(%d) = %+v; want the fates of %+v", seed, sub, got, want)
				}
				if got.Missing > want.Missing || got.Missing+got.Unknown < want.Missing ||
					got.Delivered > want.Delivered || got.Delivered+got.Unknown < want.Delivered ||
					got.Corrupted > want.Corrupted || got.Corrupted+got.Unknown < want.Corrupted ||
					got.Duplicated > want.Duplicated || got.Duplicated+got.Late < want.Duplicated {
					t.Errorf("seed %d: Book(%d) = %+v; true is %+v", seed, sub, got, want)
				}
			}
		}
	}
}

func TestMisroutedDeliveryDoesNotDeliverMessage(t *testing.T) {
	l := New(Config{Streams: 2, Consumers: []int{1}, From: 2})
	for seq := range uint64(4) {
		if seq == 2 {
			l.MeasureFrom(0, seq)
		}
		l.Sent(0, seq, int64(seq), int64(seq))
		l.Confirmed(0, seq)
	}
	events := 0
	for _, e := range []Event{
		{Seq: 0, Due: 0},
		{Seq: 3, Due: 3, Misrouted: true}, // and never where it belongs
		{Seq: 2, Due: 2, Misrouted: true}, // and there too, in order
		{Seq: 1, Due: 1, Misrouted: true, Redelivered: true, Corrupted: true},
		{Seq: 1, Due: 1},
		{Seq: 2, Due: 2},
	} {
		l.Reader(0, 0).Delivered(&e)
	}
	l.Merge(func(int, *Event) { events++ })
	want := Book{Sent: 4, Confirmed: 4, Delivered: 3, Missing: 1, Misrouted: 3}
	p := new(Part)
	l.LastPart(p)
	j := must.Get(Join([]*Part{travel(t, p)}, nil))(t)
	all, window := l.Book(0)
	joined, joinedWindow := j.Book(0)
	if diff := cmp.Diff([]Book{want, want}, []Book{all, joined}); diff != "" || events != 3 {
		t.Errorf("Merge told of %d; want 3. Book of the ledger, and of its part (-want +got):\n%s", events, diff)
	}
	if window.Misrouted != 2 || joinedWindow != window {
		t.Errorf("Misrouted in the window = %d; want 2. Its part has %+v", window.Misrouted, joinedWindow)
	}
}

// A partition that lags behind another costs a bit per message, not a span: this run overflowed
// earlier ledgers, and is now exact in a small part of its bound.
func TestLaggingPartitionCostsOneBitPerMessage(t *testing.T) {
	messages := uint64(2_400_000) // of which every second one lags: 1.2 million
	if needs.Less() {
		messages = 240_000
	}
	l := New(Config{Streams: 1, Consumers: []int{1}})
	r := l.Reader(0, 0)
	for seq := range messages {
		l.Sent(0, seq, int64(seq), int64(seq))
		l.Confirmed(0, seq)
		if seq%2 == 0 {
			r.Delivered(&Event{Seq: seq, At: int64(seq)})
		}
		if seq%10_000 == 0 {
			l.Merge(nil)
		}
	}
	l.Merge(nil)
	if got, most := l.open(), int(messages/windowLen+2)*bitsCost; got > most || got > l.maxOpen {
		t.Errorf("%d holes count %d; want %d at most, of %d", messages/2, got, most, l.maxOpen)
	}
	p := new(Part)
	l.Part(p)
	j := must.Get(Join([]*Part{travel(t, p)}, nil))(t)
	if all, _ := j.Book(0); all.Missing != messages/2 || all.Delivered != messages/2 || all.Evicted != 0 {
		t.Errorf("half way the joined book is %+v", all)
	}
	for seq := uint64(1); seq < messages; seq += 2 {
		r.Delivered(&Event{Partition: 1, Seq: seq, At: int64(messages + seq)})
		if seq%10_000 == 1 {
			l.Merge(nil)
		}
	}
	l.Merge(nil)
	all, _ := l.Book(0)
	if diff := cmp.Diff(Book{Sent: messages, Confirmed: messages, Delivered: messages}, all); diff != "" || l.open() != 0 {
		t.Errorf("%d spans are left; Book (-want +got):\n%s", l.open(), diff)
	}
}
