package ledger

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
)

// worldPart returns the part of a random run's ledger.
func worldPart(seed uint64, steps, maxOpen int) *Part {
	w := newWorld(seed)
	w.ledger = New(Config{Streams: w.streams, Consumers: w.consumers, MaxOpen: maxOpen, From: w.from})
	w.play(steps)
	p := new(Part)
	w.ledger.LastPart(p)
	return p
}

// awayPart returns the part of a process that received a stream which it does not send, beyond its
// bound.
func awayPart() *Part {
	l := New(Config{Streams: 2, Consumers: []int{1, 1}, MaxOpen: 10, From: 300})
	for seq := range uint64(200) {
		l.Reader(0, 0).Delivered(&Event{Stream: 1, Seq: 2 * seq, Due: int64(seq), Start: int64(seq) + 3, At: int64(seq) + 9, Corrupted: seq%5 == 0})
		l.Merge(nil)
	}
	p := new(Part)
	l.LastPart(p)
	return p
}

// form returns a part's encoding.
func form(tb testing.TB, p *Part) []byte {
	tb.Helper()
	return must.Get(p.AppendBinary(nil))(tb)
}

// The copy goes into a part with other contents, and later changes to either do not affect the
// other.
func TestCopyOfPartIsEqualAndIndependent(t *testing.T) {
	var copied Part
	for seed := range uint64(30) {
		p := worldPart(seed, 800, []int{0, 10}[seed%2])
		if seed%5 == 4 {
			p = awayPart()
		}
		want := form(t, p)
		copied.Assign(p)
		if got := form(t, &copied); !slices.Equal(got, want) {
			t.Fatalf("seed %d: the copy is another part", seed)
		}
		p.Assign(worldPart(seed+100, 400, 10))
		if got := form(t, &copied); !slices.Equal(got, want) {
			t.Fatalf("seed %d: the copy changed with what it was copied from", seed)
		}
	}
}

func TestPartEncodingRoundTrip(t *testing.T) {
	var used Part
	for seed := range uint64(30) {
		maxOpen := []int{0, 10}[seed%2]
		p := worldPart(seed, 800, maxOpen)
		before := must.Get(Join([]*Part{p}, nil))(t)
		// Into a part with other contents.
		used.Limits = Limits{Streams: p.streams, Subscriptions: len(p.subs)}
		if err := used.UnmarshalBinary(form(t, p)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		after := must.Get(Join([]*Part{&used}, nil))(t)
		for sub := range p.subs {
			all, window := before.Book(sub)
			gotAll, gotWindow := after.Book(sub)
			if diff := cmp.Diff([]Book{all, window}, []Book{gotAll, gotWindow}); diff != "" {
				t.Errorf("seed %d: Book(%d) (-written +read):\n%s", seed, sub, diff)
			}
			dues, starts := expand(func(visit visitor) { before.Undelivered(sub, visit) })
			gotDues, gotStarts := expand(func(visit visitor) { after.Undelivered(sub, visit) })
			if diff := cmp.Diff([]instants{dues, starts}, []instants{gotDues, gotStarts}); diff != "" {
				t.Errorf("seed %d: Undelivered(%d) (-written +read):\n%s", seed, sub, diff)
			}
		}
	}
}

// The encoding and the part of a running ledger keep fewer points than the ledger.
func TestPartTimelineNeverPrecedesMessages(t *testing.T) {
	for _, test := range []struct {
		streams, messages int
		last, travel      bool
		points            int
	}{
		{1, 10_000, false, false, livePoints},
		{1, 100_000, false, true, livePoints},
		{1, 100_000, true, true, partPoints},
		{3, 20_000, true, true, partPoints / 3},
		{5000, 20, true, true, leastPoints},
	} {
		l := New(Config{Streams: test.streams, Consumers: []int{1}})
		due := func(seq uint64) int64 { return 10 * int64(seq) }
		for stream := range uint32(test.streams) {
			for seq := range uint64(test.messages) {
				l.Sent(stream, seq, due(seq), due(seq)+5)
			}
			l.Confirmed(stream, uint64(test.messages)-1) // so that any part contains everything as sent
		}
		p := new(Part)
		if test.last {
			l.LastPart(p)
		} else {
			l.Part(p)
		}
		if test.travel {
			p = travel(t, p)
		}
		for _, e := range p.sent[:min(len(p.sent), 3)] {
			line := timeline{points: p.points[e.points.from:e.points.to], step: e.step}
			if n := len(line.points); n > test.points || n < test.points/2 {
				t.Errorf("%+v: %d points", test, n)
			}
			far := int64(0)
			for seq := range uint64(test.messages &^ 15) {
				at, _ := line.at(seq, e.last)
				if at.due < due(seq) || at.start != at.due+5 {
					t.Fatalf("%+v: message %d, due %d, has the point %+v", test, seq, due(seq), at)
				}
				far = max(far, at.due-due(seq))
			}
			if most := due(2 * uint64(test.messages) / uint64(test.points)); far > most {
				t.Errorf("%+v: an instant is %d too late; want at most %d", test, far, most)
			}
		}
	}
}

func TestCorruptPartEncodingIsRejected(t *testing.T) {
	good := worldPart(4, 900, 10)
	for _, p := range []*Part{good, awayPart(), worldPart(7, 500, 0)} {
		b := form(t, p)
		q := Part{Limits: Limits{Streams: p.streams, Subscriptions: len(p.subs)}}
		for n := range b {
			if err := q.UnmarshalBinary(b[:n]); !errors.Is(err, ErrFormat) {
				t.Fatalf("the first %d bytes of %d: %v; want ErrFormat", n, len(b), err)
			}
		}
		if err := q.UnmarshalBinary(append(slices.Clone(b), 0)); !errors.Is(err, ErrFormat) {
			t.Errorf("a byte more: %v; want ErrFormat", err)
		}
		if len(q.sent) != 0 || len(q.subs) != 0 || q.streams != 0 {
			t.Error("a part is not empty after an error")
		}
		q.Limits.Streams--
		if err := q.UnmarshalBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("a stream more than there may be: %v; want ErrFormat", err)
		}
		q.Limits = Limits{Streams: p.streams, Subscriptions: len(p.subs) - 1}
		if err := q.UnmarshalBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("a subscription more than there may be: %v; want ErrFormat", err)
		}
		if err := new(Part).UnmarshalBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("without limits: %v; want ErrFormat", err)
		}
		q.Limits = Limits{Streams: math.MaxInt, Subscriptions: math.MaxInt}
		b[0]++
		if err := q.UnmarshalBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("another version: %v; want ErrFormat", err)
		}
	}
}

// Contradictory contents are rejected even if well-formed.
func TestContradictoryPartEncodingIsRejected(t *testing.T) {
	for _, test := range []struct {
		what  string
		spoil func(p *Part)
	}{
		{"a stream twice", func(p *Part) { p.sent[1].stream = p.sent[0].stream }},
		{"a stream that the run has not", func(p *Part) { p.sent[len(p.sent)-1].stream = uint32(p.streams) }},
		{"more is settled than sent", func(p *Part) { p.sent[0].head = p.sent[0].sent + 1 }},
		{"nothing is sent", func(p *Part) { p.sent[0].sent = 0 }},
		{"more is closed than settled", func(p *Part) { p.sent[0].closed = p.sent[0].head + 1 }},
		{"other messages are closed", func(p *Part) { p.closedBooks[0].Confirmed++ }},
		{"fewer are closed", func(p *Part) { p.sent[0].closed-- }},
		{"a book of what is closed differs", func(p *Part) { p.subs[0].closed[0].Confirmed++ }},
		{"more is delivered than closed", func(p *Part) { p.subs[0].closed[0].Delivered += p.subs[0].closed[0].Unknown + 1 }},
		{"fewer groups than closed", func(p *Part) { p.closedFates[FateFailed][0] = p.closedFates[FateFailed][0][1:] }},
		{"fewer groups than corrupted", func(p *Part) { p.subs[0].damaged[FateConfirmed][0] = nil }},
		{"more groups than unknown", func(p *Part) { p.subs[0].unknown[FateConfirmed][0][0].n += maxSequence }},
		{"an unknown group with a fate", func(p *Part) { p.subs[0].unknown[FateFailed][0] = p.subs[0].unknown[FateConfirmed][0] }},
		{"an empty group", func(p *Part) { p.closedFates[FateFailed][0][0].n = 0 }},
		{"fewer are unconfirmed than known", func(p *Part) { p.sent[0].unconfirmed = 0 }},
		{"more are unconfirmed than can be", func(p *Part) { p.sent[0].unconfirmed = p.sent[0].head }},
		{"the head is not settled", func(p *Part) { p.spans[p.sent[0].holes.to-1].hi = p.sent[0].head }},
		{"a failed message is not settled", func(p *Part) { p.sent[0].failed = p.sent[0].holes }},
		{"spans touch", func(p *Part) { p.spans[p.sent[0].failed.from+1].lo = p.spans[p.sent[0].failed.from].hi }},
		{"a span is empty", func(p *Part) {
			x := &p.spans[p.sent[0].failed.from]
			x.hi = x.lo
		}},
		{"dues fall", func(p *Part) { p.points[p.sent[0].points.from+2].due = 0 }},
		{"starts fall", func(p *Part) { p.points[p.sent[0].points.from+2].start = -1 }},
		{"the last is not the last", func(p *Part) { p.sent[0].last.start -= 1 << 40 }},
		{"a longer timeline", func(p *Part) { p.sent[0].step *= 4 }},
		{"a delivery is missing and corrupted", func(p *Part) { p.subs[0].got[0].corrupted = p.subs[0].got[0].holes }},
		{"the highest delivery is missing", func(p *Part) { p.spans[p.subs[0].got[0].holes.to-1].hi = p.subs[0].got[0].head }},
		{"more arrived by number than there can be", func(p *Part) { p.subs[0].got[0].first[0].good = maxSequence + 1 }},
	} {
		t.Run(test.what, func(t *testing.T) {
			p := worldPart(0, 1500, 100)
			if s, d := &p.sent[0], &p.subs[0].got[0]; len(p.sent) < 2 || s.closed == 0 || s.holes.to-s.holes.from == 0 || s.failed.to-s.failed.from < 2 ||
				s.points.to-s.points.from < 3 || d.holes.from == d.holes.to || len(p.closedFates[FateFailed][0]) == 0 || len(p.subs[0].damaged[FateConfirmed][0]) == 0 || len(p.subs[0].unknown[FateConfirmed][0]) == 0 {
				t.Fatal("the part has too little in it")
			}
			b := form(t, p)
			limits := Limits{Streams: p.streams, Subscriptions: len(p.subs)}
			must.Do(t, (&Part{Limits: limits}).UnmarshalBinary(b))
			test.spoil(p)
			b, err := p.AppendBinary(nil)
			if err == nil {
				err = (&Part{Limits: limits}).UnmarshalBinary(b)
			}
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%v; want ErrFormat", err)
			}
		})
	}
}

func TestOverflowingPartIsNotEncoded(t *testing.T) {
	for _, e := range []Event{{Seq: 1 << 48}, {At: 1<<56 + 1}, {Due: math.MinInt64}} {
		l := New(Config{Streams: 1, Consumers: []int{1}})
		l.Reader(0, 0).Delivered(&e)
		l.Merge(nil)
		p := new(Part)
		l.LastPart(p)
		b, err := p.AppendBinary([]byte("before"))
		if !errors.Is(err, ErrFormat) || string(b) != "before" {
			t.Errorf("%+v: %q, %v; want ErrFormat and what was there before", e, b, err)
		}
	}
}

// Claimed lengths do not cause allocations.
func TestDecodingAllocatesByInputSize(t *testing.T) {
	measure := func(b []byte) uint64 {
		p := Part{Limits: Limits{Streams: 1 << 30, Subscriptions: 1 << 20}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = p.UnmarshalBinary(b) // right or wrong
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	l := New(Config{Streams: 500, Consumers: make([]int, 50)})
	for stream := range uint32(500) {
		l.Sent(stream, 0, 0, 0)
	}
	p := new(Part)
	l.LastPart(p)
	forms := [][]byte{form(t, p), form(t, awayPart()), form(t, worldPart(4, 900, 10))}
	for _, b := range slices.Clone(forms) {
		for i := range b { // a large number somewhere
			c := slices.Concat(b[:i], []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, b[i+1:])
			if i < 200 {
				forms = append(forms, c)
			}
		}
	}
	for _, b := range forms {
		if n := measure(b); n > 128*uint64(len(b))+4096 {
			t.Errorf("%d bytes take %d to read", len(b), n)
		}
	}
}

func FuzzPart(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(form(f, worldPart(seed, 300, []int{0, 10}[seed%2])))
	}
	f.Add(form(f, awayPart()))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &Part{Limits: Limits{Streams: 64, Subscriptions: 8}}
		if err := p.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("%v is not ErrFormat", err)
			}
			return
		}
		if again := form(t, p); string(again) != string(b) {
			t.Fatalf("%x was read, and %x is written", b, again)
		}
		j := must.Get(Join([]*Part{p}, func(stream uint32) bool { return stream%2 == 1 }))(t)
		balanced(t, j, len(p.subs))
		// With another that received the same, and one that did nothing.
		other := *p
		other.sent, other.closedBooks, other.closedFates, other.closedUnknown = nil, [2]Book{}, groups{}, 0
		other.subs = slices.Clone(p.subs)
		for i := range other.subs {
			other.subs[i].closed, other.subs[i].damaged, other.subs[i].unknown = [2]Book{}, groups{}, groups{}
		}
		j = must.Get(Join([]*Part{&other, p, {streams: p.streams, subs: make([]subPart, len(p.subs))}}, nil))(t)
		balanced(t, j, len(p.subs))
		j.Complete()
		j.l.behind()
	})
}
