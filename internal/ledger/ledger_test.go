package ledger

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func TestNewRejectsInvalidConfig(t *testing.T) {
	for _, c := range []Config{{}, {Streams: -1}, {Streams: 1, MaxOpen: -1}, {Streams: 1, RingBytes: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%+v) does not panic", c)
				}
			}()
			New(c)
		}()
	}
}

func TestGapInSendsPanics(t *testing.T) {
	l := New(Config{Streams: 1})
	l.Sent(0, 0, 0, 0)
	defer func() {
		if recover() == nil {
			t.Error("Sent of message 2 after message 0 does not panic")
		}
	}()
	l.Sent(0, 2, 0, 0)
}

func TestUnsentDeliveryIsForeign(t *testing.T) {
	l := New(Config{Streams: 1, Consumers: []int{1}})
	l.Sent(0, 0, 0, 0)
	l.Confirmed(0, 0)
	for _, e := range []Event{{Seq: 0}, {Seq: 1}, {Seq: 1 << 39}, {Seq: 1<<39 + 1}, {Stream: 1}, {Stream: 1<<32 - 1}} {
		l.Reader(0, 0).Delivered(&e)
	}
	l.Reader(0, 0).Foreign()
	l.Merge(nil)
	all, window := l.Book(0)
	golden.Equal(t, Book{Sent: 1, Confirmed: 1, Delivered: 1, Foreign: 6}, all, "Book of the run")
	if window != (Book{}) {
		t.Errorf("Book of a window that never began = %+v", window)
	}
}

func TestDeliveredFailuresDoNotBlockDrain(t *testing.T) {
	l := New(Config{Streams: 1, Consumers: []int{1}})
	for seq := range uint64(3) {
		l.Sent(0, seq, 0, 0)
	}
	l.Failed(0, 0)
	l.Confirmed(0, 1)
	l.Reader(0, 0).Delivered(&Event{Seq: 0})
	l.Merge(nil)
	// The failed message hides the backlog from behind; Missing and Complete know.
	if l.behind() != 0 || l.Missing(0) != 1 || l.Complete() {
		t.Errorf("behind, Missing, Complete = %d, %d, %v; want 0, 1, false", l.behind(), l.Missing(0), l.Complete())
	}
	l.Reader(0, 0).Delivered(&Event{Seq: 1, Corrupted: true})
	l.Merge(nil)
	if l.Missing(0) != 0 || !l.Complete() {
		t.Errorf("Missing, Complete = %d, %v; want 0, true", l.Missing(0), l.Complete())
	}
}

func TestLedgerWithoutConsumersCountsSends(t *testing.T) {
	l := New(Config{Streams: 2, MaxOpen: 100})
	const n = 10_000
	for seq := range uint64(n) {
		for stream := range uint32(2) {
			if seq == n/2 {
				l.MeasureFrom(stream, seq)
			}
			l.Sent(stream, seq, int64(seq), int64(seq))
			if seq%2 == 0 {
				l.Confirmed(stream, seq)
			} else {
				l.Failed(stream, seq)
			}
		}
		if seq%100 == 0 {
			l.Merge(nil)
			if open := l.open(); open > 100 {
				t.Fatalf("%d spans are held; the bound is 100", open)
			}
		}
	}
	all, window := l.Senders()
	if want := (Book{Sent: 2 * n, Confirmed: n, Failed: n}); all != want || l.Evicted() != 0 || !l.Complete() {
		t.Errorf("Senders = %+v, Evicted = %d, Complete = %v; want %+v, 0, true", all, l.Evicted(), l.Complete(), want)
	}
	if want := (Book{Sent: n, Confirmed: n / 2, Failed: n / 2}); window != want {
		t.Errorf("Senders of the window = %+v; want %+v", window, want)
	}
	failed := uint64(0)
	l.Unsuccessful(func(fate Fate, _ bool, n uint64, _, _ int64) {
		if fate == FateFailed {
			failed += n
		}
	})
	if failed != n {
		t.Errorf("Unsuccessful visits %d failed messages; want %d", failed, n)
	}
}

// What the bound closes is old enough here to be really lost: the books are the exact ones, though
// the ledger keeps some hundred of the tens of thousands of spans.
func TestBoundClosesOldestAndStaysExact(t *testing.T) {
	needs.NoRace(t)
	const bound, streams, messages = 400, 3, 60_000
	w := newWorld(1)
	w.streams, w.partitions, w.consumers = streams, 1, []int{2, 1}
	w.next = make([]uint64, streams)
	w.ledger = New(Config{Streams: streams, Consumers: w.consumers, MaxOpen: bound, From: w.from})
	w.naive = newNaive(len(w.consumers))
	for i := range messages {
		w.now += 10
		w.send()
		for len(w.flight) > 5 {
			w.deliver()
		}
		for len(w.settles) > 5 {
			w.settle()
		}
		if i%20 == 0 {
			w.ledger.Merge(nil)
			w.naive.merge()
			// The newest messages cannot be closed: 64 of a stream make 32 holes of a set.
			if open := w.ledger.open(); open > bound {
				t.Fatalf("%d spans are held after %d messages; the bound is %d", open, i, bound)
			}
		}
	}
	w.ledger.Merge(nil)
	w.naive.merge()
	if w.ledger.Evicted() == 0 {
		t.Error("nothing was evicted")
	}
	for sub := range w.consumers {
		all, window := w.ledger.Book(sub)
		wantAll, wantWindow := w.naive.book(sub)
		if all.Evicted == 0 || all.Evicted > all.Missing+all.Unknown+all.Failed+all.Unconfirmed {
			t.Errorf("Book(%d).Evicted = %d of %+v", sub, all.Evicted, all)
		}
		for _, b := range []*Book{&all, &window} {
			// What the bound closed never arrives here, so it is really missing.
			b.Missing, b.Unknown, b.Duplicated, b.Late = b.Missing+b.Unknown, 0, b.Duplicated+b.Late, 0
			b.Evicted = 0
		}
		golden.Equal(t, []Book{wantAll, wantWindow}, []Book{all, window}, "Book(%d)", sub)
		visited := uint64(0)
		w.ledger.Undelivered(sub, func(_ Fate, _ bool, n uint64, _, _ int64) { visited += n })
		w.ledger.Unknown(sub, func(_ bool, n uint64, _, _ int64) { visited += n })
		dues, _ := w.naive.undelivered(sub)
		for _, list := range dues {
			visited -= uint64(len(list))
		}
		if visited != 0 {
			t.Errorf("Undelivered(%d) and Unknown visit %d messages too many", sub, int64(visited))
		}
	}
	dues, starts := expand(w.ledger.Unsuccessful)
	wantDues, wantStarts := w.naive.unsuccessful()
	notEarlier(t, "due of an unsuccessful message", wantDues, dues)
	notEarlier(t, "start of an unsuccessful message", wantStarts, starts)
}

// notEarlier checks that there are as many instants of each kind as wanted, and
// none earlier than its own.
func notEarlier(t *testing.T, what string, want, got instants) {
	t.Helper()
	for k, own := range want {
		if len(got[k]) != len(own) {
			t.Errorf("%s, %v: %d; want %d", what, k, len(got[k]), len(own))
			continue
		}
		for i := range own {
			if got[k][i] < own[i] {
				t.Errorf("%s, %v: %d is %d; its own is %d", what, k, i, got[k][i], own[i])
				break
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d kinds; want %d", what, len(got), len(want))
	}
}

// The books balance and the bound holds even if closed messages arrive.
func TestAccountingBalancesBeyondBound(t *testing.T) {
	needs.NoRace(t)
	for seed := range uint64(20) {
		w := newWorld(seed)
		w.ledger = New(Config{Streams: w.streams, Consumers: w.consumers, MaxOpen: 20, From: w.from})
		w.play(3000)
		for sub := range w.consumers {
			all, window := w.ledger.Book(sub)
			for _, b := range []Book{all, window} {
				if b.Sent != b.Confirmed+b.Failed+b.Unconfirmed || b.Confirmed != b.Delivered+b.Corrupted+b.Missing+b.Unknown {
					t.Errorf("seed %d: Book(%d) does not balance: %+v", seed, sub, b)
				}
			}
			if all.Sent != uint64(len(w.naive.messages)) {
				t.Errorf("seed %d: Book(%d).Sent = %d; want %d", seed, sub, all.Sent, len(w.naive.messages))
			}
			if got, want := w.ledger.Missing(sub), all.Missing+all.Unknown-min(all.Unknown, all.Late); got != want {
				t.Errorf("seed %d: Missing(%d) = %d; the book has %d", seed, sub, got, want)
			}
			undelivered := uint64(0)
			w.ledger.Undelivered(sub, func(_ Fate, _ bool, n uint64, _, _ int64) { undelivered += n })
			w.ledger.Unknown(sub, func(_ bool, n uint64, _, _ int64) { undelivered += n })
			want := all.Missing + all.Unknown + all.Corrupted + all.CorruptedUnconfirmed +
				all.Failed - all.FailedDelivered + all.Unconfirmed - all.UnconfirmedDelivered
			if undelivered > want || undelivered < want && w.ledger.closedUnknown == 0 {
				t.Errorf("seed %d: Undelivered(%d) visits %d; the book has %d", seed, sub, undelivered, want)
			}
		}
	}
}

func TestTimelineNeverPrecedesMessage(t *testing.T) {
	needs.NoRace(t)
	for _, streams := range []int{1, 10, 10_000, 1 << 17} {
		l := New(Config{Streams: streams})
		points := cap(l.streams[0].line.points)
		if points < minPoints || points*streams > max(maxPoints, minPoints*streams) {
			t.Errorf("a timeline of %d streams has %d points", streams, points)
		}
		s := &l.streams[0]
		n := uint64(3*points + 77)
		due := func(seq uint64) int64 { return 10 * int64(seq) }
		for seq := range n {
			l.Sent(0, seq, due(seq), due(seq)+5)
			limit := s.line.limit()
			if limit+reachEach < seq+1 {
				t.Fatalf("%d messages are sent and Merge may look at %d", seq+1, limit)
			}
			if limit > 0 && seq%97 == 0 {
				ask := seq % limit
				if p, _ := s.line.at(ask, s.line.newest()); p.due < due(ask) {
					t.Fatalf("message %d of %d was due at %d; the timeline says %d", ask, seq+1, due(ask), p.due)
				}
			}
		}
		s.tell()
		far := int64(0)
		for seq := range n {
			p, until := s.line.at(seq, s.last)
			if p.due < due(seq) || p.start != p.due+5 || until <= seq {
				t.Fatalf("message %d, due %d, has the point %+v until %d", seq, due(seq), p, until)
			}
			far = max(far, p.due-due(seq))
		}
		if most := due(2 * n / uint64(points)); far > most {
			t.Errorf("with %d points of %d messages an instant is %d too late; want at most %d", points, n, far, most)
		}
		if p, _ := s.line.at(n-1, s.last); p.due != due(n-1) {
			t.Errorf("the last message is due at %d; want %d", p.due, due(n-1))
		}
	}
}

func TestRingsShareTheirMemory(t *testing.T) {
	for _, test := range []struct{ bytes, consumers, want int }{
		{64 << 20, 1, 1 << 16},
		{64 << 20, 25, 1 << 15},
		{64 << 20, 1000, 1 << 10},
		{64 << 20, 100_000, 256},
		{1, 1, 256},
		{1 << 20, 0, 1 << 14},
	} {
		if got := ringSize(test.bytes, test.consumers); got != test.want {
			t.Errorf("ringSize(%d, %d) = %d; want %d", test.bytes, test.consumers, got, test.want)
		}
	}
}

func TestFullRingWakesMergeAndBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Streams: 1, Consumers: []int{1}, RingBytes: 1})
		r := l.Reader(0, 0)
		for seq := range uint64(127) {
			r.Delivered(&Event{Seq: seq})
		}
		select {
		case <-l.Wake():
			t.Error("Wake is signalled before the ring is half full")
		default:
		}
		r.Delivered(&Event{Seq: 127})
		r.Delivered(&Event{Seq: 128})
		select {
		case <-l.Wake():
		default:
			t.Error("Wake is not signalled when the ring is half full")
		}
		for seq := uint64(129); seq < 256; seq++ {
			r.Delivered(&Event{Seq: seq})
		}
		done := false
		go func() {
			r.Delivered(&Event{Seq: 256})
			done = true
		}()
		time.Sleep(time.Minute)
		if done {
			t.Fatal("Delivered does not wait for room")
		}
		<-l.Wake()
		if n := l.Merge(nil); n != 256 {
			t.Errorf("Merge = %d; want 256", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !done {
			t.Fatal("Delivered still waits though there is room")
		}
		if n := l.Merge(nil); n != 1 {
			t.Errorf("Merge = %d; want 1", n)
		}
	})
}

// Senders, completions, 25 consumers of each of two subscriptions and the merge run concurrently;
// the books must report the injected faults.
func TestAccountingIsExactUnderConcurrency(t *testing.T) {
	const streams, consumers, subs = 4, 25, 2
	each := uint64(20_000)
	if needs.Less() {
		each = 2_000
	}
	l := New(Config{Streams: streams, Consumers: []int{consumers, consumers}, RingBytes: 1, From: int64(each / 2)})
	queues := [subs]chan Event{make(chan Event, 1000), make(chan Event, 1000)}
	confirms := make(chan Event, 1000)

	var receiving, sending, confirming sync.WaitGroup
	for sub := range subs {
		for c := range consumers {
			receiving.Go(func() {
				r := l.Reader(sub, c)
				for e := range queues[sub] {
					r.Delivered(&e)
					if e.Seq%10 == 3 { // again, at once
						r.Delivered(&e)
					}
				}
				r.Foreign()
			})
		}
	}
	for range 3 {
		confirming.Go(func() {
			for e := range confirms {
				if e.Seq%10 == 7 {
					l.Failed(e.Stream, e.Seq)
				} else {
					l.Confirmed(e.Stream, e.Seq)
				}
			}
		})
	}
	for stream := range uint32(streams) {
		sending.Go(func() {
			for seq := range each {
				if seq == each/2 {
					l.MeasureFrom(stream, seq)
				}
				l.Sent(stream, seq, int64(seq), int64(seq))
				e := Event{Stream: stream, Partition: -1, Seq: seq, Due: int64(seq), At: int64(seq), Corrupted: seq%10 == 5, Redelivered: true}
				if seq%10 != 9 {
					confirms <- e
				}
				for _, q := range queues {
					if seq%10 != 1 {
						q <- e
					}
				}
			}
		})
	}
	stop, merged := make(chan struct{}), make(chan struct{})
	counted := [subs]uint64{}
	var part Part
	go func() {
		defer close(merged)
		for last := false; ; {
			l.Merge(func(sub int, _ *Event) { counted[sub]++ })
			l.Complete()
			// Decoding checks that confirmed messages are sent, and the other invariants of a part.
			l.Part(&part)
			if b, err := part.AppendBinary(nil); err != nil {
				t.Error(err)
			} else if err := (&Part{Limits: Limits{streams, subs}}).UnmarshalBinary(b); err != nil {
				t.Error(err)
			}
			if last {
				return
			}
			select {
			case <-l.Wake():
			case <-stop:
				last = true
			case <-time.After(time.Millisecond):
			}
			l.behind()
			l.LastDelivery(0)
		}
	}()
	sending.Wait()
	close(confirms)
	for _, q := range queues {
		close(q)
	}
	confirming.Wait()
	receiving.Wait()
	close(stop)
	<-merged

	tenth := streams * each / 10
	want := Book{
		Sent: 10 * tenth, Confirmed: 8 * tenth, Failed: tenth, Unconfirmed: tenth,
		Delivered: 6 * tenth, Corrupted: tenth, Missing: tenth,
		FailedDelivered: tenth, UnconfirmedDelivered: tenth,
		Duplicated: tenth, Redelivered: 10 * tenth, Foreign: consumers,
	}
	l.LastPart(&part)
	joined := must.Get(Join([]*Part{&part}, nil))(t)
	for sub := range subs {
		all, window := l.Book(sub)
		golden.Equal(t, want, all, "Book(%d)", sub)
		if gotAll, gotWindow := joined.Book(sub); gotAll != all || gotWindow != window {
			t.Errorf("Book(%d) of the ledger's part is %+v and %+v; its own are %+v and %+v", sub, gotAll, gotWindow, all, window)
		}
		if window.Sent != all.Sent/2 || window.Missing != all.Missing/2 || window.Duplicated != all.Duplicated/2 {
			t.Errorf("Book(%d) of the half that is measured = %+v", sub, window)
		}
		if counted[sub] != 8*tenth {
			t.Errorf("%d first deliveries of subscription %d were told; want %d", counted[sub], sub, 8*tenth)
		}
		if got := l.Missing(sub); got != tenth {
			t.Errorf("Missing(%d) = %d; want %d", sub, got, tenth)
		}
	}
}

func TestNothingAllocatesInSteadyState(t *testing.T) {
	l := New(Config{Streams: 2, Consumers: []int{3}})
	seq := uint64(0)
	step := func() {
		for range 100 {
			// Two messages are swapped, both ways.
			for _, n := range []uint64{seq + 1, seq} {
				l.Confirmed(0, n)
				l.Confirmed(1, n)
				e := Event{Seq: n, At: int64(seq)}
				l.Reader(0, int(n%3)).Delivered(&e)
			}
			l.Sent(0, seq, int64(seq), int64(seq))
			l.Sent(0, seq+1, int64(seq), int64(seq))
			seq += 2
		}
		l.Merge(nil)
	}
	step()
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

func TestManyStreamsAndConsumersStaySmall(t *testing.T) {
	before := heap()
	l := New(Config{Streams: 10_000, Consumers: []int{25}})
	for stream := range uint32(10_000) {
		for seq := range uint64(25) {
			l.Sent(stream, seq, 0, 0)
			l.Confirmed(stream, seq)
		}
		for c := range 25 {
			l.Reader(0, c).Delivered(&Event{Stream: stream, Seq: uint64(c) ^ 1})
		}
	}
	l.Merge(nil)
	if used := heap() - before; used > 64<<20 {
		t.Errorf("10,000 streams and 25 consumers take %d MiB; want 64 at most", used>>20)
	}
	// The 25th consumer of each stream received a message that was never sent.
	all, _ := l.Book(0)
	want := Book{Sent: 250_000, Confirmed: 250_000, Delivered: 240_000, Missing: 10_000, Foreign: 10_000}
	golden.Equal(t, want, all, "Book")
}

// heap returns the bytes of heap in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// flow sends n messages on 4 streams through 25 consumers, with realistic faults: one in 10,000
// lost, one in 10,000 failed, one in 100 late by some hundred, one in 1,000 duplicated.
func flow(l *Ledger, n uint64, look func()) {
	rng := rand.New(rand.NewPCG(1, 1))
	var seqs [4]uint64
	var late []Event
	for i := range n {
		stream := uint32(i % 4)
		e := Event{Stream: stream, Partition: -1, Seq: seqs[stream], At: int64(i)}
		seqs[stream]++
		l.Sent(stream, e.Seq, e.At, e.At)
		dice := rng.Uint32() % 10_000
		if dice == 1 {
			l.Failed(stream, e.Seq)
		} else {
			l.Confirmed(stream, e.Seq)
		}
		r := l.Reader(0, int(dice%25))
		switch {
		case dice == 0:
		case dice < 100:
			late = append(late, e)
		case dice < 110:
			r.Delivered(&e)
			r.Delivered(&e)
		default:
			r.Delivered(&e)
		}
		if i%1000 == 999 {
			for j := range late {
				late[j].At = int64(i)
				r.Delivered(&late[j])
			}
			late = late[:0]
			l.Merge(nil)
		}
		if i%(n/10) == n/10-1 {
			look()
		}
	}
	l.Merge(nil)
}

// flat checks that the heap does not grow from the second tenth of n messages to
// the last by more than the holes need.
func flat(tb testing.TB, n uint64) {
	l := New(Config{Streams: 4, Consumers: []int{25}})
	var at []int64
	flow(l, n, func() { at = append(at, heap()) })
	// Two spans of 16 bytes per lost or failed message, in chunks half full.
	if grown, most := at[9]-at[1], int64(n/10_000*2*32+1<<20); grown > most {
		tb.Errorf("the heap grew by %d bytes over %d messages; want %d at most", grown, n, most)
	}
	all, _ := l.Book(0)
	if all.Sent != n || all.Missing == 0 || all.Missing > n/5000 || all.Missing+all.Delivered != all.Confirmed || all.Evicted != 0 {
		tb.Errorf("Book = %+v", all)
	}
}

func TestMemoryIsFlatOverTenMillionMessages(t *testing.T) {
	needs.NoRace(t)
	if needs.Less() {
		flat(t, 1_000_000)
		return
	}
	flat(t, 10_000_000)
}
