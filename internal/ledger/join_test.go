package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A crew is one random run that several processes share, told to a ledger of each
// and to a naive one that sees all.
type crew struct {
	t       *rapid.T
	ledgers []*Ledger // of each process
	naive   *naive
	owner   []int // the process that sends each stream
	each    int   // consumers of a subscription in a process
	subs    int
	from    int64
	travel  bool // parts go through their form

	now     int64
	next    []uint64
	flight  []arrival
	settles []settle
	lastAt  map[[2]int]int64
}

func newCrew(t *rapid.T, maxOpen int) *crew {
	c := &crew{t: t, lastAt: map[[2]int]int64{}}
	streams, senders, processes := 1+c.draw(5), 1+c.draw(4), 1+c.draw(4)
	processes = max(processes, senders)
	c.subs, c.each = 1+c.draw(3), 1+c.draw(2)
	c.from, c.travel = int64(c.draw(600)), c.chance(50)
	consumers := make([]int, c.subs)
	for i := range consumers {
		consumers[i] = c.each
	}
	for range processes {
		c.ledgers = append(c.ledgers, New(Config{Streams: streams, Consumers: consumers, RingBytes: 1, From: c.from, MaxOpen: maxOpen}))
	}
	c.next = make([]uint64, streams)
	for range streams {
		c.owner = append(c.owner, c.draw(senders))
	}
	c.naive = newNaive(c.subs)
	c.naive.process = func(consumer int) int { return consumer / c.each }
	return c
}

// draw draws a number below n.
func (c *crew) draw(n int) int { return rapid.IntRange(0, n-1).Draw(c.t, "n") }

func (c *crew) chance(p int) bool { return c.draw(100) < p }

func (c *crew) send() {
	stream := uint32(c.draw(len(c.next)))
	m := id{stream, c.next[stream]}
	c.next[stream]++
	l := c.ledgers[c.owner[stream]]
	if _, ok := c.naive.boundary[stream]; !ok && c.now >= c.from {
		c.naive.boundary[stream] = m.seq
		l.MeasureFrom(stream, m.seq)
	}
	due, start := c.now, c.now+1000
	l.Sent(stream, m.seq, due, start)
	c.naive.sent(message{id: m, due: due, start: start})
	switch c.draw(10) {
	case 0:
		c.settles = append(c.settles, settle{m, FateFailed})
	case 1:
	default:
		c.settles = append(c.settles, settle{m, FateConfirmed})
	}
	for sub := range c.subs {
		n := []int{0, 1, 1, 1, 1, 1, 1, 2, 3}[c.draw(9)]
		for range n {
			a := arrival{sub, c.draw(c.each * len(c.ledgers)), Event{
				Stream: stream, Partition: int32(c.draw(2)) - 1, Seq: m.seq, Due: due, Start: start,
				Corrupted: c.chance(10 + 30*(n-1)), Redelivered: c.chance(10),
			}}
			c.flight = append(c.flight, a)
		}
	}
}

// pick returns the place of something that is under way: mostly among the oldest.
func (c *crew) pick(n int) int {
	if c.chance(90) {
		return c.draw(min(n, 3))
	}
	return c.draw(n)
}

func (c *crew) deliver() {
	if len(c.flight) == 0 {
		return
	}
	i := c.pick(len(c.flight))
	a := c.flight[i]
	c.flight = append(c.flight[:i], c.flight[i+1:]...)
	who := [2]int{a.sub, a.consumer}
	a.At = max(c.lastAt[who], c.now+int64(c.draw(20)))
	c.lastAt[who] = a.At
	c.ledgers[a.consumer/c.each].Reader(a.sub, a.consumer%c.each).Delivered(&a.Event)
	c.naive.waiting = append(c.naive.waiting, a)
}

func (c *crew) settle() {
	if len(c.settles) == 0 {
		return
	}
	i := c.pick(len(c.settles))
	s := c.settles[i]
	c.settles = append(c.settles[:i], c.settles[i+1:]...)
	l := c.ledgers[c.owner[s.stream]]
	if s.fate == FateConfirmed {
		l.Confirmed(s.stream, s.seq)
	} else {
		l.Failed(s.stream, s.seq)
	}
	c.naive.settle(s.id, s.fate)
}

func (c *crew) merge() {
	for _, l := range c.ledgers {
		l.Merge(nil)
	}
	c.naive.merge()
}

// step lets something happen; after a merge it is true.
func (c *crew) step() (merged bool) {
	c.now += int64(c.draw(5))
	switch n := c.draw(100); {
	case n < 32:
		c.send()
	case n < 66:
		c.deliver()
	case n < 94:
		c.settle()
	case n < 96:
		sub, consumer := c.draw(c.subs), c.draw(c.each*len(c.ledgers))
		c.ledgers[consumer/c.each].Reader(sub, consumer%c.each).Foreign()
		c.naive.foreign[sub]++
	default:
		c.merge()
		return true
	}
	return false
}

// finish brings in what is under way, or leaves it there.
func (c *crew) finish() {
	if c.chance(50) {
		for len(c.flight) > 0 {
			c.deliver()
			if len(c.naive.waiting) > 200 {
				c.merge()
			}
		}
	}
	c.merge()
}

// parts returns what each process knows.
func (c *crew) parts(last bool) (parts []*Part) {
	for _, l := range c.ledgers {
		p := new(Part)
		if last {
			l.LastPart(p)
		} else {
			l.Part(p)
		}
		if c.travel {
			p = travel(c.t, p)
		}
		parts = append(parts, p)
	}
	return parts
}

// travel returns what is read of a part's form, after checking that it writes
// the same again.
func travel(t rapid.TB, p *Part) *Part {
	t.Helper()
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	q := &Part{Limits: Limits{Streams: p.streams, Subscriptions: len(p.subs)}}
	if err := q.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	again, err := q.AppendBinary(nil)
	if err != nil || string(again) != string(b) {
		t.Fatalf("a part that was read has the form %x, %v; it was read of %x", again, err, b)
	}
	return q
}

func (c *crew) join(parts []*Part, missing func(uint32) bool) *Joined {
	c.t.Helper()
	j, err := Join(parts, missing)
	if err != nil {
		c.t.Fatal(err)
	}
	return j
}

// balanced checks what holds of every book.
func balanced(t rapid.TB, j *Joined, subs int) {
	t.Helper()
	sAll, sWindow := j.Senders()
	for sub := range subs {
		all, window := j.Book(sub)
		for _, b := range []struct{ book, senders Book }{{all, sAll}, {window, sWindow}} {
			if b.book.Sent != b.book.Confirmed+b.book.Failed+b.book.Unconfirmed || b.book.Confirmed != b.book.Delivered+b.book.Corrupted+b.book.Missing {
				t.Fatalf("Book(%d) does not balance: %+v", sub, b.book)
			}
			if s := b.senders; s.Sent != b.book.Sent || s.Confirmed != b.book.Confirmed || s.Failed != b.book.Failed || s.Unconfirmed != b.book.Unconfirmed {
				t.Fatalf("Book(%d) = %+v; Senders = %+v", sub, b.book, s)
			}
		}
		if got := j.Missing(sub); got != all.Missing {
			t.Fatalf("Missing(%d) = %d; the book has %d", sub, got, all.Missing)
		}
		n := uint64(0)
		j.Undelivered(sub, func(_ Fate, _ bool, k uint64, _, _ int64) { n += k })
		if want := all.Missing + all.Corrupted + all.CorruptedUnconfirmed +
			all.Failed - all.FailedDelivered + all.Unconfirmed - all.UnconfirmedDelivered; n != want {
			t.Fatalf("Undelivered(%d) visits %d; the book has %d", sub, n, want)
		}
	}
	n := uint64(0)
	j.Unsuccessful(func(_ Fate, _ bool, k uint64, _, _ int64) { n += k })
	if want := sAll.Failed + sAll.Unconfirmed; n != want {
		t.Fatalf("Unsuccessful visits %d; Senders has %d", n, want)
	}
}

// same compares the books with those of the naive ledger.
func (c *crew) same(j *Joined, v *naive) {
	c.t.Helper()
	balanced(c.t, j, c.subs)
	for sub := range c.subs {
		all, window := j.Book(sub)
		wantAll, wantWindow := v.book(sub)
		if diff := cmp.Diff([]Book{wantAll, wantWindow}, []Book{all, window}); diff != "" {
			c.t.Fatalf("Book(%d) of the run and of the window (-want +got):\n%s", sub, diff)
		}
		twice, twiceWindow := j.Twice(sub)
		wantTwice, wantTwiceWindow := v.twice(sub)
		if diff := cmp.Diff([]Twice{wantTwice, wantTwiceWindow}, []Twice{twice, twiceWindow}); diff != "" {
			c.t.Fatalf("Twice(%d) of the run and of the window (-want +got):\n%s", sub, diff)
		}
	}
}

// live compares what can be asked while a run goes on.
func (c *crew) live(j *Joined) {
	c.t.Helper()
	complete := true
	for sub := range c.subs {
		want := c.naive.missing(sub)
		if got := j.Missing(sub); got != want {
			c.t.Fatalf("Missing(%d) = %d; want %d", sub, got, want)
		}
		complete = complete && want == 0
		last := int64(0)
		for i := range c.naive.merged {
			if a := &c.naive.merged[i]; a.sub == sub {
				last = max(last, a.At)
			}
		}
		if got := j.LastDelivery(sub); got != last {
			c.t.Fatalf("LastDelivery(%d) = %d; want %d", sub, got, last)
		}
	}
	if got := j.Complete(); got != complete {
		c.t.Fatalf("Complete = %v; want %v", got, complete)
	}
	if got, want := j.Backlog(), c.naive.backlog(); got != want {
		c.t.Fatalf("Backlog = %d; want %d", got, want)
	}
}

func steps() int {
	if raceEnabled || testing.Short() {
		return 150
	}
	return 400
}

func TestJoinedPartsAreTheBooksOfALedgerThatKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrew(t, 0)
		for range c.draw(steps()) {
			if c.step() && c.chance(30) {
				c.live(c.join(c.parts(false), nil))
			}
		}
		c.finish()
		j := c.join(c.parts(true), nil)
		c.live(j)
		c.same(j, c.naive)
		if j.Evicted() != 0 {
			t.Fatalf("Evicted = %d", j.Evicted())
		}
		for sub := range c.subs {
			dues, starts := expand(func(visit visitor) { j.Undelivered(sub, visit) })
			wantDues, wantStarts := c.naive.undelivered(sub)
			if diff := cmp.Diff([]instants{wantDues, wantStarts}, []instants{dues, starts}); diff != "" {
				t.Fatalf("dues and starts of Undelivered(%d) (-want +got):\n%s", sub, diff)
			}
		}
		dues, starts := expand(j.Unsuccessful)
		wantDues, wantStarts := c.naive.unsuccessful()
		if diff := cmp.Diff([]instants{wantDues, wantStarts}, []instants{dues, starts}); diff != "" {
			t.Fatalf("dues and starts of Unsuccessful (-want +got):\n%s", diff)
		}
	})
}

// One process vanishes: its last part is from some way back, and what it sent
// since is known by what others got of it only.
func TestOfAVanishedProcessItsLastPartAndWhatOthersGotIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrew(t, 0)
		gone := c.draw(len(c.ledgers))
		for range c.draw(steps()) {
			c.step()
		}
		c.merge()
		last := c.parts(false)[gone]
		if c.chance(20) {
			last = New(Config{Streams: len(c.next), Consumers: make([]int, c.subs)}).empty() // it never reported
		}
		told := map[uint32]uint64{}
		for _, e := range last.sent {
			told[e.stream] = e.sent
		}
		// What the naive ledger may know of the vanished one.
		fates := map[id]Fate{}
		for _, m := range c.naive.messages {
			if m.seq < told[m.stream] {
				fates[m.id] = m.fate
			}
		}
		received := len(c.naive.merged)
		foreign := make([]uint64, c.subs)
		for range c.draw(steps()) {
			c.step()
		}
		c.finish()
		parts := c.parts(true)
		parts[gone] = last
		j := c.join(parts, func(stream uint32) bool { return c.owner[stream] == gone })

		v := newNaive(c.subs)
		v.process, v.boundary = c.naive.process, c.naive.boundary
		highest := map[uint32]uint64{}
		for i, a := range c.naive.merged {
			if v.at(&a) != gone || i < received && known(last, &a) {
				v.merged = append(v.merged, a)
				highest[a.Stream] = max(highest[a.Stream], a.Seq+1)
			}
		}
		for _, p := range parts {
			for sub := range p.subs {
				foreign[sub] += p.subs[sub].foreign
			}
		}
		v.foreign = foreign
		for _, m := range c.naive.messages {
			if c.owner[m.stream] == gone {
				if m.seq >= max(told[m.stream], highest[m.stream]) {
					continue
				}
				fate, ok := fates[m.id]
				if !ok {
					fate = FateUnconfirmed
				}
				m.fate = fate
			}
			v.messages = append(v.messages, m)
		}
		v.boundary = map[uint32]uint64{}
		for stream, b := range c.naive.boundary {
			v.boundary[stream] = b
			if c.owner[stream] != gone {
				continue
			}
			// It may be in what was not told: then it is the lowest of the window that
			// arrived.
			delete(v.boundary, stream)
			for _, e := range last.sent {
				if e.stream == stream && b == e.measuredFrom {
					v.boundary[stream] = b
				}
			}
			if _, ok := v.boundary[stream]; ok {
				continue
			}
			for _, a := range v.merged {
				if low, ok := v.boundary[stream]; a.Stream == stream && a.Due >= c.from && (!ok || a.Seq < low) {
					v.boundary[stream] = a.Seq
				}
			}
		}
		c.same(j, v)
	})
}

// empty is the part of a process that did nothing.
func (l *Ledger) empty() *Part {
	p := new(Part)
	l.Part(p)
	return p
}

// known reports whether the part has the delivery.
func known(p *Part, a *arrival) bool {
	for i := range p.subs[a.sub].got {
		e := &p.subs[a.sub].got[i]
		if e.stream == a.Stream {
			d := p.delivered(e)
			return a.Seq < d.head && !d.holes.contains(a.Seq)
		}
	}
	return false
}

func TestJoinRefusesWhatIsNotOneRun(t *testing.T) {
	part := func(streams, subs int, sends ...uint32) *Part {
		l := New(Config{Streams: streams, Consumers: make([]int, subs)})
		for _, stream := range sends {
			l.Sent(stream, 0, 0, 0)
		}
		p := new(Part)
		l.LastPart(p)
		return p
	}
	for _, test := range []struct {
		name  string
		parts []*Part
	}{
		{"none", nil},
		{"other streams", []*Part{part(2, 1), part(3, 1)}},
		{"other subscriptions", []*Part{part(2, 1), part(2, 2)}},
		{"two senders", []*Part{part(2, 1, 0, 1), part(2, 1), part(2, 1, 1)}},
	} {
		if _, err := Join(test.parts, nil); !errors.Is(err, ErrJoin) {
			t.Errorf("%s: %v; want ErrJoin", test.name, err)
		} else {
			t.Log(err)
		}
	}
	if _, err := Join([]*Part{part(2, 1, 0), part(2, 1), part(2, 1, 1)}, nil); err != nil {
		t.Error(err)
	}
}

func TestTheBooksOfPartsBalanceWhateverTheBoundCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrew(t, 10)
		for range c.draw(2 * steps()) {
			c.step()
		}
		c.finish()
		parts := c.parts(true)
		j := c.join(parts, nil)
		balanced(t, j, c.subs)
		evicted := uint64(0)
		for _, l := range c.ledgers {
			evicted += l.Evicted()
		}
		if got := j.Evicted(); got != evicted {
			t.Fatalf("Evicted = %d; the ledgers have %d", got, evicted)
		}
		if all, _ := j.Senders(); all.Sent != uint64(len(c.naive.messages)) {
			t.Fatalf("Sent = %d; want %d", all.Sent, len(c.naive.messages))
		}
		if len(parts) == 1 {
			for sub := range c.subs {
				all, window := c.ledgers[0].Book(sub)
				gotAll, gotWindow := j.Book(sub)
				if diff := cmp.Diff([]Book{all, window}, []Book{gotAll, gotWindow}); diff != "" {
					t.Fatalf("Book(%d) of a ledger and of its part (-ledger +part):\n%s", sub, diff)
				}
			}
		}
	})
}

// Two processes share the deliveries of what a third sends, every second one each,
// so that each has as many holes as messages; the bound closes most of them.
func TestDeliveriesThatSeveralProcessesShareAddUpBeyondTheBound(t *testing.T) {
	const messages = 20_000
	for _, test := range []struct {
		name                string
		lose, twice, damage uint64 // one in so many; 0: none
	}{
		{"all arrive", 0, 0, 0},
		{"some are lost", 100, 0, 0},
		{"some arrive at both", 0, 50, 0},
		{"some arrive corrupted", 0, 0, 70},
		{"all of it", 101, 53, 71},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ledgers []*Ledger
			for range 3 {
				ledgers = append(ledgers, New(Config{Streams: 3, Consumers: []int{1}, From: messages / 2, MaxOpen: 100}))
			}
			every := func(seq, n uint64) bool { return n > 0 && seq%n == n-1 }
			var lost, corrupted, again uint64
			for seq := range uint64(messages) {
				for stream := range uint32(2) {
					l := ledgers[0]
					if seq == messages/2 {
						l.MeasureFrom(stream, seq)
					}
					l.Sent(stream, seq, int64(seq), int64(seq))
					l.Confirmed(stream, seq)
					if every(seq, test.lose) {
						lost++
						continue
					}
					e := Event{Stream: stream, Seq: seq, Due: int64(seq), Start: int64(seq), At: int64(seq), Corrupted: every(seq, test.damage)}
					if e.Corrupted {
						corrupted++
					}
					ledgers[1+seq%2].Reader(0, 0).Delivered(&e)
					if every(seq, test.twice) {
						again++
						ledgers[2-seq%2].Reader(0, 0).Delivered(&e)
					}
				}
				if seq%50 == 0 {
					for _, l := range ledgers {
						l.Merge(nil)
						if open := l.open(); open > 100 {
							t.Fatalf("%d spans are held; the bound is 100", open)
						}
					}
				}
			}
			var parts []*Part
			evicted := uint64(0)
			for _, l := range ledgers {
				l.Merge(nil)
				p := new(Part)
				l.LastPart(p)
				parts = append(parts, travel(t, p))
				evicted += l.Evicted()
			}
			j, err := Join(parts, nil)
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, j, 1)
			all, window := j.Book(0)
			if all.Evicted == 0 || all.Evicted != evicted {
				t.Errorf("Evicted = %d; the ledgers have %d", all.Evicted, evicted)
			}
			// What both have hides what none has, as far as it is known by number only.
			if got, want := int64(all.Missing)-int64(all.Duplicated), int64(lost)-int64(again); got != want {
				t.Errorf("%d are missing and %d duplicated, lost were %d and twice there %d", all.Missing, all.Duplicated, lost, again)
			}
			if again == 0 && all.Missing != lost || lost == 0 && all.Duplicated != again {
				t.Errorf("Missing = %d, Duplicated = %d; want %d, %d", all.Missing, all.Duplicated, lost, again)
			}
			if test.twice == 0 && all.Corrupted != corrupted {
				t.Errorf("Corrupted = %d; want %d", all.Corrupted, corrupted)
			}
			if window.Sent != messages || all.Foreign != 0 || lost == 0 && again == 0 && window.Delivered+window.Corrupted != messages {
				t.Errorf("Book of the window = %+v, Foreign = %d", window, all.Foreign)
			}
			if got, want := j.Backlog(), all.Missing; got != want {
				t.Errorf("Backlog = %d; want %d", got, want)
			}
			n := uint64(0)
			j.Undelivered(0, func(_ Fate, _ bool, k uint64, due, _ int64) {
				n += k
				if due < 0 || due >= messages {
					t.Errorf("%d messages were due at %d", k, due)
				}
			})
			if n != all.Missing+all.Corrupted {
				t.Errorf("Undelivered visits %d", n)
			}
		})
	}
}

// What a stream that nobody sent of delivered is foreign, also where the bound
// closed it.
func TestWhatNobodySentIsForeignBeyondTheBound(t *testing.T) {
	l := New(Config{Streams: 1, Consumers: []int{1}, MaxOpen: 10})
	for seq := range uint64(1000) {
		l.Reader(0, 0).Delivered(&Event{Seq: 3 * seq})
		l.Merge(nil)
	}
	if l.Evicted() == 0 {
		t.Error("nothing was evicted")
	}
	all, _ := l.Book(0)
	p := new(Part)
	l.LastPart(p)
	j, err := Join([]*Part{travel(t, p)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	joined, _ := j.Book(0)
	want := Book{Foreign: 1000, Evicted: l.Evicted()}
	if diff := cmp.Diff([]Book{want, want}, []Book{all, joined}); diff != "" {
		t.Errorf("Book of the ledger, and of its part (-want +got):\n%s", diff)
	}
}
