package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestCountsAgainstAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) int64 {
			return rapid.Int64Range(-10, 1<<43).Draw(t, "v") >> rapid.IntRange(0, 43).Draw(t, "shift")
		}), 1, 300).Draw(t, "values")
		h, added := NewHistogram(), new(Counts)
		for _, v := range values {
			h.Record(v)
			added.Add(v, 1)
		}
		var c Counts
		h.Read(&c)
		sameCounts(t, &c, added)
		var sum, sq float64
		var over uint64
		for i, v := range values {
			values[i] = max(v, 0)
			if v > Highest {
				over++
			}
		}
		slices.Sort(values)
		if c.Total() != uint64(len(values)) || c.Min() != values[0] || c.Max() != values[len(values)-1] || c.Overflow() != over {
			t.Fatalf("total %d min %d max %d overflow %d of %v", c.Total(), c.Min(), c.Max(), c.Overflow(), values)
		}
		for i, v := range values {
			rank := uint64(i + 1)
			want := min(HighestEquivalent(v), c.Max())
			if rank == c.Total() {
				want = c.Max()
			}
			if got := c.At(rank); got != want {
				t.Fatalf("rank %d of %v is %d, want %d", rank, values, got, want)
			}
			if low := c.LowestAt(rank); low > v || v <= Highest && low < LowestEquivalent(v) {
				t.Fatalf("rank %d of %v is at least %d, yet %d", rank, values, low, v)
			}
			sum += float64(min(v, Highest))
		}
		probe := rapid.Int64Range(0, Highest).Draw(t, "probe")
		below := uint64(0)
		for _, v := range values {
			if min(v, Highest) < LowestEquivalent(probe) {
				below++
			}
		}
		if got := c.Below(probe); probe <= c.Max() && got != below {
			t.Fatalf("below %d of %v: %d, want %d", probe, values, got, below)
		}
		if over > 0 {
			return // their values are not kept
		}
		mean := sum / float64(len(values))
		for _, v := range values {
			sq += (float64(v) - mean) * (float64(v) - mean)
		}
		if d := math.Abs(c.Mean() - mean); d > mean*0.0005+1e-9 {
			t.Fatalf("mean of %v is %g, want %g", values, c.Mean(), mean)
		}
		top := float64(values[len(values)-1])
		if d := math.Abs(c.StdDev() - math.Sqrt(sq/float64(len(values)))); d > top*0.001+1e-6 {
			t.Fatalf("standard deviation of %v is off by %g", values, d)
		}
	})
}

func sameCounts(t interface {
	Helper()
	Fatalf(string, ...any)
}, a, b *Counts,
) {
	t.Helper()
	type bucket struct {
		v int64
		n uint64
	}
	var x, y []bucket
	for v, n := range a.Buckets() {
		x = append(x, bucket{v, n})
	}
	for v, n := range b.Buckets() {
		y = append(y, bucket{v, n})
	}
	if !slices.Equal(x, y) || a.total != b.total || a.over != b.over || a.total > 0 && (a.min != b.min || a.max != b.max) {
		t.Fatalf("counts differ:\n%d %d %d-%d %v\n%d %d %d-%d %v", a.total, a.over, a.min, a.max, x, b.total, b.over, b.min, b.max, y)
	}
}

func TestMergedPartsAreTheWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		whole, a, b := new(Counts), new(Counts), new(Counts)
		for range rnd.IntN(300) {
			v := rnd.Int64N(1<<43) >> rnd.IntN(43)
			n := rnd.Uint64N(5)
			whole.Add(v, n)
			if rnd.IntN(2) == 0 {
				a.Add(v, n)
			} else {
				b.Add(v, n)
			}
		}
		merged := new(Counts)
		merged.Merge(a)
		merged.Merge(b)
		sameCounts(t, merged, whole)
	}
}

func TestEmptyCounts(t *testing.T) {
	var c, read Counts
	NewHistogram().Read(&read)
	for _, c := range []*Counts{&c, &read, FromBuckets(c.Buckets())} {
		if c.Total() != 0 || c.At(1) != 0 || c.LowestAt(1) != 0 || c.Below(5) != 0 || c.Mean() != 0 || c.StdDev() != 0 || c.Min() != 0 || c.Max() != 0 {
			t.Fatalf("not empty: %+v", c)
		}
	}
}

func TestRank(t *testing.T) {
	for _, tt := range []struct {
		p    float64
		n    uint64
		want uint64
	}{
		{50, 0, 0},
		{0, 10, 1},
		{50, 1, 1},
		{50, 10, 5},
		{50, 11, 6},
		{99, 100, 99},
		{99, 101, 100},
		{99.9, 1000, 999},
		{99.9, 1001, 1000},
		{99.99, 10000, 9999},
		{99.999, 100_000, 99_999},
		{99.9999, 1_000_000, 999_999},
		{99.9999, 1_500, 1_500},
		{100, 7, 7},
		{99.9, 1_000_000_000_000, 999_000_000_000},
		{40, 3, 2},
	} {
		if got := Rank(tt.p, tt.n); got != tt.want {
			t.Errorf("percentile %g of %d has rank %d, want %d", tt.p, tt.n, got, tt.want)
		}
	}
}

func TestReadingWhileRecordingNeverGoesBack(t *testing.T) {
	h := NewHistogram()
	const writers, each = 4, 20_000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 3))
			for range each {
				h.Record(rnd.Int64N(1<<42) >> rnd.IntN(42))
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var prev, now Counts
	for stop := false; !stop; {
		select {
		case <-done:
			stop = true
		default:
		}
		h.Read(&now)
		for i, n := range prev.Range() {
			if i < now.lo || i >= now.lo+len(now.n) || now.n[i-now.lo] < n {
				t.Fatalf("a later reading holds less than %d in bucket %d", n, i)
			}
		}
		prev.Assign(&now)
	}
	if prev.Total() != writers*each {
		t.Fatalf("counted %d of %d", prev.Total(), writers*each)
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	h := NewHistogram()
	r := NewRecorder(Config{From: 10, To: 100, Horizon: 100})
	s, v := r.Sender(0), r.Receiver(0)
	if n := testing.AllocsPerRun(100, func() {
		h.Record(123_456)
		h.RecordN(-1, 3)
		h.Record(Highest + 1)
		s.Scheduled(50)
		s.Handed(50, 50, 51, 0, 52, 64)
		s.Confirmed(50, 52, 200, 1)
		s.Failed(50, 52, 200)
		s.Dropped(50)
		s.Unsent(5)
		v.Received(60, 2, 128)
		v.Delivered(50, 52, 60, 1)
		v.Settled(60, 61, Measure)
	}); n != 0 {
		t.Fatalf("%g allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	h := NewHistogram()
	v := int64(100_000)
	for b.Loop() {
		v = (v*1_103_515_245 + 12_345) & (1<<20 - 1)
		h.Record(v)
	}
}

// BenchmarkMessage measures recording a sent and confirmed message.
func BenchmarkMessage(b *testing.B) {
	r := NewRecorder(Config{From: 0, To: 1 << 60, Bytes: 64})
	s := r.Sender(0)
	due := int64(0)
	for b.Loop() {
		due += 1000
		s.Handed(due, due, due+200, 0, due+200, 64)
		s.Confirmed(due, due+200, due+30_000+due&4095, 200)
	}
}

func BenchmarkDelivery(b *testing.B) {
	r := NewRecorder(Config{From: 0, To: 1 << 60, Bytes: 64})
	s := r.Receiver(0)
	due := int64(0)
	for b.Loop() {
		due += 1000
		s.Received(due+40_000, 1, 64)
		s.Delivered(due, due+200, due+30_000+due&4095, 200)
	}
}

// BenchmarkSnapshot measures one reading of two shards each with latencies from 1 µs to 100 ms in
// every distribution.
func BenchmarkSnapshot(b *testing.B) {
	r := NewRecorder(Config{SendShards: 2, ReceiveShards: 2, From: 0, To: 1 << 60, Bytes: 64})
	for i := range 2 {
		for v := int64(1000); v < 100_000_000; v += v >> 9 {
			r.Sender(i).Handed(0, 0, v, 0, 2*v, 64)
			r.Sender(i).Confirmed(0, v, 2*v, v)
			r.Receiver(i).Delivered(0, v, 2*v, v)
		}
	}
	var a Snapshot
	for b.Loop() {
		r.Read(1, &a)
	}
}
