package compare

import (
	"slices"

	"github.com/weirmq/weir/internal/stats"
)

// MostRuns is how many runs a side gets at most for a Goal, unless the user says otherwise.
const MostRuns = 32

// A Goal is the required precision of the difference between sides, or for one side of the median of its
// runs.
type Goal struct {
	Share float64 // largest half-width of an interval, relative to the base: 0.05 is ±5 %
	Alpha float64 // probability that an interval of any look misses, over all sides
}

// A Span is an interval for the ratio of a side's figure to the base's, or for the median of a single
// side's runs.
type Span struct{ Estimate, Lo, Hi float64 }

// A Look is what is known of a figure at one of the numbers of runs at which it is examined.
type Look struct {
	Runs   int    // runs used per side; 0: too few for a first look
	Next   int    // runs per side at the next look
	Spans  []Span // per side but the base, or of the only side; nil if the runs give no interval
	Enough bool   // the goal is reached
}

// LookAt examines a figure of the runs of each side, the first being the base. The values are above 0, in
// the order of the runs. It depends on these values only, so asking twice, or after a break, changes
// nothing.
//
// Adding runs until a difference is significant eventually finds one where there is none. So the rule
// depends on the width of the interval, not on its position. That alone is not enough, since an interval is
// narrowest when runs happen to be alike. So looks are few, at 6, 8, 12, 16, 24, 32 and so on runs a side,
// and the k-th uses 1/(k(k+1)) of the error probability. Together they do not exceed it under any rule, and
// neither does the look at which it stops.
//
// Source: D. A. Darling and H. Robbins, "Confidence sequences for mean, variance, and median", Proc. Natl.
// Acad. Sci. 58 (1967), for intervals that hold at all looks together; Y. S. Chow and H. Robbins, "On the
// asymptotic theory of fixed-width sequential confidence intervals for the mean", Ann. Math. Statist. 36
// (1965), for the stopping rule by width, which by itself holds only as the width becomes small.
func LookAt(sides [][]float64, g Goal) Look {
	fewest := len(sides[0])
	for _, s := range sides {
		fewest = min(fewest, len(s))
	}
	k, at, next := 0, 0, 6
	for next <= fewest {
		at = next
		k++
		next = at * 4 / 3 // 6, 8, 12, 16: doubling every two looks
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

// medianOf returns the median of runs with its order-statistics interval; false if there are too few.
func medianOf(runs []float64, conf float64) (Span, bool) {
	n := uint64(len(runs))
	lo, hi, ok := stats.QuantileRanks(n, 50, conf)
	if !ok || lo+hi != n+1 { // no symmetric lower end has that confidence
		return Span{}, false
	}
	sorted := slices.Sorted(slices.Values(runs))
	return Span{stats.Median(runs), sorted[lo-1], sorted[hi-1]}, true
}
