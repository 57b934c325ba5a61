package ledger

import (
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirmq/weir/internal/must"
)

// A workers is one random run shared by several processes, entered in a ledger of each and in a naive
// one that sees everything.
type workers struct {
	t       *rapid.T
	ledgers []*Ledger // of each process
	naive   *naive
	owner   []int // the process that sends each stream
	each    int   // consumers of a subscription in a process
	subs    int
	from    int64
	travel  bool    // encode and decode parts
	tells   bool    // processes learn what others received
	news    []*Part // what they may learn
	gone    int     // the process that vanished
	last    *Part   // its last part; nil: none vanished

	now     int64
	next    []uint64
	flight  []arrival
	settles []settle
	lastAt  map[[2]int]int64
}

func newWorkers(t *rapid.T, maxOpen int) *workers {
	c := &workers{t: t, lastAt: map[[2]int]int64{}}
	streams, senders, processes := 1+c.draw(5), 1+c.draw(4), 1+c.draw(4)
	processes = max(processes, senders)
	c.subs, c.each = 1+c.draw(3), 1+c.draw(2)
	c.from, c.travel, c.tells = int64(c.draw(600)), c.chance(50), c.chance(50)
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
func (c *workers) draw(n int) int { return rapid.IntRange(0, n-1).Draw(c.t, "n") }

func (c *workers) chance(p int) bool { return c.draw(100) < p }

func (c *workers) send() {
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

// pick returns the index of something under way: mostly among the oldest.
func (c *workers) pick(n int) int {
	if c.chance(90) {
		return c.draw(min(n, 3))
	}
	return c.draw(n)
}

func (c *workers) deliver() {
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

func (c *workers) settle() {
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

func (c *workers) merge() {
	for _, l := range c.ledgers {
		l.Merge(nil)
	}
	c.naive.merge()
	if c.tells {
		c.tell()
	}
}

// tell tells some process what arrived anywhere, now or some time ago.
func (c *workers) tell() {
	c.t.Helper()
	p := new(Part)
	c.join(c.parts(false), nil).Deliveries(p)
	if c.travel {
		p = travel(c.t, p)
	}
	c.news = append(c.news, p)
	for i := range 3 {
		n := len(c.news) - 1 - i*i
		if n < 0 || c.chance(30) {
			continue
		}
		process := c.draw(len(c.ledgers))
		if err := c.ledgers[process].Adopt(c.news[n]); err != nil {
			c.t.Fatal(err)
		}
		for sub := range c.subs {
			a := adoption{process: process, sub: sub, merged: len(c.naive.merged), what: map[id]bool{}}
			for k := range c.news[n].subs[sub].got {
				e := &c.news[n].subs[sub].got[k]
				d := c.news[n].delivered(e)
				for seq := range d.head {
					if !d.holes.contains(seq) {
						a.what[id{e.stream, seq}] = true
					}
				}
			}
			c.naive.adopted = append(c.naive.adopted, a)
		}
	}
}

// step performs a random action; it returns true after a merge.
func (c *workers) step() (merged bool) {
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

// finish completes what is under way, or leaves it.
func (c *workers) finish() {
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
func (c *workers) parts(last bool) (parts []*Part) {
	for i, l := range c.ledgers {
		if c.last != nil && c.gone == i {
			parts = append(parts, c.last)
			continue
		}
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

// travel decodes a part's encoding, after checking that encoding it again gives the same.
func travel(t rapid.TB, p *Part) *Part {
	t.Helper()
	b := must.Get(p.AppendBinary(nil))(t)
	q := &Part{Limits: Limits{Streams: p.streams, Subscriptions: len(p.subs)}}
	must.Do(t, q.UnmarshalBinary(b))
	again, err := q.AppendBinary(nil)
	if err != nil || string(again) != string(b) {
		t.Fatalf("a part that was read has the form %x, %v; it was read of %x", again, err, b)
	}
	return q
}

func (c *workers) join(parts []*Part, missing func(uint32) bool) *Joined {
	c.t.Helper()
	j, err := Join(parts, missing)
	if err != nil {
		c.t.Fatal(err)
	}
	return j
}

// balanced checks the invariants of every book.
func balanced(t rapid.TB, j *Joined, subs int) {
	t.Helper()
	sAll, sWindow := j.Senders()
	for sub := range subs {
		all, window := j.Book(sub)
		for _, b := range []struct{ book, senders Book }{{all, sAll}, {window, sWindow}} {
			if b.book.Sent != b.book.Confirmed+b.book.Failed+b.book.Unconfirmed || b.book.Confirmed != b.book.Delivered+b.book.Corrupted+b.book.Missing+b.book.Unknown {
				t.Fatalf("Book(%d) does not balance: %+v", sub, b.book)
			}
			if s := b.senders; s.Sent != b.book.Sent || s.Confirmed != b.book.Confirmed || s.Failed != b.book.Failed || s.Unconfirmed != b.book.Unconfirmed {
				t.Fatalf("Book(%d) = %+v; Senders = %+v", sub, b.book, s)
			}
		}
		if got, want := j.l.Missing(sub), all.Missing+all.Unknown-min(all.Unknown, all.Late); got != want {
			t.Fatalf("Missing(%d) = %d; the book has %d", sub, got, want)
		}
		n := uint64(0)
		j.Undelivered(sub, func(_ Fate, _ bool, k uint64, _, _ int64) { n += k })
		j.Unknown(sub, func(_ bool, k uint64, _, _ int64) { n += k })
		// What was delivered and closed before it was confirmed is unknown, without an age.
		if want := all.Missing + all.Unknown + all.Corrupted + all.CorruptedUnconfirmed +
			all.Failed - all.FailedDelivered + all.Unconfirmed - all.UnconfirmedDelivered; n > want || n < want && j.l.closedUnknown == 0 {
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
func (c *workers) same(j *Joined, v *naive) {
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

// live compares what can be asked during a run.
func (c *workers) live(j *Joined) {
	c.t.Helper()
	complete := true
	for sub := range c.subs {
		want := c.naive.missing(sub)
		if got := j.l.Missing(sub); got != want {
			c.t.Fatalf("Missing(%d) = %d; want %d", sub, got, want)
		}
		complete = complete && want == 0
		last := int64(0)
		for i := range c.naive.merged {
			if a := &c.naive.merged[i]; a.sub == sub {
				last = max(last, a.At)
			}
		}
		if got := j.l.LastDelivery(sub); got != last {
			c.t.Fatalf("LastDelivery(%d) = %d; want %d", sub, got, last)
		}
	}
	if got := j.Complete(); got != complete {
		c.t.Fatalf("Complete = %v; want %v", got, complete)
	}
	if got, want := j.l.behind(), c.naive.backlog(); got != want {
		c.t.Fatalf("behind = %d; want %d", got, want)
	}
}
