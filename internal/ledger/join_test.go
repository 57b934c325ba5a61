package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func steps() int {
	if needs.Less() {
		return 150
	}
	return 400
}

func TestJoinedPartsMatchExactLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newWorkers(t, 0)
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

// One process vanishes: its last part is outdated, and what it sent since is known only from what
// others received.
func TestLostWorkerLeavesLastPartAndDeliveries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newWorkers(t, 0)
		gone, silent := c.draw(len(c.ledgers)), c.chance(20)
		c.tells = c.tells && !silent
		for range c.draw(steps()) {
			c.step()
		}
		c.merge()
		last := c.parts(false)[gone]
		if silent {
			last = New(Config{Streams: len(c.next), Consumers: make([]int, c.subs)}).empty()
		}
		c.gone, c.last = gone, last
		sent := map[uint32]uint64{}
		for _, e := range last.sent {
			sent[e.stream] = e.sent
		}
		// What the naive ledger may know of the vanished process.
		fates := map[id]Fate{}
		for _, m := range c.naive.messages {
			if m.seq < sent[m.stream] {
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
		j := c.join(parts, func(stream uint32) bool { return c.owner[stream] == gone })

		v := newNaive(c.subs)
		v.process = c.naive.process
		highest, adopted := map[uint32]uint64{}, c.naive.adopted
		for i, a := range c.naive.merged {
			for ; len(adopted) > 0 && adopted[0].merged <= i; adopted = adopted[1:] {
				x := adopted[0]
				x.merged = len(v.merged)
				v.adopted = append(v.adopted, x)
			}
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
				if m.seq >= max(sent[m.stream], highest[m.stream]) {
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
			// It may be in the unreported rest: then it is the lowest of the window that arrived.
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

func TestLostWorkersSendsAreDatedByDeliveries(t *testing.T) {
	sender, first, second := New(Config{Streams: 1, Consumers: []int{1}}), New(Config{Streams: 1, Consumers: []int{1}}), New(Config{Streams: 1, Consumers: []int{1}})
	last := new(Part)
	for seq := range uint64(100) {
		if seq == 48 {
			sender.Part(last)
		}
		sender.Sent(0, seq, 10*int64(seq), 10*int64(seq)+1)
		if seq == 40 || seq == 90 {
			first.Reader(0, 0).Delivered(&Event{Seq: seq, Due: 10 * int64(seq), Start: 10*int64(seq) + 1})
		}
	}
	first.Merge(nil)
	second.Reader(0, 0).Delivered(&Event{Seq: 40, Due: 400, Start: 401})
	second.Merge(nil)
	parts := []*Part{last, new(Part), new(Part)}
	join := func() *Joined {
		second.LastPart(parts[1])
		first.LastPart(parts[2])
		return must.Get(Join(parts, func(uint32) bool { return true }))(t)
	}
	news := new(Part)
	join().Deliveries(news)
	must.Do(t, second.Adopt(news))
	want := instants{}
	for seq := range int64(91) {
		if seq != 40 && seq != 90 {
			own := 10 * seq
			if seq >= 48 {
				own = 900
			}
			want[kind{FateUnconfirmed, false}] = append(want[kind{FateUnconfirmed, false}], own)
		}
	}
	for k, list := range want { // without From all that arrived is of the window
		for _, due := range list {
			if due >= 400 {
				want[kind{FateUnconfirmed, true}] = append(want[kind{FateUnconfirmed, true}], due)
			}
		}
		want[k] = list[:40]
		break
	}
	dues, _ := expand(func(visit visitor) { join().Undelivered(0, visit) })
	golden.Equal(t, want, dues, "dues of what did not arrive")
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

func TestJoinRejectsPartsOfDifferentRuns(t *testing.T) {
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

func TestJoinedAccountingBalancesBeyondBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newWorkers(t, 10)
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

// Two processes share the deliveries of a third's messages, alternating, so that each has as many
// holes as messages; the bound closes most of them.
func TestSharedDeliveriesAddUpBeyondBound(t *testing.T) {
	const messages = 20_000
	for _, test := range []struct {
		name                string
		lose, twice, damage uint64 // one in that many; 0: none
		sender              bool   // is one of the two
	}{
		{"all arrive", 0, 0, 0, false},
		{"some are lost", 100, 0, 0, false},
		{"some arrive at both", 0, 50, 0, false},
		{"some arrive corrupted", 0, 0, 70, false},
		{"all of it", 101, 53, 71, false},
		{"some are lost, and the sender receives", 100, 0, 0, true},
		{"all of it, and the sender receives", 101, 53, 71, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ledgers []*Ledger
			for range 3 {
				ledgers = append(ledgers, New(Config{Streams: 3, Consumers: []int{1}, From: messages / 2, MaxOpen: 100}))
			}
			every := func(seq, n uint64) bool { return n > 0 && seq%n == n-1 }
			receivers := ledgers[1:]
			if test.sender {
				receivers = ledgers[:2]
			}
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
					receivers[seq%2].Reader(0, 0).Delivered(&e)
					if every(seq, test.twice) {
						again++
						receivers[1-seq%2].Reader(0, 0).Delivered(&e)
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
			j := must.Get(Join(parts, nil))(t)
			balanced(t, j, 1)
			all, window := j.Book(0)
			if all.Evicted == 0 || all.Evicted != evicted {
				t.Errorf("Evicted = %d; the ledgers have %d", all.Evicted, evicted)
			}
			without := all.Missing + all.Unknown // the newest are known one by one
			if all.Unknown == 0 && again == 0 && lost > 0 || all.Missing > 10 || all.Late != 0 {
				t.Errorf("Unknown = %d, Missing = %d, Late = %d", all.Unknown, all.Missing, all.Late)
			}
			// As far as messages are known only by number, what both have hides what neither has.
			if got, want := int64(without)-int64(all.Duplicated), int64(lost)-int64(again); got != want {
				t.Errorf("%d are missing or unknown and %d duplicated, lost were %d and twice there %d", without, all.Duplicated, lost, again)
			}
			if again == 0 && without != lost || lost == 0 && all.Duplicated != again {
				t.Errorf("missing or unknown are %d, Duplicated = %d; want %d, %d", without, all.Duplicated, lost, again)
			}
			if test.twice == 0 && all.Corrupted != corrupted {
				t.Errorf("Corrupted = %d; want %d", all.Corrupted, corrupted)
			}
			if window.Sent != messages || all.Foreign != 0 || lost == 0 && again == 0 && window.Delivered+window.Corrupted != messages {
				t.Errorf("Book of the window = %+v, Foreign = %d", window, all.Foreign)
			}
			if got, want := j.l.behind(), without; got != want {
				t.Errorf("behind = %d; want %d", got, want)
			}
			n := uint64(0)
			j.Undelivered(0, func(_ Fate, _ bool, k uint64, due, _ int64) {
				n += k
				if due < 0 || due >= messages {
					t.Errorf("%d messages were due at %d", k, due)
				}
			})
			unknown := uint64(0)
			j.Unknown(0, func(_ bool, k uint64, response, _ int64) {
				unknown += k
				if response >= messages {
					t.Errorf("%d messages took %d at least", k, response)
				}
			})
			// Corrupted messages known by number stay where they were.
			if n+unknown != without+all.Corrupted {
				t.Errorf("Undelivered visits %d, Unknown %d", n, unknown)
			}
		})
	}
}

// As above, but the processes learn each other's deliveries: then they hold only what is under way
// and what is lost, and everything is exact.
func TestKnowingOthersDeliveriesBoundsMemory(t *testing.T) {
	const messages, most = 50_000, 500
	var ledgers []*Ledger
	for range 3 {
		ledgers = append(ledgers, New(Config{Streams: 2, Consumers: []int{1}, From: messages / 2, MaxOpen: most}))
	}
	parts := func(last bool) (parts []*Part) {
		for _, l := range ledgers {
			p := new(Part)
			if l.Merge(nil); last {
				l.LastPart(p)
			} else {
				l.Part(p)
			}
			if n := len(form(t, p)); !last && n > 4096 {
				t.Fatalf("the form of a part has %d bytes", n)
			}
			parts = append(parts, p)
		}
		return parts
	}
	want := Book{Sent: messages, Confirmed: messages}
	var twice Twice
	for seq := range uint64(messages) {
		if seq == messages/2 {
			ledgers[0].MeasureFrom(1, seq)
		}
		ledgers[0].Sent(1, seq, int64(seq), int64(seq))
		ledgers[0].Confirmed(1, seq)
		e := Event{Stream: 1, Seq: seq, Due: int64(seq), At: int64(seq)}
		to := ledgers[1+seq*7919%13%2]
		switch seq % 1000 {
		case 1:
			want.Missing++
			continue
		case 2:
			e.Corrupted = true
			want.Corrupted++
		case 3: // at all three, before they learn of it
			for _, l := range ledgers {
				if l != to {
					l.Reader(0, 0).Delivered(&e)
					want.Duplicated++
					twice.plus(Twice{1, 1})
				}
			}
		}
		to.Reader(0, 0).Delivered(&e)
		if seq%200 == 199 {
			j := must.Get(Join(parts(false), nil))(t)
			news := new(Part)
			j.Deliveries(news)
			news = travel(t, news)
			for _, l := range ledgers {
				must.Do(t, l.Adopt(news))
			}
			// And again, afterwards.
			again := e
			again.Seq -= 100
			if again.Seq%1000 > 3 {
				ledgers[1].Reader(0, 0).Delivered(&again)
				want.Duplicated++
			}
		}
	}
	for _, l := range ledgers {
		held := 0
		for i := range l.subs[0].streams {
			held += l.subs[0].streams[i].holes.n + l.subs[0].streams[i].corrupted.n
		}
		if l.held != held {
			t.Errorf("%d spans are held; %d are counted", held, l.held)
		}
	}
	want.Delivered = want.Confirmed - want.Corrupted - want.Missing
	j := must.Get(Join(parts(true), nil))(t)
	balanced(t, j, 1)
	all, _ := j.Book(0)
	if diff := cmp.Diff(want, all); diff != "" || j.Evicted() != 0 {
		t.Errorf("Evicted = %d, Book (-want +got):\n%s", j.Evicted(), diff)
	}
	if got, _ := j.Twice(0); got != twice {
		t.Errorf("Twice = %+v; want %+v", got, twice)
	}
	if err := ledgers[0].Adopt(&Part{streams: 3, subs: make([]subPart, 1)}); !errors.Is(err, ErrJoin) {
		t.Errorf("Adopt of a run with other streams: %v; want ErrJoin", err)
	}
}

// A delivery of a stream that nobody sent is foreign, even if the bound closed it.
func TestUnsentDeliveryIsForeignBeyondBound(t *testing.T) {
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
	j := must.Get(Join([]*Part{travel(t, p)}, nil))(t)
	joined, _ := j.Book(0)
	want := Book{Foreign: 1000, Evicted: l.Evicted()}
	golden.Equal(t, []Book{want, want}, []Book{all, joined}, "Book of the ledger, and of its part")
}
