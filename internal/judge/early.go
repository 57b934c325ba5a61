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
	times      []uint64         // that each gets a message
	owed       uint64           // messages so far
	failed     measure.Censored // of them, what will never complete; the ages are not these
	measured   int64            // ns of the measured window so far
	next       int64            // ns of it, when Early looks again
	looks      int
}

// firstLook is when Early looks first, in ns of the measured window: so
// much as tells what samples are worth.
const firstLook = 10_000_000_000

// WatchFor returns an Early for those of the objectives that are about
// percentiles, or nil without any. kept are the slices of the run, which whoever
// calls Add gives each interval first. Each message is delivered to so many subscriptions.
func WatchFor(objectives []Objective, kept *Slices, subscriptions int) *Early {
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
				times := map[string]uint64{"send": 1, "rtt": 1, "e2e": uint64(max(1, subscriptions))}[of] // settling is owed to none
				e.objectives, e.kinds, e.times = append(e.objectives, o), append(e.kinds, k), append(e.times, times)
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
	c := &in.Counters[measure.Measure]
	e.owed += max(c.Scheduled, c.Sent)
	e.failed.Add(in.From, 0, c.Failed+c.Dropped+c.Unsent)
	if e.measured < e.next {
		return false
	}
	e.next *= 2
	e.looks++
	return e.decided(in.To, 1-(1-confidence)/float64(e.looks*(e.looks+1)))
}

// decided judges every objective at some confidence.
func (e *Early) decided(now int64, conf float64) bool {
	for i, o := range e.objectives {
		d := e.distribution(i, now, conf)
		if d == nil || o.judge(o.resultOf(d), conf).Status == result.Undecided {
			return false
		}
	}
	return true
}

// distribution is that of an objective's samples so far. What failed may not have an end, and
// what is open may come at once or never: the lower ends of intervals take it as old as it is,
// the upper ends as older than all.
func (e *Early) distribution(i int, now int64, conf float64) *result.Dist {
	p, _ := e.objectives[i].Percentile()
	sum := &e.sums[i]
	var young, old measure.Censored
	missing := e.times[i] * e.owed
	missing -= min(missing, sum.Total())
	add := func(since int64, n uint64) {
		missing -= n
		young.Add(since, now-since, n)
		old.Add(since, measure.Highest, n)
	}
	for at, n := range e.failed.Cells() {
		add(min(at.From, now), min(missing, n*e.times[i]))
	}
	failed := old.Total()
	add(now, missing)
	of := func(c *measure.Censored) *result.Dist {
		d := distribution(sum, &c.Ages, conf, p)
		if d != nil {
			e.slices.widen(e.kinds[i], d, sum, c, conf)
		}
		return d
	}
	d := of(&old)
	if d == nil {
		return nil
	}
	for k, row := range of(&young).Percentiles {
		d.Percentiles[k].LoNS = row.LoNS
	}
	d.Censored = failed // what is open is no reason against what all others kept: at the end it is judged
	return d
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
