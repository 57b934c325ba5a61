package judge

import (
	"strings"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Early detects, during a run, when all its objectives about percentiles are decided, so that the rest of
// the run would change nothing. Other objectives are judged at the end of the run, and never end it. It is
// not safe for concurrent use.
//
// Repeatedly testing growing data inflates the error rate. So there are few looks, after 10, 20, 40...
// seconds of the measured window, and the k-th uses 1/(k(k+1)) of the 5 % error: together they never exceed
// it.
//
// Source: the union bound, with the weights of A. Wald's series as in H. Robbins, "Statistical methods
// related to the law of the iterated logarithm", Ann. Math. Statist. 41 (1970); doubling times cost at most
// a factor of two in time.
type Early struct {
	objectives []Objective
	kinds      []measure.Kind   // per objective
	sums       []measure.Counts // likewise
	slices     *Slices
	times      []uint64         // deliveries per message
	owed       uint64           // expected so far
	failed     measure.Censored // of those, will never complete; ages are set elsewhere
	measured   int64            // ns of the measured window so far
	next       int64            // next look, ns into the measured window
	looks      int
}

// firstLook is the first look, in ns into the measured window: enough to estimate the samples' dependence.
const firstLook = 10_000_000_000

// WatchFor returns an Early for the objectives about percentiles, or nil if there are none. kept holds the
// run's slices: the caller of Add adds each interval there first. Each message is delivered to that many
// subscriptions.
func WatchFor(objectives []Objective, kept *Slices, subscriptions int) *Early {
	e := &Early{slices: kept, next: firstLook}
	for _, o := range objectives {
		if _, ok := o.Percentile(); !ok || o.OfSystem() {
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
				times := map[string]uint64{"send": 1, "rtt": 1, "e2e": uint64(max(1, subscriptions))}[of] // no settle times are owed
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

// Add adds an interval of the run, in time order, and reports whether every objective is decided. It looks
// only after 10, 20, 40... seconds of the measured window.
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

// decided judges every objective at a given confidence.
func (e *Early) decided(now int64, conf float64) bool {
	for i, o := range e.objectives {
		d := e.distribution(i, now, conf)
		if d == nil || o.judge(o.resultOf(d), conf).Status == result.Undecided {
			return false
		}
	}
	return true
}

// distribution returns the samples so far for an objective. Failed messages may never complete, and open
// ones may complete at once or never: lower ends of intervals take open ones at their current age, upper
// ends as above all others.
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
	d.Censored = failed // open messages do not count against what all others kept: they are judged at the end
	return d
}

// resultOf returns a result with nothing but the objective's distribution.
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
