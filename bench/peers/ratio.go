package main

import (
	"math"
	"slices"

	"github.com/weirmq/weir/internal/stats"
)

// A ratio says by which factor weir is faster than the peer.
type ratio struct {
	Median float64  `json:"median"`       // of the ratios of the pairs
	Lo     *float64 `json:"lo,omitempty"` // of its 95 % interval; nil where the pairs are too few for one
	Hi     *float64 `json:"hi,omitempty"` //
	Pairs  int      `json:"pairs"`        //
	Least  float64  `json:"least"`        // of single pairs
	Most   float64  `json:"most"`         //
}

// ratioOf compares the rates of turns that were taken in pairs: weir[i] and peer[i] came
// one after the other. So what the host does for longer than a turn meets both. The
// interval is that of the median of the pairs' ratios, by order statistics: it takes no
// distribution for granted, and six pairs are the fewest with one.
func ratioOf(weir, peer []float64) ratio {
	logs := make([]float64, len(weir))
	for i := range weir {
		logs[i] = math.Log(weir[i] / peer[i])
	}
	slices.Sort(logs)
	n := len(logs)
	r := ratio{Median: math.Exp(stats.Median(logs)), Pairs: n, Least: math.Exp(logs[0]), Most: math.Exp(logs[n-1])}
	lo, hi, ok := stats.QuantileRanks(uint64(n), 50, 0.95)
	// Both ends of the median's interval have the same distance from it.
	if ok {
		low, high := math.Exp(logs[lo-1]), math.Exp(logs[hi-1])
		r.Lo, r.Hi = &low, &high
	}
	return r
}
