package selftest

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weirmq/weir/schedule"
)

// queueSeed is the seed of the service times.
const queueSeed = 0x6d6d31

// exponential returns the k-th draw from an exponential distribution, in ns, for a seed. It is a pure
// function; the stream of draws is splitmix64's (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014), transformed by inversion.
func exponential(seed, k uint64, mean time.Duration) int64 {
	z := seed + (k+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	u := (float64(z>>11) + 0.5) / (1 << 53) // in (0, 1)
	return int64(-float64(mean) * math.Log(u))
}

// The virtual queue takes no real time, and so has enough samples to check the recursion, the
// schedule's arrivals and the service times against the M/M/1 formula itself.
const (
	virtualSamples = 10_000_000
	virtualRate    = 500 // messages per second: the server is busy half of the time
	virtualService = time.Millisecond
	// virtualBatch is the size of the batches whose means give the standard errors. The queue forgets
	// within about 1/(1-sqrt(rho))^2 = 12 messages (its relaxation time, Cohen, "The Single Server Queue",
	// 1969), so that batches of 25,000 are practically independent, and 400 of them give a standard error
	// to 4 %.
	virtualBatch = 25_000
	// sigmas is the tolerance in standard errors: one correct figure in 16,000 is beyond 4; as the seed is
	// fixed, it is always or never.
	sigmas = 4
)

// closedForm compares the time that 10^7 virtual messages spend in the queue with the closed form:
// exponential with the rate 1/service - arrivals. Successive messages are correlated, so that the
// standard error of a figure is many times that of independent samples; it is estimated from the means
// of long batches (Law and Kelton, "Simulation Modeling and Analysis", the method of batch means). A
// percentile's error is that of the share of samples above the true value, divided by the density
// there.
func closedForm(ctx context.Context) (Check, error) {
	r := schedule.PerSecond(virtualRate)
	plan, err := schedule.New(schedule.Spec{
		Seed: 7, Arrival: schedule.Arrival{Kind: schedule.Poisson}, Producers: 1, Destinations: 1, BatchMin: 1, BatchMax: 1,
		Phases: []schedule.Phase{{From: r, To: r, For: 2 * virtualSamples / virtualRate * time.Second}},
		Sizes:  []schedule.WeightedSize{{Bytes: size, Weight: 1}},
	})
	if err != nil {
		return Check{}, err
	}
	ps := [...]float64{50, 75, 90, 95, 99, 99.9}
	truth := 1 / (1/virtualService.Seconds() - virtualRate) * 1e9 // mean, ns
	var at [len(ps)]int64
	for j, p := range ps {
		at[j] = int64(-truth * math.Log(1-p/100))
	}

	var sum moments
	var above [len(ps)]moments
	var departure int64
	var batchSum float64
	var batchAbove [len(ps)]int
	n := 0
	for i, due := range plan.Due(schedule.Part{Count: 1}) {
		departure = max(due, departure) + exponential(queueSeed, i, virtualService)
		spent := departure - due
		batchSum += float64(spent)
		for j := 0; j < len(at) && spent > at[j]; j++ {
			batchAbove[j]++
		}
		if n++; n%virtualBatch == 0 {
			sum.add(batchSum / virtualBatch)
			for j := range above {
				above[j].add(float64(batchAbove[j]) / virtualBatch)
			}
			batchSum, batchAbove = 0, [len(ps)]int{}
			if ctx.Err() != nil {
				return Check{}, ctx.Err()
			}
		}
		if n == virtualSamples {
			break
		}
	}

	c := Check{
		Name: "m/m/1 closed form", What: fmt.Sprintf("%d virtual messages against the law of M/M/1, %d standard errors either way", n, sigmas),
		Attempts: 1, Samples: uint64(n), Rows: []Row{exactly("samples", virtualSamples, uint64(n)), row("mean", truth, sum.mean(), sum.stderr())},
	}
	for j, p := range ps {
		// Near the true value the share above it falls by its density, share/truth, per ns.
		share := 1 - p/100
		density := share / truth
		got := float64(at[j]) + (above[j].mean()-share)/density
		c.Rows = append(c.Rows, row(fmt.Sprintf("p%g", p), float64(at[j]), got, above[j].stderr()/density))
	}
	c.judge()
	return c, nil
}

func row(what string, want, got, stderr float64) Row {
	r := Row{
		What: "response " + what, Unit: Nanoseconds, Want: int64(math.Round(want)), Got: int64(math.Round(got)),
		Tolerance: int64(math.Ceil(sigmas * stderr)), Says: true, Waiting: -1,
	}
	r.OK = abs(r.Got-r.Want) <= r.Tolerance
	return r
}

// moments accumulates batch means.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(v float64) { m.n, m.sum, m.squares = m.n+1, m.sum+v, m.squares+v*v }

func (m *moments) mean() float64 { return m.sum / m.n }

// stderr is the standard error of the mean.
func (m *moments) stderr() float64 {
	variance := (m.squares - m.sum*m.sum/m.n) / (m.n - 1)
	return math.Sqrt(max(0, variance) / m.n)
}
