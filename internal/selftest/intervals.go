package selftest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// simRate is how many messages a second a simulated system has. Values are in
// milliseconds, and recorded in 1/perMS of one.
const (
	simRate = 1000
	perMS   = 10_000
)

// A drawn is a system whose responses are drawn, with known percentiles.
type drawn struct {
	name   string
	every  float64 // what makes it slow comes this many seconds apart on average; 0: all the time
	varies bool    // how long it then stays slow is chance, too
	// make does a run, and returns whether it met a slow episode. What never completes has the
	// value +Inf.
	make  func(dice *rand.Rand, seconds int, add func(at, value float64)) bool
	above func(v float64) float64 // the share of all values above v
}

// truth is percentile p by bisection.
func (s *drawn) truth(p float64) float64 {
	lo, hi := 0.0, 1e6
	for range 200 {
		if m := (lo + hi) / 2; s.above(m) > 1-p/100 {
			lo = m
		} else {
			hi = m
		}
	}
	return lo
}

// each calls f for the instants of a second's messages.
func each(seconds int, f func(at float64)) {
	for i := range seconds * simRate {
		f((float64(i) + 0.5) / simRate)
	}
}

// clumps are seconds in which everything takes ten times as long, by chance.
func clumps(name string, chance float64) *drawn {
	return &drawn{
		name: name, every: 1 / chance,
		make: func(dice *rand.Rand, seconds int, add func(at, value float64)) bool {
			second, mean, met := -1, 1.0, false
			each(seconds, func(at float64) {
				if int(at) != second {
					second, mean = int(at), 1
					if dice.Float64() < chance {
						mean, met = 10, true
					}
				}
				add(at, mean*dice.ExpFloat64())
			})
			return met
		},
		above: func(v float64) float64 { return (1-chance)*math.Exp(-v) + chance*math.Exp(-v/10) },
	}
}

// drawnQueue is a queue with Poisson arrivals and exponential service, from its steady
// state on.
func drawnQueue(load float64) *drawn {
	mu := simRate / load / 1000 // per ms
	return &drawn{
		name: fmt.Sprintf("M/M/1 %.0f %%", 100*load),
		make: func(dice *rand.Rand, seconds int, add func(at, value float64)) bool {
			wait := 0.0
			if dice.Float64() < load {
				wait = dice.ExpFloat64() / (mu - simRate/1000.0)
			}
			for at := dice.ExpFloat64() / simRate; at < float64(seconds); {
				took := wait + dice.ExpFloat64()/mu
				add(at, took)
				gap := dice.ExpFloat64() / simRate
				wait = max(0, took-1000*gap)
				at += gap
			}
			return true
		},
		above: func(v float64) float64 { return math.Exp(-(mu - simRate/1000.0) * v) },
	}
}

// drawns are independent samples, two queues, slow seconds by chance, slow episodes
// at regular times, a level that drifts from second to second, and outages in which
// messages are delayed, or all fail, or half of them are lost.
func drawns() []*drawn {
	const level, noise = 0.5, 0.3
	return []*drawn{
		{
			name: "independent",
			make: func(dice *rand.Rand, seconds int, add func(at, value float64)) bool {
				each(seconds, func(at float64) { add(at, dice.ExpFloat64()) })
				return true
			},
			above: func(v float64) float64 { return math.Exp(-v) },
		},
		drawnQueue(0.6), drawnQueue(0.9), clumps("slow seconds, 1 of 10", 0.1), clumps("slow seconds, 1 of 50", 0.02),
		{
			name: "slow every 1.3 s", every: 1.3,
			make: func(dice *rand.Rand, seconds int, add func(at, value float64)) bool {
				from := 1.3 * dice.Float64()
				each(seconds, func(at float64) {
					mean := 1.0
					if math.Mod(at+from, 1.3) < 0.1 {
						mean = 10
					}
					add(at, mean*dice.ExpFloat64())
				})
				return true
			},
			above: func(v float64) float64 { return 12.0/13*math.Exp(-v) + 1.0/13*math.Exp(-v/10) },
		},
		{
			name: "drifting level", every: 1,
			make: func(dice *rand.Rand, seconds int, add func(at, value float64)) bool {
				second, z := -1, dice.NormFloat64()
				each(seconds, func(at float64) {
					if int(at) != second {
						second, z = int(at), 0.5*z+math.Sqrt(0.75)*dice.NormFloat64()
					}
					add(at, math.Exp(level*z+noise*dice.NormFloat64()))
				})
				return false // a level is neither slow nor not
			},
			above: func(v float64) float64 {
				return math.Erfc(math.Log(max(v, 1e-9))/math.Sqrt(2*(level*level+noise*noise))) / 2
			},
		},
		outages("outages delay", 0), outages("outages fail", 1), outages("outages lose half", 0.5),
	}
}

// outages come every 15 s on average, and take 0.3 s: a message due in one waits for its
// end, or never completes with a chance of gone.
func outages(name string, gone float64) *drawn {
	const up, down = 14.7, 0.3
	share := down / (up + down)
	return &drawn{
		name: name, every: up + down, varies: true,
		make: func(dice *rand.Rand, seconds int, add func(at, value float64)) bool {
			from, to, met := 0.0, 0.0, false
			if dice.Float64() < share {
				to = down * dice.ExpFloat64()
			} else {
				from = up * dice.ExpFloat64()
				to = from + down*dice.ExpFloat64()
			}
			each(seconds, func(at float64) {
				for at >= to {
					from = to + up*dice.ExpFloat64()
					to = from + down*dice.ExpFloat64()
				}
				switch took := dice.ExpFloat64(); {
				case at < from:
					add(at, took)
				case dice.Float64() < gone:
					met = true
					add(at, math.Inf(1))
				case gone > 0:
					met = true
					add(at, took)
				default:
					met = true
					add(at, 1000*(to-at)+took)
				}
			})
			return met
		},
		above: func(v float64) float64 {
			late := gone + (1-gone)*math.Exp(-v)
			if gone == 0 { // the rest of an outage, and then as ever
				late = (1000*down*math.Exp(-v/1000/down) - math.Exp(-v)) / (1000*down - 1)
			}
			return (1-share)*math.Exp(-v) + share*late
		},
	}
}

// slicesOf is how many slices a second has, as a scenario of that length has them.
func slicesOf(seconds int) float64 {
	switch {
	case seconds < 5:
		return 20
	case seconds < 300:
		return 10
	}
	return 1
}

// simDrain is how long a simulated run waits at its end, in seconds.
const simDrain = 5.0

// simulator does simulated runs, one after the other, through what judges real ones.
type simulator struct {
	slices []*measure.Counts
	in     measure.Interval
}

// run returns the distribution of a run and whether it met a slow episode.
func (m *simulator) run(dice *rand.Rand, s *drawn, seconds int) (d *result.Dist, met bool) {
	for len(m.slices) < int(float64(seconds)*slicesOf(seconds))+1 {
		m.slices = append(m.slices, new(measure.Counts))
	}
	slices := m.slices[:int(float64(seconds)*slicesOf(seconds))+1]
	for _, c := range slices {
		c.Reset()
	}
	var never measure.Censored
	met = s.make(dice, seconds, func(at, value float64) {
		if math.IsInf(value, 1) {
			never.Add(int64(at*1000*perMS), int64((simDrain+float64(seconds)-at)*1000*perMS), 1)
			return
		}
		i := min(int((at+value/1000)*slicesOf(seconds)), len(slices)-1)
		slices[i].Add(int64(value*perMS), 1)
	})
	var sum measure.Counts
	var kept judge.Slices
	for i, c := range slices {
		sum.Merge(c)
		m.in.To = int64(float64(i+1) / slicesOf(seconds) * 1000 * perMS)
		m.in.Kinds[measure.SendResponse][measure.Measure] = *c
		kept.Add(&m.in)
	}
	d = judge.Distribution(&sum, &never.Ages, 97)
	kept.Widen(measure.SendResponse, d, &sum, &never)
	return d, met
}

// A cell is what simulated runs of one length said of one percentile.
type cell struct {
	lower, both, neither int // runs with a lower end, with both ends, and without any
	missed, metMissed    int // whose interval lies beside the truth; of those, that met a slow episode
	decided              int // an objective whose limit is the truth: wrong, whichever way
	met                  int
	width                []float64 // of intervals with both ends, in parts of the truth
}

// take adds what a run said.
func (c *cell) take(d *result.Dist, met bool, p, truth float64, o judge.Objective) {
	var r result.Result
	r.Latency.Send.Response = d
	row := d.Percentile(p)
	missed := row.LoNS != nil && float64(*row.LoNS) > truth || row.HiNS != nil && float64(*row.HiNS) < truth
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	count(&c.lower, row.LoNS != nil)
	count(&c.neither, row.LoNS == nil && row.HiNS == nil)
	count(&c.missed, missed)
	count(&c.met, met)
	count(&c.metMissed, missed && met)
	count(&c.decided, o.Judge(&r).Status != result.Undecided)
	if row.LoNS != nil && row.HiNS != nil {
		c.both++
		c.width = append(c.width, float64(*row.HiNS-*row.LoNS)/truth)
	}
}

// fewestOutages is how many random outages a run must expect before its interval covers them. With four,
// one run in ten has so few and short ones that it looks like a run without any; with ten, 90 of 100
// intervals contain the truth.
const fewestOutages = 20

// most is how many of n runs may do what has a chance of part, with three standard
// deviations for chance.
func most(n int, part float64) int {
	return int(float64(n)*part + 3*math.Sqrt(float64(n)*part*(1-part)))
}

// coverage simulates runs of one length and returns a cell for each percentile.
func coverage(ctx context.Context, s *drawn, seconds, runs int, ps []float64) ([]cell, error) {
	cells := make([]cell, len(ps))
	truths, objectives := make([]float64, len(ps)), make([]judge.Objective, len(ps))
	for i, p := range ps {
		truths[i] = s.truth(p) * perMS
		o, err := judge.ParseObjective(fmt.Sprintf("send.p%v <= %.0fns", p, truths[i]))
		if err != nil {
			return nil, fmt.Errorf("making an objective that is the truth: %w", err)
		}
		objectives[i] = o
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	next := 0
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			var m simulator
			mu.Lock()
			defer mu.Unlock()
			for next < runs && ctx.Err() == nil {
				dice := rand.New(rand.NewPCG(uint64(seconds), uint64(next)))
				next++
				mu.Unlock()
				d, met := m.run(dice, s, seconds)
				mu.Lock()
				for i := range cells {
					cells[i].take(d, met, ps[i], truths[i], objectives[i])
				}
			}
		})
	}
	all.Wait()
	return cells, ctx.Err()
}

// beyond reports whether runs of that length may know too little of what makes the system slow.
func (s *drawn) beyond(seconds int) bool {
	if s.varies {
		return fewestOutages*s.every > float64(seconds)
	}
	return s.every > judge.Horizon(float64(seconds))
}

// Simulated runs of the check of intervals, by length: fewer of the long ones, which take longer.
var intervalRuns = []struct{ seconds, runs int }{{10, 400}, {60, 100}, {300, 60}}

// mostMiss is the share of intervals that may miss the truth: 5 %, and what outages of random lengths add.
const mostMiss = 0.07

// intervals simulates runs of systems whose percentiles are known, and counts the intervals that hold the
// truth. Each system has the two shortest lengths within its horizon, of one with rare outages the longest.
func intervals(ctx context.Context, o Options) (Check, error) {
	c := Check{
		Name: "intervals", Attempts: 1,
		What: fmt.Sprintf("simulated runs at %d/s: how many 95 %% intervals hold the percentile of the system", simRate),
	}
	for _, s := range drawns() {
		lengths := 0
		for _, l := range intervalRuns {
			if s.beyond(l.seconds) || lengths == 2 {
				continue
			}
			lengths++
			runs := max(20, int(float64(l.runs)*o.Scale))
			ps := []float64{50, 99}
			if s.varies {
				ps[1] = 97 // an outage delays 2 of 100 messages
			}
			cells, err := coverage(ctx, s, l.seconds, runs, ps)
			if err != nil {
				return c, err
			}
			c.Samples += uint64(runs * l.seconds * simRate)
			for i, cell := range cells {
				c.Rows = append(c.Rows, ofRuns(fmt.Sprintf("%s, %d s: p%g; both ends known in %d", s.name, l.seconds, ps[i], cell.both), runs, runs-cell.missed, most(runs, mostMiss)))
			}
		}
	}
	c.judge()
	return c, nil
}
