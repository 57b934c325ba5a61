package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// fewestForMean is the number of samples from which the mean of most
// distributions is near enough to normal (the usual rule of textbooks), and
// normalQuantile the 97.5 % quantile of the standard normal distribution.
const (
	fewestForMean  = 30
	normalQuantile = 1.959963984540054
)

// findLatency looks up a figure of a distribution.
func (f figure) findLatency(r *result.Result) found {
	d := f.distribution(&r.Latency)
	switch {
	case d != nil:
	case f.of != "settle" && !f.service && r.Run.Loop == result.LoopClosed:
		return missing("a closed loop has no response: %s.service counts from the start", f.of)
	case f.of == "settle":
		return missing("the run has no settle times: nothing confirmed that a message was settled (some drivers have an option for it)")
	case f.of == "send" && r.Latency.RTT.Response != nil:
		return missing("the run has no send times: the reply was the confirmation, and rtt has it")
	default:
		return missing("the run has no %s times", strings.TrimSuffix(f.prefix(), "."))
	}
	return blurred(f.findIn(d), d)
}

func (f figure) findIn(d *result.Dist) found {
	switch f.stat {
	case "max":
		return findMax(d)
	case "min":
		return findMin(d)
	case "mean":
		return findMean(d)
	}
	return f.findPercentile(d)
}

// blurred widens the interval of a figure by what the clocks that it is of may be
// off.
func blurred(x found, d *result.Dist) found {
	unknown := slices.ContainsFunc(d.Percentiles, func(p result.Percentile) bool { return p.UnsupportedBy == result.ByUnknownClock })
	switch {
	case unknown:
		x.lo, x.hi, x.why = nil, nil, "it needs the clocks of two agents, which could not be compared"
	case d.ClockBoundNS != nil:
		bound := float64(*d.ClockBoundNS)
		if x.lo != nil {
			lo := max(0, *x.lo-bound)
			x.lo = &lo
		}
		if x.hi != nil {
			hi := *x.hi + bound
			x.hi = &hi
		}
	}
	return x
}

// JudgeOnTime is Judge of the same figure without the generator's lateness. It returns
// false where a result does not have it: for counts, rates, service times and settle times,
// and in results of older versions.
func (o Objective) JudgeOnTime(r *result.Result) (result.SLO, bool) {
	if o.figure.kind != latencyFigure || o.figure.service {
		return result.SLO{}, false
	}
	one := *r
	l := &one.Latency
	l.Send.Response, l.RTT.Response, l.E2E.Response = l.Send.OnTime, l.RTT.OnTime, l.E2E.OnTime
	if o.figure.of == "settle" || o.figure.distribution(l) == nil {
		return result.SLO{}, false
	}
	return o.Judge(&one), true
}

// prefix is the figure's name without its last part.
func (f figure) prefix() string {
	if f.service {
		return f.of + ".service."
	}
	return f.of + "."
}

func (f figure) distribution(l *result.Latency) *result.Dist {
	if f.of == "settle" {
		return l.Settle
	}
	pair := map[string]result.Pair{
		"send": {Response: l.Send.Response, Service: l.Send.Service}, "e2e": l.E2E, "rtt": l.RTT,
	}[f.of]
	if f.service {
		return pair.Service
	}
	return pair.Response
}

// findMax takes the largest sample of this run: a fact, no estimate, and a lower
// bound where a message had not ended.
func findMax(d *result.Dist) found {
	row := d.Percentile(100)
	switch {
	case row == nil && (d.MaxNS == nil || d.Censored > 0):
		return missing("the result has no largest sample")
	case row == nil:
		return exactly(float64(*d.MaxNS), "ns")
	}
	x := exactly(float64(row.NS), "ns")
	if row.AtLeast {
		x.atLeast, x.hi, x.why = true, nil, endless(d)
	}
	return x
}

// findMin takes the smallest sample; a message that had not ended may have been
// about to be quicker.
func findMin(d *result.Dist) found {
	if d.MinNS == nil {
		return missing("%s", endless(d))
	}
	x := exactly(float64(*d.MinNS), "ns")
	if d.Censored > 0 {
		x.lo, x.why = nil, endless(d)
	}
	return x
}

// findMean takes the mean with its normal interval, of as many samples as the
// run's are worth.
func findMean(d *result.Dist) found {
	switch {
	case d.MeanNS == nil || d.StdDevNS == nil:
		return missing("the mean is not known: %s", endless(d))
	case d.Count < fewestForMean:
		return found{value: *d.MeanNS, unit: "ns", why: fmt.Sprintf("a mean needs %d samples for an interval, has %s", fewestForMean, count(d.Count))}
	}
	if d.MeanDeff == 0 {
		return found{value: *d.MeanNS, unit: "ns", why: "the interval of the mean is not known: " + dependent}
	}
	wide := normalQuantile * *d.StdDevNS / math.Sqrt(float64(d.Count)/d.MeanDeff)
	lo, hi := max(0, *d.MeanNS-wide), *d.MeanNS+wide
	return found{value: *d.MeanNS, unit: "ns", lo: &lo, hi: &hi}
}

func (f figure) findPercentile(d *result.Dist) found {
	row := d.Percentile(f.p)
	if row == nil {
		var has []string
		for _, p := range d.Percentiles {
			if p.P < 100 {
				has = append(has, name(p.P))
			}
		}
		return missing("the result has no %s (it has %s)", name(f.p), strings.Join(has, ", "))
	}
	n := d.Count + d.Censored
	x := found{value: float64(row.NS), unit: "ns", atLeast: row.AtLeast}
	// With so few samples the smallest of them may well lie above the percentile.
	if row.LoNS != nil && math.Pow(1-f.p/100, float64(n)/max(1, row.Deff)) <= (1-confidence)/2 {
		lo := float64(*row.LoNS)
		x.lo = &lo
	}
	switch {
	case !row.Supported && row.UnsupportedBy == "":
		x.why = fmt.Sprintf("%s needs %s samples, has %s", name(f.p), count(stats.Needed(f.p)), count(n))
	case row.UnboundedBy == result.ByDependence:
		x.why = fmt.Sprintf("the interval of %s is not known: %s%s", name(f.p), dependent, slowestOf(d))
		if row.LoNS != nil {
			x.why = fmt.Sprintf("the upper end of %s is not known: %s%s", name(f.p), dependent, slowestOf(d))
		}
		if row.HiNS != nil {
			hi := float64(*row.HiNS)
			x.hi = &hi
		}
	case row.UnboundedBy == result.ByEpisodes:
		x.why = fmt.Sprintf("the messages beyond %s came in %d separate spells, and an upper end needs %d", name(f.p), row.Episodes, fewestEpisodes)
	case row.HiNS == nil && !row.AtLeast && d.Censored == 0:
		x.why = fmt.Sprintf("too few independent samples for an upper bound: %s dependent ones are worth %s, and bound %s only from below", count(n), count(uint64(float64(n)/max(1, row.Deff))), name(f.p))
	case row.AtLeast || row.HiNS == nil:
		x.why = endless(d)
	default:
		hi := float64(*row.HiNS)
		x.hi = &hi
	}
	if x.lo == nil && x.why == "" {
		x.why = fmt.Sprintf("%s samples are too few to bound %s from below", count(n), name(f.p))
	}
	return x
}

// bounded says why a percentile keeps its limit although its own interval does not decide;
// "" where that is not known. A larger percentile bounds it, by the upper end of its own
// interval, or by the largest sample of all.
//
// Of n independent samples none lies beyond percentile p with the chance p^n, whatever the
// distribution (Hahn and Meeker, Statistical Intervals, section 5.4). So where that is at most
// what an end of an interval may miss, the largest is an upper bound. The samples count as
// so many as they are worth; where that is not known, they bound nothing. ADR 25.
func (o Objective) bounded(d *result.Dist, conf float64) string {
	if _, is := o.Percentile(); !is || d == nil || d.MaxNS == nil || d.Censored+d.Overflow > 0 || !strings.HasPrefix(o.op, "<") {
		return ""
	}
	off := int64(0)
	if d.ClockBoundNS != nil {
		off = *d.ClockBoundNS
	}
	keeps := func(ns int64) bool {
		pass, _ := compare(o.op, float64(ns+off), float64(ns+off), o.limit)
		return pass
	}
	for i := range d.Percentiles {
		row := &d.Percentiles[i]
		switch {
		case row.UnsupportedBy == result.ByUnknownClock:
			return ""
		case row.P < o.figure.p || row.P >= 100 || !row.Supported || row.AtLeast:
			continue
		case row.UnboundedBy == "" && row.HiNS != nil && keeps(*row.HiNS):
			return fmt.Sprintf("the interval of %s ends at %s, and %s is at most that", name(row.P), nanos(*row.HiNS), name(o.figure.p))
		case row.UnboundedBy == result.ByEpisodes && row.Deff > 0 && keeps(*d.MaxNS):
			worth := float64(d.Count) / row.Deff
			if math.Pow(row.P/100, worth) <= (1-conf)/2 {
				return fmt.Sprintf("all %s messages kept it (at most %s) and are worth %s independent ones; with %s over the limit, %s %% of such runs have a message over it",
					count(d.Count), nanos(*d.MaxNS), count(uint64(worth)), name(row.P), certain(math.Pow(row.P/100, worth)))
			}
		}
	}
	return ""
}

// certain writes how many percent of runs have what is absent with a chance, rounded down.
func certain(chance float64) string {
	return fmt.Sprintf("%.4g", math.Floor(1000*(1-chance))/10)
}

// dependent says why an interval is not known.
const dependent = "too few independent samples, as neighbouring messages took similar times"

// slowestOf says how long the slowest message took, where all completed: an interval that is
// not known does not mean that a message missed the limit.
func slowestOf(d *result.Dist) string {
	if d.Censored > 0 || d.MaxNS == nil {
		return ""
	}
	return fmt.Sprintf(" (the slowest message took %s)", nanos(*d.MaxNS))
}

// endless says why a figure has no upper end.
func endless(d *result.Dist) string {
	return fmt.Sprintf("%s of %s messages had not completed when the run ended: the figure is at least this", count(d.Censored), count(d.Count+d.Censored))
}
