package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// simRate is how many messages a second a simulated system has. Values are in
// milliseconds, and recorded in 1/perMS of one.
const (
	simRate = 1000
	perMS   = 10_000
)

// A process is a simulated system whose percentiles are known.
type process struct {
	name   string
	every  float64 // what makes it slow comes so many seconds apart on average; 0: all the time
	varies bool    // how long it then stays slow is chance, too
	// make does a run, and returns whether it met a slow spell. What never completes has the
	// value +Inf.
	make  func(dice *rand.Rand, seconds int, add func(at, value float64)) bool
	above func(v float64) float64 // the share of all values above v
}

// truth is percentile p by bisection.
func (s *process) truth(p float64) float64 {
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
func clumps(name string, chance float64) *process {
	return &process{
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

// queue is a queue with Poisson arrivals and exponential service, from its steady
// state on.
func queue(load float64) *process {
	mu := simRate / load / 1000 // per ms
	return &process{
		name: fmt.Sprintf("M/M/1 %.0f%%", 100*load),
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

// processes are independent samples, two queues, slow seconds by chance, slow spells
// at regular times, a level that drifts from second to second, and outages in which
// messages are delayed, or all fail, or half of them are lost.
func processes() []*process {
	const level, noise = 0.5, 0.3
	return []*process{
		{
			name: "iid",
			make: func(dice *rand.Rand, seconds int, add func(at, value float64)) bool {
				each(seconds, func(at float64) { add(at, dice.ExpFloat64()) })
				return true
			},
			above: func(v float64) float64 { return math.Exp(-v) },
		},
		queue(0.6), queue(0.9), clumps("clumps", 0.1), clumps("rare clumps", 0.02),
		{
			name: "periodic", every: 1.3,
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
			name: "AR(1)", every: 1,
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
		outages("outages delay", 0), outages("outages fail", 1), outages("outages lose", 0.5),
	}
}

// outages come every 15 s on average, and take 0.3 s: a message due in one waits for its
// end, or never completes with a chance of gone.
func outages(name string, gone float64) *process {
	const up, down = 14.7, 0.3
	share := down / (up + down)
	return &process{
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

// run returns the distribution of a run and whether it met a slow spell.
func (m *simulator) run(dice *rand.Rand, s *process, seconds int) (d *result.Dist, met bool) {
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
	var kept Slices
	for i, c := range slices {
		sum.Merge(c)
		m.in.To = int64(float64(i+1) / slicesOf(seconds) * 1000 * perMS)
		m.in.Kinds[measure.SendResponse][measure.Measure] = *c
		kept.Add(&m.in)
	}
	d = Distribution(&sum, &never.Ages, 97)
	kept.Widen(measure.SendResponse, d, &sum, &never)
	return d, met
}

// A cell is what simulated runs of one length said of one percentile.
type cell struct {
	lower, both, neither int // runs with a lower end, with both ends, and without any
	missed, metMissed    int // whose interval lies beside the truth; of those, that met a slow spell
	decided              int // an objective whose limit is the truth: wrong, whichever way
	met                  int
	width                []float64 // of intervals with both ends, in parts of the truth
}

// take adds what a run said.
func (c *cell) take(d *result.Dist, met bool, p, truth float64, o Objective) {
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
	count(&c.decided, o.Judge(o.resultOf(d)).Status != result.Undecided)
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
func coverage(s *process, seconds, runs int, ps []float64) []cell {
	cells := make([]cell, len(ps))
	truths, objectives := make([]float64, len(ps)), make([]Objective, len(ps))
	for i, p := range ps {
		truths[i] = s.truth(p) * perMS
		o, err := ParseObjective(fmt.Sprintf("send.p%v <= %.0fns", p, truths[i]))
		if err != nil {
			panic(err)
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
			for next < runs {
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
	return cells
}

// Runs simulated systems with known percentiles, and counts how often the interval contains the truth, and
// how often an objective whose limit is the truth is decided. If slow episodes are rarer than the rarest
// stall that a run would have seen, a run without any cannot know of them: then only runs that met one
// count.
//
// WEIR_COVERAGE=2000 does that many runs of every length, which takes minutes, and prints the table of
// docs/method/intervals.md.
func TestIntervalsCover(t *testing.T) {
	lengths, runs := []int{2, 10, 30}, func(seconds int) int { return 10 + 400/(seconds+3) }
	if needs.Less() {
		lengths = lengths[:1] // under the race detector a simulated second takes many times as long
	}
	if s := os.Getenv("WEIR_COVERAGE"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		lengths, runs = []int{2, 5, 10, 30, 60, 300}, func(int) int { return n }
	}
	ps := []float64{50, 90, 99, 99.9, 97}
	// Of how many runs both ends are known, in percent, at least.
	known := map[string]map[int][]int{
		"iid":       {2: {90, 90, 80}, 10: {90, 90, 90}, 30: {90, 90, 85, 75}},
		"M/M/1 60%": {2: {90, 75}, 10: {90, 90, 55}, 30: {90, 90, 80}},
		"M/M/1 90%": {10: {75, 30}, 30: {85, 55}},
		"periodic":  {10: {95, 95, 95}, 30: {95, 95, 95}},
	}
	for _, s := range processes() {
		lengths := lengths
		if s.varies && os.Getenv("WEIR_COVERAGE") == "" {
			if lengths = []int{300}; needs.Less() {
				continue // 300 s of messages take too long under the race detector
			}
		}
		for _, seconds := range lengths {
			runs, beyond := runs(seconds), s.every > Horizon(float64(seconds))
			if s.varies {
				beyond = fewestOutages*s.every > float64(seconds)
			}
			line := fmt.Sprintf("%-11s %3d s", s.name, seconds)
			for i, c := range coverage(s, seconds, runs, ps) {
				percent := func(n int) float64 { return 100 * float64(n) / float64(runs) }
				slices.Sort(c.width)
				width := math.NaN()
				if len(c.width) > 0 {
					width = 100 * c.width[len(c.width)/2]
				}
				line += fmt.Sprintf(" | %5.1f %5.1f %5.1f %4.0f", 100-percent(c.missed), percent(c.both), percent(c.neither), width)
				at := fmt.Sprintf("%s, %d s, p%v", s.name, seconds, ps[i])
				switch {
				case beyond && !s.varies && c.metMissed > most(c.met, 0.07) && stats.Supported(uint64(seconds*simRate), ps[i]):
					t.Errorf("%s: of %d runs that met a slow spell %d miss the truth", at, c.met, c.metMissed)
				case beyond:
				case c.missed > most(runs, 0.07) || c.decided > most(runs, 0.05):
					t.Errorf("%s: of %d runs %d miss the truth, and %d decide an objective that is the truth", at, runs, c.missed, c.decided)
				}
				if least := known[s.name][seconds]; i < len(least) && c.both*100 < least[i]*runs {
					t.Errorf("%s: of %d runs %d have an interval with both ends; want %d %%", at, runs, c.both, least[i])
				}
			}
			if beyond {
				line += "  beyond the horizon"
			}
			t.Log(line)
		}
	}
}
