package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// sampledInterval is one interval of 1000 samples of which some are slow.
func sampledInterval(slow uint64) *measure.Counts {
	c := new(measure.Counts)
	c.Add(1_000_000, 1000-slow)
	if slow > 0 {
		c.Add(10_000_000, slow)
	}
	return c
}

// runOf returns n intervals with this many slow samples each.
func runOf(n int, slow func(i int) uint64) []*measure.Counts {
	var all []*measure.Counts
	for i := range n {
		all = append(all, sampledInterval(slow(i)))
	}
	return all
}

// oneIn is a run of which one interval in this many is slow.
func oneIn(n int) func(int) uint64 { return func(i int) uint64 { return 1000 * uint64((i%n+1)/n) } }

// keep adds intervals to slices.
func (s *Slices) keep(all []*measure.Counts) {
	in := new(measure.Interval)
	for _, c := range all {
		in.Kinds[measure.SendResponse][measure.Measure] = *c
		s.Add(in)
	}
}

// widened returns the distribution of intervals.
func widened(all []*measure.Counts, also ...float64) *result.Dist {
	sum := new(measure.Counts)
	for _, c := range all {
		sum.Merge(c)
	}
	d := Distribution(sum, nil, also...)
	var s Slices
	s.keep(all)
	s.Widen(measure.SendResponse, d, sum, nil)
	return d
}

func TestClusteredSamplesCountForFewer(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	// Ten slow ones a second, as chance has it (the binomial of 1000 and 1 %), or
	// all thousand of them in one second of a hundred.
	apart := func(int) uint64 { return uint64(math.Round(10 + math.Sqrt(9.9)*dice.NormFloat64())) }
	at := func(slow func(int) uint64) float64 { return widened(runOf(100, slow)).Percentile(95).Deff }
	if d := at(apart); d < 1 || d > 2.5 {
		t.Errorf("independent samples have a design effect of %.2f; want about 1", d)
	}
	if d := at(oneIn(100)); d < 500 {
		t.Errorf("a thousand slow samples in one second have a design effect of %.2f; want hundreds", d)
	}
}

func TestSingleStallTailHasNoUpperBound(t *testing.T) {
	// One stall of a second makes 1 % of the samples slow: it decides p99.5, and its frequency is unknown.
	row := widened(runOf(100, oneIn(100))).Percentile(99.9)
	if row.HiNS != nil || row.LoNS == nil || *row.LoNS > 1_000_000 {
		t.Errorf("p99.9 lies in %v..%v with a design effect of %.0f; want no upper end, and the quick ones at the lower", row.LoNS, row.HiNS, row.Deff)
	}
	row = widened(runOf(100, func(int) uint64 { return 10 })).Percentile(99.9)
	if row.HiNS == nil || row.LoNS == nil || *row.LoNS < 5_000_000 {
		t.Errorf("ten slow samples in each second: p99.9 lies in %v..%v; want both ends at 10 ms", row.LoNS, row.HiNS)
	}
}

// 200 seconds of which one in 100, in 50, or in 20 is slow. Two or four episodes allow no generalization,
// however many messages they have.
func TestUpperBoundNeedsSixEpisodes(t *testing.T) {
	for apart, bounded := range map[int]bool{100: false, 50: false, 20: true} {
		row := widened(runOf(200, oneIn(apart)), 96).Percentile(50)
		if row.HiNS == nil != !bounded || row.Episodes != 200/apart {
			t.Errorf("%d bursts in 200 s: p50 has the upper end %v, of %d episodes; want one: %v", 200/apart, row.HiNS, row.Episodes, bounded)
		}
		if !bounded && row.UnboundedBy != result.ByEpisodes {
			t.Errorf("%d bursts in 200 s: the upper end is missing by %q; want %q", 200/apart, row.UnboundedBy, result.ByEpisodes)
		}
	}
}

// With too few slices, and with many slices of which each half has its own level.
func TestTooShortRunHasNoInterval(t *testing.T) {
	for name, all := range map[string][]*measure.Counts{
		"few slices": runOf(stats.FewestBlocks-1, func(int) uint64 { return 10 }),
		"two levels": runOf(40, func(i int) uint64 { return 100 + uint64(i/20)*500 + uint64(i%3) }),
	} {
		d := widened(all)
		row := d.Percentile(90)
		if row.LoNS != nil || row.HiNS != nil || row.UnboundedBy != result.ByDependence || d.MeanDeff != 0 {
			t.Errorf("%s: p90 has an interval %v..%v by %q, and the mean a design effect of %v; want none", name, row.LoNS, row.HiNS, row.UnboundedBy, d.MeanDeff)
		}
		for _, o := range []string{"send.p90 <= 1h", "send.mean <= 1h"} {
			o := must.Get(ParseObjective(o))(t)
			r := o.resultOf(d)
			r.Run.MeasureS = 10
			if s := o.Judge(r); s.Status != result.Undecided || s.Why == "" || o.figure.stat == "p" && s.NeedsS <= 10 {
				t.Errorf("%s: %s is %s, needs %v s: %s; want it undecided, and how long a run would decide it", name, o, s.Status, s.NeedsS, s.Why)
			}
		}
	}
}

// The same samples, slow ones spread over all seconds or in one of a hundred.
func TestMeanIntervalAccountsForClustering(t *testing.T) {
	width := func(slow func(i int) uint64) float64 {
		x := findMean(widened(runOf(100, slow)))
		return *x.hi - *x.lo
	}
	each, one := width(func(int) uint64 { return 10 }), width(oneIn(100))
	// By the definition: the share of slow ones has a standard error of 0.0315 %
	// where they come one by one, and of 1 % where seconds are slow or quick. The
	// allowance for few blocks and for dependence that a run hides makes it more.
	if want := 2 * normalQuantile * 9e6 * math.Sqrt(0.01*0.99/100_000); each < 0.99*want || each > 1.3*want {
		t.Errorf("slow ones in each second: an interval of %.0f ns; want %.0f", each, want)
	}
	if want := 2 * normalQuantile * 9e6 * 0.01; one < 0.99*want || one > 1.5*want {
		t.Errorf("slow ones in one second: an interval of %.0f ns; want %.0f", one, want)
	}
}

// TestLongRunUsesBoundedMemory: all samples are there, in few slices of equal
// length.
func TestLongRunUsesBoundedMemory(t *testing.T) {
	var s Slices
	in := new(measure.Interval)
	s.Add(in) // before the window: it is none of its slices
	const intervals = 5*mostSlices + 3
	for i := range intervals {
		in.Kinds[measure.SendResponse][measure.Measure] = *sampledInterval(uint64(i % 7))
		s.Add(in)
	}
	var got, lengths uint64
	slices := 0
	s.each(measure.SendResponse, new(measure.Censored), func(_ int, c *measure.Counts) {
		got += c.Total()
		if c.Total() == 8000 {
			lengths++
		}
		slices++
	})
	if slices > mostSlices || s.step != 8 || lengths != intervals/8 || got != intervals/8*8*1000 {
		t.Errorf("%d slices of %d intervals, %d of them whole, hold %d samples of %d intervals", slices, s.step, lengths, got, intervals)
	}
	s.each(measure.E2EResponse, new(measure.Censored), func(int, *measure.Counts) { t.Error("a kind without samples has a slice") })
}

// outage is a run of 60 s in tenths with 100 messages each, of which those due between 20 s
// and 23 s come together at 23 s, or never. Of 'apart' as many never come, one here and one there.
func outage(t *testing.T, how string) *result.Dist {
	t.Helper()
	var s Slices
	sum, never := new(measure.Counts), new(measure.Censored)
	for i := range 600 {
		in := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
		in.Counters[measure.Measure].Scheduled = 100
		c := &in.Kinds[measure.E2EResponse][measure.Measure]
		gone := i >= 200 && i < 230
		for k := range 100 {
			due := in.From + int64(k)*1e6
			switch {
			case gone && how == "delayed", how == "apart" && k%20 == i%20:
				if how == "apart" {
					never.Add(due, 65e9-due, 1)
				}
			case gone && how == "failed":
				never.Add(due, 65e9-due, 1)
			default:
				c.Add(1e6+int64(k)*1e3, 1)
			}
		}
		if i == 230 && how == "delayed" {
			for k := range int64(3000) {
				c.Add(k*1e6, 1)
			}
		}
		sum.Merge(c)
		s.Add(in)
	}
	if how == "forgotten" {
		never.AddUndated(10e9, 3000)
	}
	d := Distribution(sum, &never.Ages)
	s.Widen(measure.E2EResponse, d, sum, never)
	return d
}

// Whether it delays messages or fails them. If as many fail separately, p99 misses every limit.
func TestOneOutageDecidesNoPercentile(t *testing.T) {
	o := must.Get(ParseObjective("e2e.p99 <= 2s"))(t)
	for how, want := range map[string]result.Outcome{
		"delayed": result.Undecided, "failed": result.Undecided, "forgotten": result.Undecided, "apart": result.Fail,
	} {
		d := outage(t, how)
		if s := o.Judge(o.resultOf(d)); s.Status != want {
			row := d.Percentile(99)
			t.Errorf("%s: %s is %s (%s), of a design effect of %.0f in %.0f blocks; want %s", how, o, s.Status, s.Why, row.Deff, row.Blocks, want)
		}
	}
}

// Also if that slice precedes the first sample, or slices were merged.
func TestMissingMessagesCountInTheirDueSlice(t *testing.T) {
	for _, slices := range []int{10, 3 * mostSlices} {
		var s Slices
		never := new(measure.Censored)
		for i := range slices {
			in := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
			in.Counters[measure.Measure].Scheduled = 10
			for k := range int64(10) {
				if i < slices/2 {
					never.Add(in.From+k*1e7, 1e9, 1)
				} else {
					in.Kinds[measure.SendResponse][measure.Measure].Add(1000, 1)
				}
			}
			s.Add(in)
		}
		var beyond, among uint64
		s.each(measure.SendResponse, never, func(_ int, c *measure.Counts) {
			if n := c.Total() - c.Below(measure.Highest); n > 0 {
				beyond += n
				among += c.Total() - n
			}
		})
		if width := uint64(10 * max(1, s.step)); beyond < never.Total()-width || among > width {
			t.Errorf("%d slices: %d of %d that never came are in slices with %d others", slices, beyond, never.Total(), among)
		}
	}
}
