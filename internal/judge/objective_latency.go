package judge

import (
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// fewestForMean is the number of samples from which the mean of most distributions is nearly normal (the
// usual textbook rule), and normalQuantile the 97.5 % quantile of the standard normal distribution.
const (
	fewestForMean  = 30
	normalQuantile = 1.959963984540054
)

func (f figure) findLatency(r *result.Result) found {
	d := r.Dist(f.distribution())
	switch {
	case d != nil:
	case f.system:
		return missing("objective.no_wire", "of", f.of)
	case f.of != "settle" && !f.service && r.Run.Loop == result.LoopClosed:
		return missing("objective.closed", "of", f.of)
	case f.of == "settle":
		return missing("objective.no_settle")
	case f.of == "send" && r.Latency.RTT.Response != nil:
		return missing("objective.no_send")
	default:
		return missing("objective.no_times", "of", f.distribution())
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

// blurred widens the interval of a figure by its clock uncertainty.
func blurred(x found, d *result.Dist) found {
	unknown := slices.ContainsFunc(d.Percentiles, func(p result.Percentile) bool { return p.UnsupportedBy == result.ByUnknownClock })
	switch {
	case unknown:
		x.lo, x.hi, x.why = nil, nil, say("objective.no_clocks")
	case d.ClockBoundNS != nil:
		bound := float64(*d.ClockBoundNS)
		if x.lo != nil {
			x.lo = new(max(0, *x.lo-bound))
		}
		if x.hi != nil {
			x.hi = new(*x.hi + bound)
		}
	}
	return x
}

// JudgeOnTime is Judge without the generator's lateness. It returns false if the result lacks that: for
// counts, rates, service times and settle times, and in results of older versions.
func (o Objective) JudgeOnTime(r *result.Result) (result.SLO, bool) {
	if o.figure.kind != latencyFigure || o.figure.service || o.figure.system {
		return result.SLO{}, false
	}
	one := *r
	l := &one.Latency
	l.Send.Response, l.RTT.Response, l.E2E.Response = l.Send.OnTime, l.RTT.OnTime, l.E2E.OnTime
	if o.figure.of == "settle" || one.Dist(o.figure.of) == nil {
		return result.SLO{}, false
	}
	return o.Judge(&one), true
}

// judged is Judge with the verdict on the objective's figure: a limit that the figure misses only by what
// something other than the system may have added is not decided.
func (o Objective) judged(r *result.Result, v *result.Verdict) result.SLO {
	s := o.Judge(r)
	f := v.Figure(o.Figure())
	unknown := f != nil && f.By == CheckWire && s.Outcome() != result.Undecided // messages that were left out may be slower
	if !unknown && (f == nil || f.Quotable || s.Outcome() != result.Fail || o.op != "<=" && o.op != "<") {
		return s
	}
	least := s.Value
	if s.Lo != nil {
		least = *s.Lo
	}
	if unknown || least*(1-f.Part) <= o.limit {
		marked := say("objective.marked", "why", f.Why)
		s.Pass, s.Status, s.NeedsS, s.Why = false, result.Undecided, 0, marked.String()
		s.Codes, s.Values = finding.Data(marked)
	}
	return s
}

// Figure is the name of the objective's figure, as in result.Figure.
func (o Objective) Figure() string {
	f := o.figure
	switch f.kind {
	case latencyFigure:
		stat := f.stat
		if stat == "p" {
			stat = finding.Percentile(f.p)
		}
		return f.distribution() + "." + stat
	case rateFigure:
		return f.of + ".rate"
	}
	return f.of
}

// distribution is the name of the figure's distribution; see result.Result.Dist.
func (f figure) distribution() string {
	switch {
	case f.service:
		return f.of + ".service"
	case f.system:
		return SystemName(f.of)
	}
	return f.of
}

// findMax returns the largest sample of the run: a fact, not an estimate, and a lower bound if a message
// had not completed.
func findMax(d *result.Dist) found {
	row := d.Percentile(100)
	switch {
	case row == nil && (d.MaxNS == nil || d.Censored > 0):
		return missing("objective.no_largest")
	case row == nil:
		return exactly(float64(*d.MaxNS), "ns")
	}
	x := exactly(float64(row.NS), "ns")
	if row.AtLeast {
		x.atLeast, x.hi, x.why = true, nil, endless(d)
	}
	return x
}

// findMin returns the smallest sample; a message that had not completed may have been about to be faster.
func findMin(d *result.Dist) found {
	if d.MinNS == nil {
		return found{why: endless(d)}
	}
	x := exactly(float64(*d.MinNS), "ns")
	if d.Censored > 0 {
		x.lo, x.why = nil, endless(d)
	}
	return x
}

// findMean returns the mean with its normal interval, for the effective number of samples.
func findMean(d *result.Dist) found {
	if d.MeanNS == nil || d.StdDevNS == nil {
		return missing("objective.mean_open", "open", endless(d))
	}
	x := found{value: *d.MeanNS, unit: "ns"}
	switch {
	case d.Count < fewestForMean:
		x.lacks("objective.mean_few", "needs", fewestForMean, "samples", d.Count)
		return x
	case d.MeanDeff == 0:
		x.lacks("objective.mean_dependent")
		return x
	}
	wide := normalQuantile * *d.StdDevNS / math.Sqrt(float64(d.Count)/d.MeanDeff)
	x.lo, x.hi = new(max(0, *d.MeanNS-wide)), new(*d.MeanNS+wide)
	return x
}

func (f figure) findPercentile(d *result.Dist) found {
	row := d.Percentile(f.p)
	if row == nil {
		var has []string
		for _, p := range d.Percentiles {
			if p.P < 100 {
				has = append(has, finding.Percentile(p.P))
			}
		}
		return missing("objective.no_percentile", "p", f.p, "has", has)
	}
	n := d.Count + d.Censored
	x := found{value: float64(row.NS), unit: "ns", atLeast: row.AtLeast}
	// With so few samples even the smallest may well lie above the percentile.
	if row.LoNS != nil && math.Pow(1-f.p/100, float64(n)/max(1, row.Deff)) <= (1-confidence)/2 {
		x.lo = asFloat(row.LoNS)
	}
	switch {
	case f.system && !row.Supported && stats.Supported(n, f.p):
		x.lacks("objective.windows")
	case !row.Supported && row.UnsupportedBy == "":
		x.lacks("objective.few", "p", f.p, "needs", stats.Needed(f.p), "samples", n)
	case row.UnboundedBy == result.ByDependence:
		// An unknown interval does not mean that a message missed the limit.
		x.lacks("objective.dependent", "p", f.p, "upper", row.LoNS != nil, "slowest", when(d.Censored == 0, d.MaxNS))
		x.hi = asFloat(row.HiNS)
	case row.UnboundedBy == result.ByEpisodes:
		x.lacks("objective.bursts", "p", f.p, "bursts", row.Episodes, "needs", fewestEpisodes)
	case row.HiNS == nil && !row.AtLeast && d.Censored == 0:
		x.lacks("objective.unbounded", "samples", n, "worth", float64(n)/max(1, row.Deff), "p", f.p)
	case row.AtLeast || row.HiNS == nil:
		x.why = endless(d)
	default:
		x.hi = asFloat(row.HiNS)
	}
	if x.lo == nil && x.why.Code == "" {
		x.lacks("objective.no_lower", "samples", n, "p", f.p)
	}
	return x
}

// bounded explains why a percentile keeps its limit although its own interval is undecided, if so. A higher
// percentile bounds it, by the upper end of its own interval, or the largest sample does.
//
// None of n independent samples lies beyond percentile p with probability p^n, for any distribution (Hahn
// and Meeker, Statistical Intervals, section 5.4). So if that is at most an interval end's error
// probability, the largest sample is an upper bound. n is the effective number of samples; if unknown, they
// bound nothing. ADR 25.
func (o Objective) bounded(d *result.Dist, conf float64) (kept finding.Finding) {
	if _, is := o.Percentile(); !is || o.figure.system || d == nil || d.MaxNS == nil || d.Censored+d.Overflow > 0 || !strings.HasPrefix(o.op, "<") {
		return kept
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
			return kept
		case row.P < o.figure.p || row.P >= 100 || !row.Supported || row.AtLeast:
			continue
		case row.UnboundedBy == "" && row.HiNS != nil && keeps(*row.HiNS):
			return say("objective.larger", "larger", row.P, "end", *row.HiNS, "p", o.figure.p)
		case row.UnboundedBy == result.ByEpisodes && row.Deff > 0 && keeps(*d.MaxNS):
			worth := float64(d.Count) / row.Deff
			if math.Pow(row.P/100, worth) <= (1-conf)/2 {
				return say("objective.all_kept", "samples", d.Count, "most", *d.MaxNS, "worth", worth, "p", row.P,
					"certain", math.Floor(1000*(1-math.Pow(row.P/100, worth)))/10)
			}
		}
	}
	return kept
}

// asFloat converts an optional number for the end of a figure.
func asFloat(ns *int64) *float64 {
	if ns == nil {
		return nil
	}
	return new(float64(*ns))
}

func endless(d *result.Dist) finding.Finding {
	return say("objective.open", "open", d.Censored, "all", d.Count+d.Censored)
}
