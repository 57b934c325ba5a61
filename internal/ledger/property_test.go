package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// A world is one random run, entered in a ledger and in a naive one.
type world struct {
	rng        *rand.Rand
	ledger     *Ledger
	naive      *naive
	streams    int
	partitions int
	consumers  []int

	from    int64 // where the window begins
	sound   bool  // no message completes twice
	now     int64
	next    []uint64 // sequence, by stream
	flight  []arrival
	settles []settle
	lastAt  map[[2]int]int64 // by subscription and consumer
}

type settle struct {
	id
	fate Fate
}

// newWorld returns a world determined by the seed.
func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := &world{
		rng: rng, streams: 1 + rng.IntN(5), partitions: 1 + rng.IntN(3),
		lastAt: map[[2]int]int64{},
	}
	for range 1 + rng.IntN(3) {
		w.consumers = append(w.consumers, []int{1, 2, 25}[rng.IntN(3)])
	}
	w.next = make([]uint64, w.streams)
	w.from = rng.Int64N(3000)
	w.ledger = New(Config{Streams: w.streams, Consumers: w.consumers, RingBytes: 1, From: w.from})
	w.naive = newNaive(len(w.consumers))
	return w
}

// chance is true with probability p %.
func (w *world) chance(p int) bool { return w.rng.IntN(100) < p }

// send sends a message and decides its fate.
func (w *world) send() {
	stream := uint32(w.rng.IntN(w.streams))
	m := id{stream, w.next[stream]}
	w.next[stream]++
	if _, ok := w.naive.boundary[stream]; !ok && w.now >= w.from {
		w.naive.boundary[stream] = m.seq
		w.ledger.MeasureFrom(stream, m.seq)
	}
	due := w.now
	start := due + 1000 // later ones do not start earlier
	w.ledger.Sent(stream, m.seq, due, start)
	w.naive.sent(message{id: m, due: due, start: start})
	switch {
	case w.chance(80):
		w.settles = append(w.settles, settle{m, FateConfirmed})
	case w.chance(60):
		w.settles = append(w.settles, settle{m, FateFailed})
	}
	if !w.sound && w.chance(2) { // a faulty driver: two completions
		w.settles = append(w.settles, settle{m, Fate(w.rng.IntN(2))})
	}
	for sub, consumers := range w.consumers {
		if w.chance(8) {
			continue // lost
		}
		a := arrival{sub, w.rng.IntN(consumers), Event{
			Stream: stream, Partition: int32(w.rng.IntN(w.partitions)) - 1, Seq: m.seq, Due: due, Start: start,
			Bytes: 64, Corrupted: w.chance(4), Redelivered: w.chance(3),
		}}
		w.flight = append(w.flight, a)
		for w.chance(8) { // again, perhaps to another consumer, perhaps damaged this time only
			if w.chance(50) {
				a.consumer = w.rng.IntN(consumers)
			}
			a.Corrupted, a.Redelivered = w.chance(20), w.chance(50)
			w.flight = append(w.flight, a)
		}
	}
}

// pick returns the index of something in flight: mostly among the oldest.
func (w *world) pick(n int) int {
	if w.chance(85) {
		return w.rng.IntN(min(n, 4))
	}
	return w.rng.IntN(n)
}

// deliver lets one delivery arrive.
func (w *world) deliver() {
	if len(w.flight) == 0 {
		return
	}
	i := w.pick(len(w.flight))
	a := w.flight[i]
	w.flight = append(w.flight[:i], w.flight[i+1:]...)
	// Each consumer's instants are nondecreasing; those of different consumers interleave, and are
	// often equal.
	who := [2]int{a.sub, a.consumer}
	a.At = max(w.lastAt[who], w.now+w.rng.Int64N(20))
	w.lastAt[who] = a.At
	w.ledger.Reader(a.sub, a.consumer).Delivered(&a.Event)
	w.naive.waiting = append(w.naive.waiting, a)
}

// settle gives one message its fate.
func (w *world) settle() {
	if len(w.settles) == 0 {
		return
	}
	i := w.pick(len(w.settles))
	s := w.settles[i]
	w.settles = append(w.settles[:i], w.settles[i+1:]...)
	if s.fate == FateConfirmed {
		w.ledger.Confirmed(s.stream, s.seq)
	} else {
		w.ledger.Failed(s.stream, s.seq)
	}
	w.naive.settle(s.id, s.fate)
}

// merge merges, and checks that each first delivery is reported once, in order.
func (w *world) merge() error {
	before := len(w.naive.merged)
	type got struct {
		Sub int
		Event
	}
	merged := map[int][]got{}
	n := w.ledger.Merge(func(sub int, e *Event) { merged[sub] = append(merged[sub], got{sub, *e}) })
	w.naive.merge()
	fresh := w.naive.merged[before:]
	if n != len(fresh) {
		return fmt.Errorf("Merge = %d; want %d", n, len(fresh))
	}
	for sub := range w.consumers {
		first := w.naive.firsts(sub)
		var want []got
		last := int64(0)
		for i := range w.naive.merged {
			a := &w.naive.merged[i]
			if a.sub != sub {
				continue
			}
			last = max(last, a.At)
			if i >= before && first[id{a.Stream, a.Seq}] == a && !a.Corrupted {
				want = append(want, got{sub, a.Event})
			}
		}
		if diff := cmp.Diff(want, merged[sub]); diff != "" {
			return fmt.Errorf("first deliveries of subscription %d (-want +got):\n%s", sub, diff)
		}
		if got := w.ledger.LastDelivery(sub); got != last {
			return fmt.Errorf("LastDelivery(%d) = %d; want %d", sub, got, last)
		}
		if got, want := w.ledger.Missing(sub), w.naive.missing(sub); got != want {
			return fmt.Errorf("Missing(%d) = %d; want %d", sub, got, want)
		}
	}
	if got, want := w.ledger.behind(), w.naive.backlog(); got != want {
		return fmt.Errorf("behind = %d; want %d", got, want)
	}
	complete := true
	for sub := range w.consumers {
		complete = complete && w.naive.missing(sub) == 0
	}
	if got := w.ledger.Complete(); got != complete {
		return fmt.Errorf("Complete = %v; want %v", got, complete)
	}
	return nil
}

// compare compares everything that can be asked at the end.
func (w *world) compare() error {
	for sub := range w.consumers {
		all, window := w.ledger.Book(sub)
		wantAll, wantWindow := w.naive.book(sub)
		if diff := cmp.Diff(wantAll, all); diff != "" {
			return fmt.Errorf("Book(%d) of the run (-want +got):\n%s", sub, diff)
		}
		if diff := cmp.Diff(wantWindow, window); diff != "" {
			return fmt.Errorf("Book(%d) of the window (-want +got):\n%s", sub, diff)
		}
		dues, starts := expand(func(visit visitor) { w.ledger.Undelivered(sub, visit) })
		wantDues, wantStarts := w.naive.undelivered(sub)
		if diff := cmp.Diff([]instants{wantDues, wantStarts}, []instants{dues, starts}); diff != "" {
			return fmt.Errorf("dues and starts of Undelivered(%d) (-want +got):\n%s", sub, diff)
		}
		sAll, sWindow := w.ledger.Senders()
		for _, b := range []struct{ senders, book Book }{{sAll, all}, {sWindow, window}} {
			want := Book{Sent: b.book.Sent, Confirmed: b.book.Confirmed, Failed: b.book.Failed, Unconfirmed: b.book.Unconfirmed}
			if diff := cmp.Diff(want, b.senders); diff != "" {
				return fmt.Errorf("Senders (-want +got):\n%s", diff)
			}
		}
	}
	dues, starts := expand(w.ledger.Unsuccessful)
	wantDues, wantStarts := w.naive.unsuccessful()
	if diff := cmp.Diff([]instants{wantDues, wantStarts}, []instants{dues, starts}); diff != "" {
		return fmt.Errorf("dues and starts of Unsuccessful (-want +got):\n%s", diff)
	}
	return nil
}

type visitor = func(fate Fate, measured bool, n uint64, due, start int64)

// expand returns what each visits, message by message.
func expand(each func(visitor)) (dues, starts instants) {
	dues, starts = instants{}, instants{}
	each(func(fate Fate, measured bool, n uint64, due, start int64) {
		k := kind{fate, measured}
		for range n {
			dues[k] = append(dues[k], due)
			starts[k] = append(starts[k], start)
		}
	})
	return dues.sorted(), starts.sorted()
}

// play runs the world's own ledger for some steps, and merges everything.
func (w *world) play(steps int) {
	for range steps {
		w.now += 5
		switch n := w.rng.IntN(100); {
		case n < 30:
			w.send()
		case n < 66:
			w.deliver()
		case n < 96:
			w.settle()
		default:
			w.ledger.Merge(nil)
		}
	}
	w.ledger.Merge(nil)
}

// run runs the world for some steps, then finishes it.
func (w *world) run(steps int) error {
	for range steps {
		w.now += w.rng.Int64N(5)
		switch n := w.rng.IntN(100); {
		case n < 30:
			w.send()
		case n < 66:
			w.deliver()
		case n < 96:
			w.settle()
		case n < 98:
			sub := w.rng.IntN(len(w.consumers))
			w.ledger.Reader(sub, w.rng.IntN(w.consumers[sub])).Foreign()
			w.naive.foreign[sub]++
		default:
			if err := w.merge(); err != nil {
				return err
			}
		}
	}
	for rest := w.rng.IntN(2); rest == 0 && len(w.flight) > 0; { // or what is in flight stays there
		w.deliver()
		if len(w.naive.waiting) > 200 {
			if err := w.merge(); err != nil {
				return err
			}
		}
	}
	if err := w.merge(); err != nil {
		return err
	}
	return w.compare()
}

func TestAccountingMatchesExactLedger(t *testing.T) {
	needs.NoRace(t)
	worlds := uint64(120)
	if needs.Less() {
		worlds = 20
	}
	for seed := range worlds {
		w := newWorld(seed)
		if err := w.run(1200); err != nil {
			t.Fatalf("seed %d (%d streams, %d partitions, consumers %v): %v", seed, w.streams, w.partitions, w.consumers, err)
		}
	}
}

func FuzzAccounting(f *testing.F) {
	f.Add(uint64(1000), uint16(200))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		must.Do(t, newWorld(seed).run(int(steps%2000)))
	})
}
