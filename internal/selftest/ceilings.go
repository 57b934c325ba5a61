package selftest

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// A limited is a virtual system with one server, and the highest rate at which it meets an objective.
type limited struct {
	name, what string
	arrival    schedule.ArrivalKind
	service    func(k uint64) int64 // of the k-th message, ns
	truth      float64              // messages per second
}

// The searches' objective, and the length of each probe: enough for the percentile of a queue that is
// often busy, whose messages depend on one another.
const (
	promised  = "send.p99 <= 10ms"
	within    = 10 * time.Millisecond
	probeLong = 600 // virtual seconds
	// near is how far below and above the truth an interval may end: the searches aim for intervals of a
	// tenth, and what cannot be decided is around the truth.
	near = 0.25
)

// ceilings returns systems with a closed-form solution. The time of a message in an M/M/1 queue is
// exponential with the rate 1/service - arrivals, so that its 99th percentile is ln(100) divided by
// that. A token bucket passes everything up to its rate; beyond it the queue grows without bound.
func ceilings() []limited {
	return []limited{
		{
			name: "capacity, m/m/1", what: "a search for the highest rate of a queue with " + promised,
			arrival: schedule.Poisson, service: func(k uint64) int64 { return exponential(queueSeed, k, virtualService) },
			truth: 1/virtualService.Seconds() - math.Log(100)/within.Seconds(),
		},
		{
			name: "capacity, token bucket", what: "a search for the rate of a token bucket with " + promised,
			arrival: schedule.Constant, service: func(uint64) int64 { return int64(virtualService) },
			truth: 1 / virtualService.Seconds(),
		},
	}
}

// check runs a search, and compares both ends with the truth.
func (c limited) check(ctx context.Context) (Check, error) {
	objective, err := judge.ParseObjective(promised)
	if err != nil {
		return Check{}, fmt.Errorf("reading the objective of a search: %w", err)
	}
	out := Check{Name: c.name, What: c.what, Attempts: 1}
	search := capacity.New(capacity.Plan{From: 100, Precision: 0.1, Retests: 1, Probes: 60, Seed: 1})
	for n := 0; ; n++ {
		rate, why, more := search.Next()
		if !more {
			break
		}
		r, samples, err := c.probe(ctx, rate, uint64(n), objective)
		if err != nil {
			return Check{}, err
		}
		out.Samples += samples
		j, _ := capacity.Judge(r, false)
		search.Add(capacity.Probe{Rate: rate, Purpose: why, Judgement: j})
	}
	a := search.Answer()
	out.Rows = []Row{
		c.end("kept the objective, messages/s", a.Pass, a.Pass <= c.truth && a.Pass >= (1-near)*c.truth),
		c.end("did not pass, messages/s", a.Fail.Rate, a.Fail.Rate >= c.truth && a.Fail.Rate <= (1+near)*c.truth),
	}
	out.judge()
	return out, nil
}

func (c limited) end(what string, got float64, ok bool) Row {
	return Row{What: what, Unit: Messages, Want: int64(c.truth), Got: int64(got), Tolerance: int64(near * c.truth), OK: ok, Says: true, Waiting: -1}
}

// probe returns the result of one virtual run at a rate, as far as a search reads it.
func (c limited) probe(ctx context.Context, perSecond float64, number uint64, o judge.Objective) (*result.Result, uint64, error) {
	r := schedule.PerSecond(uint64(perSecond))
	plan, err := schedule.New(schedule.Spec{
		Seed: 7 + number, Arrival: schedule.Arrival{Kind: c.arrival}, Producers: 1, Destinations: 1, BatchMin: 1, BatchMax: 1,
		Phases: []schedule.Phase{{From: r, To: r, For: probeLong * time.Second}},
		Sizes:  []schedule.WeightedSize{{Bytes: size, Weight: 1}},
	})
	if err != nil {
		return nil, 0, fmt.Errorf("planning a virtual run: %w", err)
	}
	var parts judge.Slices
	var all measure.Counts
	var departure int64
	one := new(measure.Interval)
	seen := &one.Kinds[measure.SendResponse][measure.Measure]
	flush := func() {
		parts.Add(one)
		all.Merge(seen)
		seen.Reset()
		one.From, one.To = one.To, one.To+int64(time.Second)
	}
	one.To = int64(time.Second)
	for i, due := range plan.Due(schedule.Part{Count: 1}) {
		for due >= one.To {
			flush()
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
		}
		departure = max(due, departure) + c.service(i+number*virtualSamples)
		seen.Add(departure-due, 1)
	}
	flush()
	d := judge.Distribution(&all, nil)
	parts.Widen(measure.SendResponse, d, &all, nil)
	out := &result.Result{}
	out.Latency.Send.Response = d
	out.Verdict = result.Verdict{Status: result.Valid, SLO: []result.SLO{o.Judge(out)}}
	return out, all.Total(), nil
}
