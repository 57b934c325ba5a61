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
	kinds      []measure.Kind // of each
	spells     map[measure.Kind]*spells
	seconds    float64 // of the measured window so far
	next       float64
	looks      int
}

// firstLook is when Early looks first, in seconds of the measured window: so
// many intervals as tell what samples are worth.
const firstLook = 10

// WatchFor returns an Early for those of the objectives that are about
// percentiles, or nil without any.
func WatchFor(objectives []Objective) *Early {
	e := &Early{spells: map[measure.Kind]*spells{}, next: firstLook}
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
				e.spells[k] = &spells{step: 1}
				break
			}
		}
	}
	if len(e.objectives) == 0 {
		return nil
	}
	return e
}

// Add takes an interval of the run, in the order of time, and reports whether
// every objective is decided. It keeps copies of what it needs of at most 512
// spells, and looks at them in 10, 20, 40... seconds of the measured window only.
func (e *Early) Add(in *measure.Interval) bool {
	measured := false
	for k, s := range e.spells {
		if c := &in.Kinds[k][measure.Measure]; c.Total() > 0 {
			measured = true
			s.add(c)
		}
	}
	if measured {
		e.seconds += float64(in.To-in.From) / 1e9
	}
	if e.seconds < e.next {
		return false
	}
	e.next *= 2
	e.looks++
	return e.decided(1 - (1-confidence)/float64(e.looks*(e.looks+1)))
}

// mostEarly is how many spells of each distribution are kept apart; an even
// number.
const mostEarly = 512

// spells are the samples of a distribution, some intervals of the run in each.
type spells struct {
	counts []*measure.Counts
	step   int // intervals in each, but for the last
	held   int // in the last
}

func (s *spells) add(c *measure.Counts) {
	if len(s.counts) == 0 || s.held == s.step {
		if len(s.counts) == mostEarly {
			for i := range mostEarly / 2 {
				s.counts[2*i].Merge(s.counts[2*i+1])
				s.counts[i] = s.counts[2*i]
			}
			s.counts = s.counts[:mostEarly/2]
			s.step *= 2
		}
		s.counts, s.held = append(s.counts, new(measure.Counts)), 0
	}
	s.counts[len(s.counts)-1].Merge(c)
	s.held++
}

// decided judges every objective at some confidence.
func (e *Early) decided(conf float64) bool {
	for i, o := range e.objectives {
		p, _ := o.Percentile()
		sum := new(measure.Counts)
		for _, c := range e.spells[e.kinds[i]].counts {
			sum.Merge(c)
		}
		d := distribution(sum, nil, conf, p)
		if d == nil {
			return false
		}
		w := Correlate(d)
		for _, c := range e.spells[e.kinds[i]].counts {
			w.Add(c)
		}
		w.widen(d, sum, new(measure.Counts), conf)
		if o.Judge(o.resultOf(d)).Status == result.Undecided {
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
