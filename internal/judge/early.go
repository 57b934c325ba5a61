package judge

import (
	"strings"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Early tells, while a run goes on, when all its objectives about percentiles are
// decided, so that the rest of the run would change nothing. Objectives about
// anything else are judged when it has ended, and never end it. One goroutine
// uses it.
//
// Who looks several times at growing data and stops when he likes what he sees
// finds more than there is. So the looks are few, after 10, 20, 40... seconds of
// the measured window, and the k-th takes 1/(k(k+1)) of the 5 % that may be
// missed: all together they never miss more.
//
// Source: the union bound, with the weights of A. Wald's series as J. Robbins,
// "Statistical methods related to the law of the iterated logarithm", Ann. Math.
// Statist. 41 (1970), uses it; looking at doubling times loses a factor of two in
// time at most.
type Early struct {
	objectives []Objective
	kinds      []measure.Kind   // of each
	sums       []measure.Counts // of each
	slices     *Slices
	measured   int64 // ns of the measured window so far
	next       int64 // ns of it, when Early looks again
	looks      int
}

// firstLook is when Early looks first, in ns of the measured window: so
// much as tells what samples are worth.
const firstLook = 10_000_000_000

// WatchFor returns an Early for those of the objectives that are about
// percentiles, or nil without any. kept are the slices of the run, which whoever
// calls Add gives each interval first.
func WatchFor(objectives []Objective, kept *Slices) *Early {
	e := &Early{slices: kept, next: firstLook}
	for _, o := range objectives {
		if _, ok := o.Percentile(); !ok {
			continue
		}
		of, service := o.Latency()
		name := of + ".response"
		switch {
		case of == "settle":
			name = of
		case service:
			name = of + ".service"
		}
		for k := range measure.NumKinds {
			if k.String() == name || of == "settle" && strings.HasPrefix(k.String(), of) {
				e.objectives, e.kinds = append(e.objectives, o), append(e.kinds, k)
				break
			}
		}
	}
	if len(e.objectives) == 0 {
		return nil
	}
	e.sums = make([]measure.Counts, len(e.objectives))
	return e
}

// Add takes an interval of the run, in the order of time, and reports whether
// every objective is decided. It looks after 10, 20, 40... seconds of the measured
// window only.
func (e *Early) Add(in *measure.Interval) bool {
	measured := false
	for i, k := range e.kinds {
		c := &in.Kinds[k][measure.Measure]
		measured = measured || c.Total() > 0
		e.sums[i].Merge(c)
	}
	if measured {
		e.measured += in.To - in.From
	}
	if e.measured < e.next {
		return false
	}
	e.next *= 2
	e.looks++
	return e.decided(1 - (1-confidence)/float64(e.looks*(e.looks+1)))
}

// decided judges every objective at some confidence.
func (e *Early) decided(conf float64) bool {
	for i, o := range e.objectives {
		p, _ := o.Percentile()
		sum := &e.sums[i]
		d := distribution(sum, nil, conf, p)
		if d == nil {
			return false
		}
		e.slices.widen(e.kinds[i], d, sum, new(measure.Counts), conf)
		if o.judge(o.resultOf(d), conf).Status == result.Undecided {
			return false
		}
	}
	return true
}

// resultOf returns a result that holds nothing but the distribution that the
// objective is about.
func (o Objective) resultOf(d *result.Dist) *result.Result {
	r := &result.Result{}
	pair := result.Pair{Response: d, Service: d}
	switch of, _ := o.Latency(); of {
	case "send":
		r.Latency.Send.Response, r.Latency.Send.Service = d, d
	case "e2e":
		r.Latency.E2E = pair
	case "rtt":
		r.Latency.RTT = pair
	case "settle":
		r.Latency.Settle = d
	}
	return r
}
