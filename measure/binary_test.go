package measure

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weirmq/weir/internal/must"
)

// encoded returns the binary form.
func encoded(t must.TB, c *Counts) []byte {
	t.Helper()
	return must.Get(c.AppendBinary(nil))(t)
}

func sameSnapshot(t must.TB, got, want *Snapshot) {
	t.Helper()
	for k := range NumKinds {
		for p := range NumPhases {
			sameCounts(t, &got.Kinds[k][p], &want.Kinds[k][p])
		}
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Snapshot{}, "Kinds")); d != "" {
		t.Fatal(d)
	}
}

func sameInterval(t must.TB, got, want *Interval) {
	t.Helper()
	for k := range NumKinds {
		for p := range NumPhases {
			sameCounts(t, &got.Kinds[k][p], &want.Kinds[k][p])
		}
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Interval{}, "Kinds"), cmpopts.EquateEmpty()); d != "" {
		t.Fatal(d)
	}
}

// anyCounts draws Counts that Recorder.Next may yield.
func anyCounts(t *rapid.T) *Counts {
	c := new(Counts)
	for range rapid.IntRange(0, 40).Draw(t, "values") {
		v := rapid.Int64Range(0, 1<<43).Draw(t, "value") >> rapid.IntRange(0, 43).Draw(t, "shift")
		n := rapid.Uint64Range(1, 1<<50).Draw(t, "n") >> rapid.IntRange(0, 50).Draw(t, "shift of n")
		c.Add(v, n)
	}
	if rapid.Bool().Draw(t, "early overflow") {
		c.over += 3 // before their buckets
	}
	if rapid.Bool().Draw(t, "early extremes") && c.total > 0 {
		c.extremes(c.min/2, c.max*2)
	}
	return c
}

func TestCountsSurviveTheirBinaryForm(t *testing.T) {
	var into Counts // reused, so that leftovers would show
	rapid.Check(t, func(t *rapid.T) {
		c := anyCounts(t)
		b := encoded(t, c)
		rest, err := into.DecodeBinary(append(b, "rest"...))
		if err != nil || string(rest) != "rest" {
			t.Fatalf("rest %q: %v", rest, err)
		}
		sameCounts(t, &into, c)
		if again := encoded(t, &into); !bytes.Equal(again, b) {
			t.Fatalf("%x was read and is written as %x", b, again)
		}
		for n := range len(b) {
			if _, err := into.DecodeBinary(b[:n]); !errors.Is(err, ErrFormat) || into.total != 0 || into.over != 0 {
				t.Fatalf("cut after %d of %d bytes: %v, %d counted", n, len(b), err, into.total)
			}
		}
	})
}

func TestTheBinaryFormIsSmall(t *testing.T) {
	var c, wide Counts
	if b := encoded(t, &c); len(b) != 1 {
		t.Errorf("empty: % x", b)
	}
	c.Add(1_000_000, 1)
	if b := encoded(t, &c); len(b) > 16 {
		t.Errorf("one value: % x", b)
	}
	wide.Add(0, 1)
	wide.Add(Highest, 1)
	wide.Reset()
	wide.Add(1_000_000, 1)
	if a, b := encoded(t, &c), encoded(t, &wide); !bytes.Equal(a, b) {
		t.Errorf("the same counts in more room: % x, want % x", b, a)
	}
}

func TestMalformedCountsAreRefused(t *testing.T) {
	u := func(vs ...uint64) (b []byte) {
		for _, v := range vs {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	zig := func(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }
	buckets := func(vs ...uint64) []byte { return u(append([]uint64{partBuckets}, vs...)...) }
	var x Counts
	for _, text := range []string{"!", "AA==AA", "AAAA", "BA=="} {
		if err := x.UnmarshalText([]byte(text)); !errors.Is(err, ErrFormat) || x.total != 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":                     {},
		"an unknown part":             {4},
		"an overflow of none":         {partOverflow, 0},
		"a number in too many bytes":  {partOverflow, 0x81, 0x00},
		"a number above 64 bits":      {partOverflow, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
		"a number without end":        {partOverflow, 0xff},
		"a bucket beyond the last":    buckets(LastBucket+1, 0, 0, 1<<50, zig(1)),
		"a first bucket of 64 bits":   buckets(math.MaxUint64, 0, 0, 0, zig(1)),
		"a span beyond the last":      buckets(LastBucket-5, 6, 5, 1<<50, zig(1)),
		"a span of 64 bits":           buckets(5, math.MaxUint64, 5, 1<<50, zig(1)),
		"a minimum above the first":   buckets(5, 0, 6, 6, zig(1)),
		"a maximum below the last":    buckets(5, 0, 4, 4, zig(1)),
		"a maximum of 64 bits":        buckets(5, 0, 4, 1<<63, zig(1)),
		"no buckets":                  buckets(5, 0, 5, 5),
		"a count of 0":                buckets(5, 0, 5, 5, zig(0)),
		"an empty first bucket":       buckets(5, 1, 5, 6, zig(-1), zig(1)),
		"an empty last bucket":        buckets(5, 1, 5, 6, zig(1), zig(-1)),
		"two runs of empty buckets":   buckets(5, 3, 5, 8, zig(1), zig(-1), zig(-1), zig(1)),
		"a run beyond all":            buckets(5, 3, 5, 8, zig(1), zig(-3), zig(1)),
		"a run of 63 bits":            buckets(5, 3, 5, 8, zig(1), zig(math.MinInt64), zig(1)),
		"fewer buckets than promised": buckets(5, 3, 5, 8, zig(1), zig(-1), zig(1)),
		"a sum of 64 bits":            buckets(5, 1, 5, 6, zig(math.MaxInt64), zig(1)),
	} {
		var c Counts
		if _, err := c.DecodeBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
		if c.total != 0 || c.over != 0 || len(c.n) > numCounts {
			t.Errorf("%s: %d values, %d above, room for %d", name, c.total, c.over, len(c.n))
		}
	}
	var c Counts
	if _, err := c.DecodeBinary(buckets(5, 3, 5, 8, zig(1), zig(-2), zig(1))); err != nil || c.Total() != 2 {
		t.Errorf("a sound one is refused: %v", err)
	}
}

func TestCountsOf64BitsAreNotWritten(t *testing.T) {
	for _, n := range [][2]uint64{{1 << 63, 0}, {1<<63 - 1, 1}} {
		var iv Interval
		c := &iv.Kinds[Settle][Measure]
		c.Add(7, n[0])
		c.Add(9, n[1])
		if b, err := c.AppendBinary([]byte("abc")); err == nil || string(b) != "abc" {
			t.Errorf("%d: %q, %v", n, b, err)
		}
		if b, err := json.Marshal(&iv); err == nil {
			t.Errorf("%d: %s", n, b)
		}
	}
}

func anyInterval(t *rapid.T) *Interval {
	iv := &Interval{
		From: rapid.Int64().Draw(t, "from"),
		To:   rapid.Int64().Draw(t, "to"),
		Backlog: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Behind {
			return Behind{rapid.Uint64().Draw(t, "missing"), rapid.Uint64().Draw(t, "passed")}
		}), 0, 3).Draw(t, "backlog"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "kinds") {
		k := rapid.IntRange(0, int(NumKinds)-1).Draw(t, "kind")
		iv.Kinds[k][rapid.IntRange(0, 1).Draw(t, "phase")] = *anyCounts(t)
	}
	for _, v := range iv.Window.fields() {
		*v = rapid.Uint64().Draw(t, "window")
	}
	for p := range iv.Counters {
		for _, v := range iv.Counters[p].fields() {
			*v = rapid.Uint64().Draw(t, "counter")
		}
	}
	return iv
}

func TestIntervalsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		iv := anyInterval(t)
		b := must.Get(json.Marshal(iv))(t)
		var into, copied Interval
		must.Do(t, json.Unmarshal(b, &into))
		sameInterval(t, &into, iv)
		copied.Assign(iv)
		sameInterval(t, &copied, iv)
	})
}

// A new counter that is missing in the lists of fields would neither be sent nor summed.
func TestFieldsAreComplete(t *testing.T) {
	var c Counters
	var w Window
	if n := binary.Size(c) / 8; n != len(c.fields()) {
		t.Errorf("%d of %d counters", len(c.fields()), n)
	}
	if n := binary.Size(w) / 8; n != len(w.fields()) {
		t.Errorf("%d of %d in the window", len(w.fields()), n)
	}
	for _, fields := range [][]*uint64{func() []*uint64 { f := c.fields(); return f[:] }(), func() []*uint64 { f := w.fields(); return f[:] }()} {
		for _, f := range fields {
			if *f++; *f != 1 {
				t.Error("a field twice")
			}
		}
	}
}

// act does one random thing to a recorder.
func act(r *Recorder, rnd *rand.Rand) {
	i, due := rnd.IntN(4), rnd.Int64N(2000)
	ready := due + rnd.Int64N(100)
	start := ready + max(0, rnd.Int64N(100)-50)
	done := start + rnd.Int64N(1<<43)>>rnd.IntN(43)
	switch rnd.IntN(8) {
	case 0:
		r.Sender(i).Failed(due, start, done)
	case 1:
		r.Sender(i).Dropped(due)
	case 2:
		r.Sender(i).Unsent(due)
	case 3:
		r.Receiver(i).Settled(start, done, r.Phase(due))
	case 4:
		if len(r.repliers) > 0 {
			r.Replier(i).Received(done, 1, 50)
			r.Replier(i).Delivered(due, start, done, start-due)
		}
	case 5:
		r.Receiver(i).Received(done, 1, 50)
		r.Receiver(i).Delivered(due, start, done, start-due)
	default:
		r.Sender(i).Scheduled(due)
		r.Sender(i).Handed(due, due, ready, 0, start, 50)
		r.Sender(i).Confirmed(due, start, done, start-due)
	}
}

// sent returns what a recorder's agent sends at an instant: the interval since the last call,
// encoded and decoded, and the extremes so far. It sets own to the recorder's total.
func sent(t must.TB, r *Recorder, at int64, own *Snapshot) (*Interval, *Extremes) {
	t.Helper()
	iv, got := new(Interval), new(Interval)
	r.Next(at, iv)
	var now Snapshot
	now.Merge(&r.seen)
	for p, n := range r.freed {
		now.Kinds[SendBlocked][p].Add(0, n)
	}
	b := must.Get(json.Marshal(iv))(t)
	must.Do(t, json.Unmarshal(b, got))
	e := now.Extremes()
	*own = now
	return got, &e
}

// Compares, for three recorders of various kinds, the sum of their intervals with their own
// snapshots, individually and combined.
func TestSentIntervalsMakeTheSnapshot(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var merged, together Snapshot
		for range 3 {
			r := NewRecorder(Config{
				SendShards: 1 + rnd.IntN(2), ReceiveShards: 1 + rnd.IntN(2), ReplyShards: rnd.IntN(2),
				Replied: rnd.IntN(2) == 0, Closed: rnd.IntN(3) == 0, Bytes: 50 * rnd.IntN(2), From: 1000, To: 1800,
			})
			var own, sum, joined Snapshot
			var waiting Interval // as in a full outbox
			var e *Extremes
			for i := range 1 + rnd.IntN(4) {
				for range rnd.IntN(60) {
					act(r, rnd)
				}
				var iv *Interval
				iv, e = sent(t, r, int64(i+1)*700, &own)
				sum.Add(iv)
				sum.Widen(e)
				sameSnapshot(t, &sum, &own)
				var read Snapshot
				r.Read(own.At, &read)
				sameSnapshot(t, &read, &own)
				together.Add(iv)
				if i == 0 {
					waiting.Assign(iv)
				} else {
					waiting.Merge(iv)
				}
			}
			joined.Add(&waiting)
			joined.Widen(e)
			sameSnapshot(t, &joined, &own)
			if waiting.From != 0 || waiting.To != own.At {
				t.Fatalf("seed %d: joined from %d to %d", seed, waiting.From, waiting.To)
			}
			merged.Merge(&own)
			together.Widen(e)
		}
		sameSnapshot(t, &together, &merged)
	}
}

// The same while others record, including overflows: each reading, not only the last.
func TestSentIntervalsMakeTheSnapshotWhileRecording(t *testing.T) {
	r := NewRecorder(Config{SendShards: 2, ReceiveShards: 2, ReplyShards: 1, From: 1000, To: 1800})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 11))
			for range 5000 {
				act(r, rnd)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var sum, own Snapshot
	at := int64(0)
	for stop := false; !stop; at++ {
		select {
		case <-done:
			stop = true
		default:
		}
		iv, e := sent(t, r, at, &own)
		sum.Add(iv)
		sum.Widen(e)
		sameSnapshot(t, &sum, &own)
	}
	if own.Kinds[SendService][Measure].Overflow() == 0 {
		t.Error("nothing overflowed")
	}
}

// One reading sees a value counted above Highest, and only the next one its bucket.
func TestEarlyOverflowsAreNotLost(t *testing.T) {
	var sum, early, late Counts
	early.over = 1
	late.Add(Highest, 1)
	sum.Merge(&early)
	sum.Merge(&late)
	if sum.Overflow() != 1 || sum.Total() != 1 || sum.Max() != Highest {
		t.Errorf("%d of %d above, at most %d", sum.Overflow(), sum.Total(), sum.Max())
	}
}

func TestMergedIntervals(t *testing.T) {
	a, b := Interval{From: 10, To: 20, Backlog: Backlog{{Missing: 3}}}, Interval{From: 9, To: 21, Backlog: Backlog{{Missing: 5}}}
	a.Counters[Measure].Sent, b.Counters[Measure].Sent = 1, 2
	a.Window.Received, b.Window.Received = 3, 4
	a.Kinds[Settle][Measure].Add(7, 1)
	b.Kinds[Settle][Measure].Add(5, 2)
	for _, swap := range []bool{false, true} {
		var into Interval
		first, second := &a, &b
		if swap {
			first, second = second, first
		}
		into.Assign(first)
		into.Merge(second)
		c := &into.Kinds[Settle][Measure]
		if into.From != 9 || into.To != 21 || into.Backlog.Waiting() != 5 || into.Counters[Measure].Sent != 3 || into.Window.Received != 7 ||
			c.Total() != 3 || c.Min() != 5 || c.Max() != 7 {
			t.Errorf("swapped %v: %+v", swap, into)
		}
	}
}
