package judge

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// stalledRun is a run of 10 s in tenths with 1,000 messages each of 1.00 to 1.99 ms. In each tenth that
// stands still, the host stalls for 20 ms: the last 200 messages of it take 1 to 20 ms more.
func stalledRun(usual int64, still func(tenth int) bool) *result.Dist {
	var s Slices
	sum := new(measure.Counts)
	for i := range 100 {
		in := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
		in.Counters[measure.Measure].Scheduled = 1000
		c, woken := &in.Kinds[measure.E2EOnTime][measure.Measure], &in.Kinds[measure.Hiccups][measure.Measure]
		woken.Add(usual, 80)
		for m := range int64(20) {
			if still(i) {
				woken.Add((20-m)*1e6, 1)
			} else {
				woken.Add(usual, 1)
			}
		}
		for m := range int64(1000) {
			ns := 1_000_000 + m*1_000
			if still(i) && m >= 800 {
				ns += (m - 799) * 100_000
			}
			c.Add(ns, 1)
			sum.Add(ns, 1)
		}
		s.Add(in)
	}
	d := Distribution(sum, nil)
	s.Stalls(d, Samples{Kind: measure.E2EOnTime, Observed: sum}, usual)
	return d
}

// stallMarks returns the marks of a distribution's percentiles.
func stallMarks(d *result.Dist) map[float64]result.Figure {
	in := good()
	in.Latency = result.Latency{E2E: result.Pair{Response: d, OnTime: d}}
	marks := map[float64]result.Figure{}
	for i, f := range slices.DeleteFunc(Figures(&in), func(f result.Figure) bool { return f.Name == "confirmed.rate" || f.Name == "received.rate" }) {
		marks[d.Percentiles[i].P] = f
	}
	return marks
}

func TestStallsMarkWhatTheyMoved(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	for name, x := range map[string]struct {
		usual  int64
		still  func(int) bool
		p      float64
		marked bool
		atMost bool
	}{
		"a quiet host":                        {50_000, func(int) bool { return false }, 99, false, false},
		"a host that wakes threads late":      {400_000, func(int) bool { return false }, 99, false, false}, // as always
		"one stall, the median":               {50_000, func(i int) bool { return i == 50 }, 50, false, false},
		"one stall, a tail of ten messages":   {50_000, func(i int) bool { return i == 50 }, 99.9, true, false},
		"stalls in each tenth, the tail":      {50_000, func(int) bool { return true }, 99, true, true},
		"stalls in every fifth, the tail":     {50_000, func(i int) bool { return i%5 == 0 }, 99, true, false},
		"stalls in the first half, the tail":  {50_000, func(i int) bool { return i < 50 }, 99, true, false},
		"stalls in every other, nothing calm": {50_000, func(i int) bool { return i%2 == 0 }, 99, true, true}, // what follows a stall is not calm
	} {
		d := stalledRun(x.usual, x.still)
		got := stallMarks(d)[x.p]
		if got.Quotable == x.marked || got.AtMost != x.atMost || x.marked != (got.By == CheckHiccups) {
			t.Errorf("%s: %+v, stalls %+v; want it marked: %t", name, got, d.Percentile(x.p).Stalls, x.marked)
		}
		if x.marked && !x.atMost && (*d.Percentile(x.p).Stalls.CalmNS > 2_000_000 || got.Part < 0.5) {
			t.Errorf("%s: %+v, calm %d; want most of it to be the stalls", name, got, *d.Percentile(x.p).Stalls.CalmNS)
		}
	}
}

// Without the thread that only sleeps, as in the results of older versions, nothing is recorded.
func TestStallsNeedHiccups(t *testing.T) {
	t.Parallel()
	d := Distribution(upTo(1000, 1000), nil)
	new(Slices).Stalls(d, Samples{Kind: measure.E2EOnTime, Observed: upTo(1000, 1000)}, 0)
	for _, p := range d.Percentiles {
		if p.Stalls != nil {
			t.Errorf("%+v", p)
		}
	}
}

// A stall of n milliseconds delays n wake-ups, and counts as one.
func TestStallIsCountedOnce(t *testing.T) {
	t.Parallel()
	woken := counts(20_000_000, 19_000_000, 18_000_000, 17_000_000)
	woken.Add(50_000, 996)
	x := stalled{row: &result.Percentile{P: 99, NS: 10_000_000}, usual: 50_000}
	late, stalls, _ := x.over(woken, stallLeast)
	if late != 4 || stalls != 0 { // it is longer than the four wake-ups show: the rest is in the next slice
		t.Errorf("%d wake-ups late, %d stalls", late, stalls)
	}
	for ms := int64(1); ms < 17; ms++ {
		woken.Add(ms*1_000_000, 1)
	}
	if late, stalls, _ = x.over(woken, stallLeast); late != 20 || stalls != 1 {
		t.Errorf("%d wake-ups late, %d stalls; want 20 and 1", late, stalls)
	}
}

// With a message a millisecond, the share that was delayed is at most what met says, whether all stood still,
// or single wake-ups were late, or both.
func TestMetBoundsWhatWasDelayed(t *testing.T) {
	t.Parallel()
	const ms, run = int64(1_000_000), 200_000
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 39))
		v := int64(100_000) << r.IntN(8) // 0.1 to 13 ms
		x := stalled{row: &result.Percentile{P: 50, NS: v}, by: v, usual: 20_000}
		least := x.than(stallLeast)
		single := r.Float64() * 0.02 // of the wake-ups
		stops, longest := r.IntN(1000), 1+r.Int64N(20*ms)
		woken, met := new(measure.Counts), make([]bool, run)
		late := make([]int64, run)
		for range stops {
			begin, long := r.Int64N(run*ms), least+r.Int64N(longest)
			phase := int64(666_667) // of the thread that only sleeps
			for at := (begin-phase+ms-1)/ms*ms + phase; at < begin+long && at/ms < run; at += ms {
				late[at/ms] = max(late[at/ms], begin+long-at)
			}
			for due := max(0, (begin-v)/ms); due*ms < begin+long && due < run; due++ {
				met[due] = met[due] || due*ms+v > begin
			}
		}
		for i := range run {
			if r.Float64() < single {
				late[i] = max(late[i], least+r.Int64N(ms))
			}
			for range wakesPerMessage {
				met[i] = met[i] || r.Float64() < single
			}
			woken.Add(20_000+late[i], 1)
		}
		n := 0
		for _, m := range met {
			if m {
				n++
			}
		}
		// A stall that is shorter than a millisecond is seen by chance.
		got, want := x.met(woken), float64(n)/run
		if slack := 0.01 + 4*math.Sqrt(want/run); got < want-slack && got < 1 {
			t.Errorf("seed %d, v %d, %d stalls of up to %d, %.3f of single wake-ups: met %.4f, but %.4f were delayed", seed, v, stops, longest, single, got, want)
		}
	}
}

// Whichever messages were delayed, and by how much, the bound is not above the percentile without delays.
func TestLeastHoldsForAnyCoupling(t *testing.T) {
	t.Parallel()
	const n = 2000
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1981))
		truth := make([]int64, n)
		for i := range truth {
			truth[i] = int64(100_000 * (1 + r.ExpFloat64()))
		}
		slices.Sort(truth)
		p := []float64{50, 75, 90, 99}[r.IntN(4)]
		rank := int(measure.Rank(p, n))
		met := r.IntN(n / 2)
		from := []int{0, max(0, rank-met), n - met, r.IntN(n - met + 1)}[r.IntN(4)] // fast ones, those just below, slow ones, any
		seen := new(measure.Counts)
		for i, ns := range truth {
			if from <= i && i < from+met {
				ns += r.Int64N(1 << r.IntN(30))
			}
			seen.Add(ns, 1)
		}
		x := stalled{row: &result.Percentile{P: p, NS: seen.Percentile(p)}}
		if b := x.least(seen, float64(met)/n); b.LeastNS > measure.HighestEquivalent(truth[rank-1]) {
			t.Errorf("seed %d: p%v is at least %d with %d of %d delayed; without delays it is %d", seed, p, b.LeastNS, met, n, truth[rank-1])
		}
	}
}
