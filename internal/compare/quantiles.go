package compare

import (
	"math"
	"slices"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A ShiftFunction says by how much a side lies above the base at each percentile of a distribution: it
// shows, for example, a difference for slow messages only. It is descriptive. The run is the unit, as in
// the tests, so a side's percentile is the median over its runs, with their spread; the tests of the
// figures, over runs, decide significance. The percentiles of all runs' merged histograms are there too,
// but one slow run can dominate them.
//
// Source: K. Doksum, "Empirical probability plots and statistical inference for nonlinear models in the
// two-sample case", Ann. Statist. 2 (1974).
type ShiftFunction struct {
	Family string  `json:"family"`
	Points []Point `json:"points"`
}

// A Point is one percentile of a shift function.
type Point struct {
	P     float64     `json:"p"` // percent
	Sides []PointSide `json:"sides"`
}

// A PointSide is a percentile on one side.
type PointSide struct {
	Side      string `json:"side"`
	NS        int64  `json:"ns"` // of the merged runs
	AtLeast   bool   `json:"at_least"`
	Supported bool   `json:"supported"`
	RunsLoNS  int64  `json:"runs_lo_ns"` // least and largest of the single runs
	RunsHiNS  int64  `json:"runs_hi_ns"`

	RunsLoAtLeast   bool     `json:"runs_lo_at_least,omitempty"` // a lower bound
	RunsHiAtLeast   bool     `json:"runs_hi_at_least,omitempty"`
	MedianNS        int64    `json:"median_ns"` // over the runs
	MedianAtLeast   bool     `json:"median_at_least"`
	MedianSupported bool     `json:"median_supported"`         // every run has enough samples
	MedianPercent   *float64 `json:"median_percent,omitempty"` // of the medians, from the base; absent for the base, and if either is a lower bound

	ShiftNS *int64   `json:"shift_ns,omitempty"` // from the base; absent for the base, and if a side is a lower bound
	Percent *float64 `json:"percent,omitempty"`
}

// described returns the percentiles of a shift function.
func described() []float64 { return []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9} }

// shiftFunctions returns one for each compared distribution with a histogram in every run; byRecord: with
// percentiles in every run's record.
func shiftFunctions(used [][]Run, byRecord bool) []ShiftFunction {
	out := []ShiftFunction{}
	all := slices.Concat(used...)
	if byRecord {
		for i, family := range dists() {
			if n := len(out); n > 0 && serviceOf(out[n-1].Family) == family {
				continue
			}
			if f := recordedShift(used, i); len(f.Points) > 0 {
				f.Family = family
				out = append(out, f)
			}
		}
		return out
	}
	for _, k := range latencies() {
		tag, censored := result.Tag(k, measure.Measure), result.CensoredTag(k, measure.Measure)
		has := func(r Run) bool { return r.Counts[tag] != nil || r.Counts[censored] != nil }
		if slices.ContainsFunc(all, func(r Run) bool { return !has(r) }) {
			continue
		}
		if n := len(out); n > 0 && serviceOf(out[n-1].Family) == k.String() {
			continue // the response is shown instead
		}
		f := ShiftFunction{Family: k.String()}
		for _, p := range described() {
			f.Points = append(f.Points, Point{P: p})
		}
		for i, runs := range used {
			f.add(letter(i), runs, tag, censored)
		}
		out = append(out, f)
	}
	return out
}

// serviceOf is the service of a response.
func serviceOf(family string) string {
	return map[string]string{"send.response": "send.service", "e2e.response": "e2e.service", "rtt.response": "rtt.service"}[family]
}

// add adds a side to every point.
func (f *ShiftFunction) add(side string, runs []Run, tag, censored string) {
	var merged, ages measure.Counts
	var each []ranked
	for _, r := range runs {
		if c := r.Counts[tag]; c != nil {
			merged.Merge(c)
		}
		if c := r.Counts[censored]; c != nil {
			ages.Merge(c)
		}
		each = append(each, rank(r.Counts[tag], r.Counts[censored]))
	}
	all := rank(&merged, &ages)
	for i := range f.Points {
		point := &f.Points[i]
		x := PointSide{Side: side, Supported: stats.Supported(all.counts.Total(), point.P)}
		x.NS, x.AtLeast = all.at(point.P)
		x.MedianSupported = true
		values := make([]result.Value, len(each))
		for n, r := range each {
			ns, atLeast := r.at(point.P)
			values[n] = result.Bound(float64(ns), atLeast)
			x.MedianSupported = x.MedianSupported && stats.Supported(r.counts.Total(), point.P)
		}
		x.spread(values)
		x.percentFrom(point.Sides)
		if len(point.Sides) > 0 {
			base := point.Sides[0]
			if !base.AtLeast && !x.AtLeast {
				x.ShiftNS = new(x.NS - base.NS)
				if base.NS > 0 {
					x.Percent = new(100 * float64(x.NS-base.NS) / float64(base.NS))
				}
			}
		}
		point.Sides = append(point.Sides, x)
	}
}

// spread fills in the percentile of the runs.
func (x *PointSide) spread(values []result.Value) {
	median, lowest, highest := result.Spread(values)
	x.RunsLoNS, x.RunsLoAtLeast = whole(lowest)
	x.RunsHiNS, x.RunsHiAtLeast = whole(highest)
	x.MedianNS, x.MedianAtLeast = whole(median)
}

// percentFrom fills in how far the median lies from that of the base, the first of sides.
func (x *PointSide) percentFrom(sides []PointSide) {
	if len(sides) == 0 {
		return
	}
	if base := sides[0]; !base.MedianAtLeast && !x.MedianAtLeast && base.MedianNS > 0 {
		x.MedianPercent = new(100 * float64(x.MedianNS-base.MedianNS) / float64(base.MedianNS))
	}
}

// recordedShift is a shift function of the percentiles that all records have of a distribution.
func recordedShift(used [][]Run, dist int) (f ShiftFunction) {
	for j, p := range tested() {
		point := Point{P: p}
		lacks := p >= 100
		for i, runs := range used {
			x := PointSide{Side: letter(i), MedianSupported: true}
			values := make([]result.Value, len(runs))
			for n, r := range runs {
				v, is := r.Record.Dists[dist].at(j)
				values[n] = result.Bound(v, is.atLeast)
				lacks = lacks || is.no
			}
			x.spread(values)
			x.percentFrom(point.Sides)
			point.Sides = append(point.Sides, x)
		}
		if !lacks {
			f.Points = append(f.Points, point)
		}
	}
	return f
}

// ranked are samples; those from a rank on are lower bounds. The percentiles are those of
// judge.Distribution, without intervals, which take much longer to compute than all else.
type ranked struct {
	counts  *measure.Counts
	certain uint64
}

func rank(observed, censored *measure.Counts) ranked {
	r := ranked{new(measure.Counts), math.MaxUint64}
	if observed != nil {
		r.counts.Merge(observed)
	}
	if censored != nil && censored.Total() > 0 {
		r.counts.Merge(censored)
		r.certain = r.counts.Below(censored.Min())
	}
	return r
}

// whole rounds a value to ns.
func whole(v result.Value) (ns int64, atLeast bool) {
	least, atLeast := v.Least()
	return int64(least), atLeast
}

func (r ranked) at(p float64) (ns int64, atLeast bool) {
	k := measure.Rank(p, r.counts.Total())
	if k > r.certain {
		return r.counts.LowestAt(k), true
	}
	return r.counts.At(k), false
}
