package pace

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/quantity"
)

// The effort of a calibration: sleeps of 100 to 400 us, split and unsplit, 0.27 s in all; never
// more than calibrationLimit even if each takes a millisecond.
const (
	calibrationSamples = 1000
	calibrationLimit   = 400 * time.Millisecond
	shortestSleep      = 100_000 // ns
	sleepSpread        = 300_000 // ns
)

// Limits of a margin beyond the 99th percentile; see At.
const (
	widest    = 3   // times the 99th percentile
	spinShare = 0.2 // of a core
)

// A Calibration holds measurements of this host's sleep and clock, and how waiters use them. Times
// are in ns.
type Calibration struct {
	Samples     int     `json:"samples"`       // sleeps measured
	P50         int64   `json:"p50_ns"`        // overshoots: return of a sleep minus the instant asked for
	P99         int64   `json:"p99_ns"`        //
	P999        int64   `json:"p999_ns"`       //
	Max         int64   `json:"max_ns"`        //
	Margin      int64   `json:"margin_ns"`     // spun before each instant if Spin is set
	Spin        bool    `json:"spin"`          // may be changed before NewWaiter
	ClockCostNS float64 `json:"clock_cost_ns"` // of one Clock.Now
	// ClockRead and ClockWithinNS are the Counter and BoundNS of Followed; see Read.
	ClockRead     string `json:"clock_read,omitempty"`
	ClockWithinNS int64  `json:"clock_within_ns,omitempty"`
	Portable      bool   `json:"portable"`       // the sleep is time.Sleep, not clock_nanosleep
	FIFO          bool   `json:"fifo,omitempty"` // waiters use SCHED_FIFO while locked, as they did when measured
	Why           string `json:"why"`            // one sentence on Spin and Margin, and on FIFO if it was requested

	virtual bool
	free    string // the end of Why
}

// Calibrate measures the sleep that waiters use, on the calling goroutine locked to its thread, and
// decides how `pacers` concurrent waiters should wait. It takes about 0.27 s, at most some 0.4 s,
// and leaves the thread as it was. In a bubble of testing/synctest it measures nothing and returns
// Virtual.
//
// The margin is the 99th percentile of the overshoots. Up to there, an overshoot is the way out of
// the sleep (interrupt, idle exit, scheduler), which spinning can hide (At adds to it if waits are
// few). Beyond it come stalls of the host, which hit a spinning thread as well, and of 1000 samples
// the 99.9th is the second largest: a margin taken from it would be 18 us in one calibration and
// 180 us in the next on the same idle host.
//
// If that exceeds 200 us (1 ms with time.Sleep) the margin is the median instead. Each wait burns
// up to a margin of a core: at 1000 waits a second 200 us are a fifth of one, about what precision
// may cost. And such a late wake-up is not the way out of a sleep but a thread waiting for a core
// that others use, which spinning makes worse, as the scheduler prefers a thread that slept to one
// that has used its share: with four busy processes on two cores and an instant every 10 us,
// lateness was 1 to 2 ms in the median without margin or with the median as margin, and 19 ms with
// 200 us.
//
// Spin is false if the pacers would leave no core to the rest: a thread that spins while the
// clients it feeds wait for its core measures itself. Cores are those that the process may run on,
// or GOMAXPROCS if that is less (Go derives it from a cgroup's CPU quota), so call it before
// raising GOMAXPROCS for the pacers.
func Calibrate(pacers int) Calibration {
	cal, _ := calibrate(pacers, false) // only precedence can fail
	return cal
}

// calibrate measures, with real-time priority or without; the error is that of precede.
func calibrate(pacers int, first bool) (Calibration, error) {
	c := NewClock()
	if c.bubble {
		return Virtual(), nil
	}
	over, err := overshoots(c, first)
	if err != nil {
		return Calibration{}, err
	}
	slices.Sort(over)
	cal := Calibration{
		Samples:     len(over),
		P50:         rank(over, 500),
		P99:         rank(over, 990),
		P999:        rank(over, 999),
		Max:         over[len(over)-1],
		ClockCostNS: clockCost(c),
		Portable:    portable,
	}
	cal.decide(pacers, Cores())
	return cal, nil
}

// Cores returns how many cores the process may use: those of the host that it may run on, or the
// quota of its control group if that is less (runtime.GOMAXPROCS).
func Cores() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// Virtual returns the calibration for tests under testing/synctest: waiters use time.Sleep, which a
// bubble's clock ends at the very instant, and never spin. Nothing is measured. It is useless
// outside a bubble.
func Virtual() Calibration {
	return Calibration{Portable: true, Why: "virtual time: sleeps end exactly and nothing is spun", virtual: true}
}

// decide sets Margin, Spin and Why from the overshoots.
func (cal *Calibration) decide(pacers, cores int) {
	cal.Margin = cal.P99
	of := "the 99th percentile of the sleep's overshoot"
	if cal.P99 > marginCap {
		cal.Margin = min(cal.P50, marginCap)
		of = fmt.Sprintf("the median of the sleep's overshoot; its 99th percentile, %v, shows a busy host", rounded(cal.P99))
	}
	cal.Spin = cores-pacers >= 1
	margin := rounded(cal.Margin)
	if cal.Spin {
		cal.free = fmt.Sprintf("%d of %d cores stay free", cores-pacers, cores)
		cal.Why = fmt.Sprintf("spins the last %v, %s; %s", margin, of, cal.free)
		return
	}
	cal.Why = fmt.Sprintf("does not spin, as %s would take the last of %s, and is late by what the sleep overshoots (median %v)",
		quantity.Plural(pacers, "pacer"), quantity.Plural(cores, "core"), rounded(cal.P50))
}

// rounded keeps about three digits of a number of ns.
func rounded(ns int64) time.Duration {
	digit := int64(1)
	for ns/digit >= 1000 {
		digit *= 10
	}
	return time.Duration(ns).Round(time.Duration(digit))
}

// At returns the calibration for waiters with perSecond waits each. If they are few enough that it
// burns no more than a fifth of a core, such a waiter spins up to three times as long as cal says,
// and so also meets the one instant in a hundred that cal's margin leaves late: in 30 runs each,
// alternating, at 1000 waits a second the median of lateness at p99 went from 30 us to 7 us. It
// returns cal unchanged if perSecond is 0 (unknown) or the host is busy.
func (cal Calibration) At(perSecond float64) Calibration {
	if perSecond <= 0 || cal.Margin != cal.P99 {
		return cal
	}
	wide := min(widest*cal.P99, marginCap, int64(spinShare/perSecond*1e9))
	if wide <= cal.Margin {
		return cal
	}
	cal.Margin = wide
	if cal.Spin {
		cal.Why = fmt.Sprintf("spins the last %v, more than the 99th percentile of the sleep's overshoot (%v), as %.0f waits a second can afford; %s",
			rounded(wide), rounded(cal.P99), perSecond, cal.free)
	}
	return cal
}

// Read returns the calibration of a run that read its instants from c until stop, which it calls: with
// the cost of these readings.
func (cal Calibration) Read(c *Clock, stop func() Followed) Calibration {
	if cal.Samples == 0 {
		stop()
		return cal
	}
	cost := clockCost(c)
	switch f := stop(); {
	case f.Lost != "":
		cal.ClockRead, cal.ClockWithinNS = f.Counter+", then CLOCK_MONOTONIC", f.BoundNS
	case f.Counter != "":
		cal.ClockRead, cal.ClockWithinNS, cal.ClockCostNS = f.Counter, f.BoundNS, cost
	}
	return cal
}

// overshoots measures how late sleeps end, on a locked thread; first selects real-time priority. It
// returns at least one sample.
func overshoots(c *Clock, first bool) ([]int64, error) {
	lock := lockThread
	if first {
		_, unlock, err := lockFirst()
		if err != nil {
			return nil, err
		}
		lock = func() func() { return unlock }
	}
	defer lock()()
	over := make([]int64, 0, calibrationSamples)
	now := c.Now()
	end := now + int64(calibrationLimit)
	for i := int64(0); len(over) < cap(over) && (len(over) == 0 || now < end); i++ {
		// Durations that cover the range out of step with the kernel's tick.
		t := now + shortestSleep + i*61_803%sleepSpread
		now = nap(c, t, now)
		over = append(over, max(0, now-t))
	}
	return over, nil
}

// clockCost returns the cost of one reading in ns: the best of several rounds, since interruptions
// are not the clock's cost.
func clockCost(c *Clock) float64 {
	const rounds, each = 10, 5000
	best := int64(1 << 62)
	for range rounds {
		start := c.Now()
		for range each - 1 {
			c.Now()
		}
		best = min(best, c.Now()-start)
	}
	return float64(best) / each
}

// rank returns the value of rank ceil(permille/1000 n) of sorted values.
func rank(sorted []int64, permille int) int64 {
	n := len(sorted)
	return sorted[max(1, (n*permille+999)/1000)-1]
}
