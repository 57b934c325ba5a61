package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/measure"
)

// spell is one interval of 1000 samples of which some are slow.
func spell(slow uint64) *measure.Counts {
	c := new(measure.Counts)
	c.Add(1_000_000, 1000-slow)
	if slow > 0 {
		c.Add(10_000_000, slow)
	}
	return c
}

// runOf returns 100 intervals with 2,000 slow samples of 100,000 in all.
func runOf(slow func(i int) uint64) []*measure.Counts {
	var all []*measure.Counts
	for i := range 100 {
		all = append(all, spell(slow(i)))
	}
	return all
}

// widened returns the distribution of intervals and its p99 with the interval.
func widened(all []*measure.Counts, p float64) (loNS int64, hi *int64, deff float64) {
	sum := new(measure.Counts)
	for _, c := range all {
		sum.Merge(c)
	}
	d := Distribution(sum, nil)
	w := Correlate(d)
	for _, c := range all {
		w.Add(c)
	}
	w.Widen(d, sum, new(measure.Counts))
	row := d.Percentile(p)
	return row.LoNS, row.HiNS, row.Deff
}

func TestSamplesThatComeTogetherAreWorthFewer(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	// Ten slow ones a second, as chance has it (the binomial of 1000 and 1 %), or
	// all thousand of them in one second of a hundred.
	apart := func(int) uint64 { return uint64(math.Round(10 + math.Sqrt(9.9)*dice.NormFloat64())) }
	at := func(slow func(int) uint64) float64 {
		_, _, deff := widened(runOf(slow), 95) // of 1 ms: all slow ones lie beyond it
		return deff
	}
	if d := at(apart); d < 1 || d > 2 {
		t.Errorf("independent samples have a design effect of %.2f; want about 1", d)
	}
	if d := at(func(i int) uint64 { return 1000 * uint64((i+1)/100) }); d < 500 {
		t.Errorf("a thousand slow samples in one second have a design effect of %.2f; want hundreds", d)
	}
}

func TestTheIntervalOfATailFromOneStallHasNoUpperEnd(t *testing.T) {
	// One stall of a second makes 1 % of the samples slow: it decides p99.5, and
	// nobody knows how often it comes.
	lo, hi, deff := widened(runOf(func(i int) uint64 { return 1000 * uint64((i+1)/100) }), 99.9)
	if hi != nil || lo > 1_000_000 {
		t.Errorf("p99.9 lies in %d..%v with a design effect of %.0f; want no upper end, and the quick ones at the lower", lo, hi, deff)
	}
	lo, hi, _ = widened(runOf(func(int) uint64 { return 10 }), 99.9)
	if hi == nil || lo < 5_000_000 {
		t.Errorf("ten slow samples in each second: p99.9 lies in %d..%v; want both ends at 10 ms", lo, hi)
	}
}

// TestTheIntervalOfAMeanTakesWhatComesTogether: the same samples, slow ones in
// each second or in one of a hundred.
func TestTheIntervalOfAMeanTakesWhatComesTogether(t *testing.T) {
	width := func(slow func(i int) uint64) float64 {
		sum := new(measure.Counts)
		for _, c := range runOf(slow) {
			sum.Merge(c)
		}
		d := Distribution(sum, nil)
		w := Correlate(d)
		for _, c := range runOf(slow) {
			w.Add(c)
		}
		w.Widen(d, sum, new(measure.Counts))
		x := findMean(d)
		return *x.hi - *x.lo
	}
	each, one := width(func(int) uint64 { return 10 }), width(func(i int) uint64 { return 1000 * uint64((i+1)/100) })
	// By the definition: the share of slow ones has a standard error of 0.0315 %
	// where they come one by one, and of 1 % where seconds are slow or quick.
	if want := 2 * normalQuantile * 9e6 * math.Sqrt(0.01*0.99/100_000); math.Abs(each-want) > 0.01*want {
		t.Errorf("slow ones in each second: an interval of %.0f ns; want %.0f", each, want)
	}
	if want := 2 * normalQuantile * 9e6 * 0.01; math.Abs(one-want) > 0.01*want {
		t.Errorf("slow ones in one second: an interval of %.0f ns; want %.0f", one, want)
	}
}

func TestFewIntervalsAreNotWidened(t *testing.T) {
	_, _, deff := widened(runOf(func(int) uint64 { return 10 })[:9], 99)
	if deff != 0 {
		t.Errorf("nine intervals give a design effect of %v; want none", deff)
	}
}

func TestALongRunIsKeptInBoundedMemory(t *testing.T) {
	sum := new(measure.Counts)
	one := spell(10)
	sum.Merge(one)
	w := Correlate(Distribution(sum, nil))
	var total uint64
	for range 5*mostSpells + 3 {
		w.Add(one)
		total += one.Total()
	}
	var got uint64
	for _, n := range w.samples {
		got += n
	}
	if len(w.samples) > mostSpells || got != total || w.step != 8 {
		t.Errorf("%d spells of %d intervals hold %d of %d samples", len(w.samples), w.step, got, total)
	}
}
