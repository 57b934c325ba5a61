package compare

import (
	"slices"

	"github.com/weirmq/weir/internal/stats"
)

// A Goal is how closely the difference of sides is to be known, or of one side the median
// of its runs.
type Goal struct {
	Share float64 // an interval reaches this part of the base to either side at most, taken from its middle: 0.05 is ±5 %
	Alpha float64 // chance that an interval of any look misses, of all sides together
}

// A Span is an interval for the factor by which a figure of a side lies above that of the
// base, or for the median of a lone side's runs.
type Span struct{ Estimate, Lo, Hi float64 }

// A Look is what is known of a figure at one of the numbers of runs at which it is looked
// at.
type Look struct {
	Runs   int    // of each side that it rests on; 0: there are too few for a first look
	Next   int    // of each side at the next look
	Spans  []Span // of each side but the base, of a lone side its own; nil where the runs give no interval
	Enough bool   // the goal is reached
}

// LookAt looks at a figure of the runs of each side, the first being the base. The values
// are above 0, in the order in which the runs were done. It is a function of these
// values alone: to ask twice, or after a pause, changes nothing.
//
// Adding runs until a difference is significant finds one in the end where there is none.
// So the rule asks how wide the interval is, and not where it lies. That alone does not
// do, since an interval is narrow most of all where the runs are alike by chance. So the
// looks are few, at 6, 8, 12, 16, 24, 32 and so on runs a side, and the k-th takes
// 1/(k(k+1)) of what may be missed. Together they miss no more, whatever the rule, and so
// does the one at which it stops.
//
// Source: D. A. Darling and H. Robbins, "Confidence sequences for mean, variance, and
// median", Proc. Natl. Acad. Sci. 58 (1967), for intervals that hold at all looks together;
// Y. S. Chow and H. Robbins, "On the asymptotic theory of fixed-width sequential confidence
// intervals for the mean", Ann. Math. Statist. 36 (1965), for the rule to stop by width,
// which alone holds only as the width becomes small.
func LookAt(sides [][]float64, g Goal) Look {
	fewest := len(sides[0])
	for _, s := range sides {
		fewest = min(fewest, len(s))
	}
	k, at, next := 0, 0, 6
	for next <= fewest {
		at = next
		k++
		next = at * 4 / 3 // 6, 8, 12, 16: so that two looks double it
		if k%2 == 0 {
			next = at * 3 / 2
		}
	}
	l := Look{Runs: at, Next: next}
	if at == 0 {
		return l
	}
	conf := 1 - g.Alpha/float64(k*(k+1))/float64(max(1, len(sides)-1))
	if len(sides) == 1 {
		if s, ok := medianOf(sides[0][:at], conf); ok {
			l.Spans, l.Enough = []Span{s}, s.Hi-s.Lo <= 2*g.Share*s.Estimate
		}
		return l
	}
	l.Enough = true
	for _, side := range sides[1:] {
		r, ok := stats.HodgesLehmannRatio(sides[0][:at], side[:at], conf)
		if !ok || r.Lo == nil || r.Hi == nil {
			return Look{Runs: at, Next: next}
		}
		l.Spans = append(l.Spans, Span{r.Estimate, *r.Lo, *r.Hi})
		l.Enough = l.Enough && *r.Hi-*r.Lo <= 2*g.Share
	}
	return l
}

// medianOf returns the median of runs and its interval by order statistics; false where
// they are too few for one.
func medianOf(runs []float64, conf float64) (Span, bool) {
	n := uint64(len(runs))
	lo, hi, ok := stats.QuantileRanks(n, 50, conf)
	if !ok || lo+hi != n+1 { // no lower end is as sure
		return Span{}, false
	}
	sorted := slices.Sorted(slices.Values(runs))
	return Span{stats.Median(runs), sorted[lo-1], sorted[hi-1]}, true
}
