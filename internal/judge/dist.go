// Package judge interprets recorded counts and rates their trustworthiness: distributions with intervals,
// the balance of message accounting, and the verdict with its reasons. It measures nothing.
package judge

import (
	"math"
	"slices"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Percentiles returns the percentiles reported by default, in percent; 100 is the maximum.
func Percentiles() []float64 {
	return []float64{50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999, 100}
}

// Distribution describes samples, or returns nil if there are none. Censored samples, nil for none, count
// at their lower bounds, all that is known of them.
//
// A percentile of n samples, observed and censored together, has rank max(1, ceil(p/100 n)). Its value is
// the highest of its bucket or the exact maximum, unless its rank reaches the smallest censored sample:
// then the value is a lower bound, the lowest of its bucket. The interval is that of the order statistics
// at 95 %, for independent samples (Slices.Widen corrects for dependence), widened to the ends of its
// buckets; it has no upper end if it reaches censored samples or no sample bounds it. The row of 100 is the
// largest sample, which is not an estimate and has no upper end.
//
// The percentiles are those of Percentiles and also, for objectives, in percent above 0 and below 100.
func Distribution(observed, censored *measure.Counts, also ...float64) *result.Dist {
	return distribution(observed, censored, confidence, also...)
}

// OfStage is Distribution for the samples of a stage, without intervals: the dependence of samples in so
// short a time is unknown.
func OfStage(observed, censored *measure.Counts, also ...float64) *result.Dist {
	d := Distribution(observed, censored, also...)
	if d == nil {
		return nil
	}
	for i := range d.Percentiles {
		d.Percentiles[i].LoNS, d.Percentiles[i].HiNS = nil, nil
	}
	return d
}

// distribution is Distribution with intervals of a given confidence.
func distribution(observed, censored *measure.Counts, conf float64, also ...float64) *result.Dist {
	if censored == nil {
		censored = new(measure.Counts)
	}
	if observed == nil {
		observed = new(measure.Counts)
	}
	all, certain := together(observed, censored)
	n := all.Total()
	if n == 0 {
		return nil
	}
	d := &result.Dist{
		Count:    observed.Total(),
		Censored: censored.Total(),
		Overflow: all.Overflow(),
	}
	if d.Count > 0 {
		least, most := observed.Min(), observed.Max()
		d.MinNS, d.MaxNS = &least, &most
		if d.Censored == 0 {
			mean, dev := observed.Mean(), observed.StdDev()
			d.MeanNS, d.StdDevNS = &mean, &dev
		}
	}
	ps := append(Percentiles(), also...)
	slices.Sort(ps)
	for _, p := range slices.Compact(ps) {
		d.Percentiles = append(d.Percentiles, percentile(all, p, certain, conf))
	}
	return d
}

func percentile(all *measure.Counts, p float64, certain uint64, conf float64) result.Percentile {
	n := all.Total()
	if p >= 100 {
		most := all.Max()
		return result.Percentile{P: p, NS: most, LoNS: &most, Supported: true, AtLeast: n > certain}
	}
	rank := measure.Rank(p, n)
	row := result.Percentile{P: p, Supported: stats.Supported(n, p), AtLeast: rank > certain}
	if row.AtLeast {
		row.NS = all.LowestAt(rank)
	} else {
		row.NS = all.At(rank)
	}
	lo, hi := bounds(all, p, certain, 1, conf)
	row.LoNS, row.HiNS = &lo, hi
	return row
}

// together merges all samples, and returns up to which rank they are observed values below every censored
// one.
func together(observed, censored *measure.Counts) (all *measure.Counts, certain uint64) {
	if censored.Total() == 0 {
		return observed, math.MaxUint64
	}
	all = new(measure.Counts)
	all.Merge(observed)
	all.Merge(censored)
	return all, all.Below(censored.Min())
}

// bounds returns the interval of a percentile. deff samples are worth one independent sample. hi is nil if
// nothing bounds it.
func bounds(all *measure.Counts, p float64, certain uint64, deff, conf float64) (lo int64, hi *int64) {
	n := all.Total()
	worth := n
	if deff > 1 {
		worth = max(1, uint64(float64(n)/deff))
	}
	first, last, ok := stats.QuantileRanks(worth, p, conf)
	if worth < n { // scaled to the ranks of all samples, outwards
		each := float64(n) / float64(worth)
		first = min(n, uint64(float64(first-1)*each)+1)
		last = min(n, uint64(math.Ceil(float64(last)*each)))
	}
	if ok && last <= certain {
		v := all.At(last)
		hi = &v
	}
	return all.LowestAt(first), hi
}

// Points returns an interval's percentiles as far as its samples support them, and the largest sample; nil
// for the others.
func Points(c *measure.Counts) result.Points {
	n := c.Total()
	if n == 0 {
		return result.Points{}
	}
	at := func(p float64) *int64 {
		if !stats.Supported(n, p) {
			return nil
		}
		v := c.Percentile(p)
		return &v
	}
	most := c.Max()
	return result.Points{P50NS: at(50), P99NS: at(99), P999NS: at(99.9), MaxNS: &most}
}

// Interval returns the row of one interval of a run, for result.json. Its latencies are of what was
// confirmed, delivered or answered in it, in both phases; a closed loop has service times only. phase names
// the part of the run.
func Interval(in *measure.Interval, phase string, closed bool) result.Interval {
	send, e2e, rtt := measure.SendResponse, measure.E2EResponse, measure.RTTResponse
	if closed {
		send, e2e, rtt = measure.SendService, measure.E2EService, measure.RTTService
	}
	row := result.Interval{
		TS:      float64(in.From) / 1e9,
		Phase:   phase,
		Backlog: in.Backlog.Waiting(),
		Send:    Points(both(in, send)),
		E2E:     Points(both(in, e2e)),
	}
	if late := &in.Kinds[measure.SendLateness][measure.Measure]; late.Total() > 0 {
		latest := late.Max()
		row.LatestNS = &latest
	}
	if answered := both(in, rtt); answered.Total() > 0 {
		p := Points(answered)
		row.RTT = &p
	}
	for _, c := range in.Counters {
		row.Sent += c.Sent
		row.Confirmed += c.Confirmed
		row.Received += c.Received
		row.Failed += c.Failed
		row.Dropped += c.Dropped
	}
	return row
}

// both merges the phases of one kind, without copying if one is empty.
func both(in *measure.Interval, k measure.Kind) *measure.Counts {
	a, b := &in.Kinds[k][measure.WarmUp], &in.Kinds[k][measure.Measure]
	switch {
	case a.Total() == 0:
		return b
	case b.Total() == 0:
		return a
	}
	c := new(measure.Counts)
	c.Merge(a)
	c.Merge(b)
	return c
}
