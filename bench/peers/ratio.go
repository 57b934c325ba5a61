package main

import (
	"math"
	"slices"

	"github.com/weirmq/weir/internal/stats"
)

// A ratio is the factor by which weir is faster than the peer.
type ratio struct {
	Median float64  `json:"median"`       // median of the pairs' ratios
	Lo     *float64 `json:"lo,omitempty"` // its 95 % interval; nil if there are too few pairs
	Hi     *float64 `json:"hi,omitempty"` //
	Pairs  int      `json:"pairs"`        //
	Least  float64  `json:"least"`        // extremes of single pairs
	Most   float64  `json:"most"`         //
}

// ratioOf compares the rates of paired turns: weir[i] and peer[i] came one after the other, so that
// slow changes of the host affect both. The interval of the median of the pairs' ratios is by order
// statistics: it assumes no distribution, and requires at least six pairs.
func ratioOf(weir, peer []float64) ratio {
	logs := make([]float64, len(weir))
	for i := range weir {
		logs[i] = math.Log(weir[i] / peer[i])
	}
	slices.Sort(logs)
	n := len(logs)
	r := ratio{Median: math.Exp(stats.Median(logs)), Pairs: n, Least: math.Exp(logs[0]), Most: math.Exp(logs[n-1])}
	lo, hi, ok := stats.QuantileRanks(uint64(n), 50, 0.95)
	// Both ends of the median's interval are equally far from it, in ranks.
	if ok {
		low, high := math.Exp(logs[lo-1]), math.Exp(logs[hi-1])
		r.Lo, r.Hi = &low, &high
	}
	return r
}
