// Package truth tests the instrument against systems with known true figures, and measures what the
// instrument costs on this host.
//
// Checks runs the engine, exactly as a run does, against simulated systems: one that freezes, one that
// slows down, a queue with one server (M/M/1), and queues that lose, duplicate, swap and corrupt
// messages on purpose. These systems determine in advance when each message departs, or which ones
// they lose, so that the truth is computed rather than measured. Figures are what `weir calibrate`
// prints in addition: the clock, wake-up delays, the host's scheduling stalls, and the ceiling and
// lateness with the driver noop.
//
// # What a comparison allows
//
// A reported value may be 3 % below the true one. It may be 3 % above it, plus what the host added:
// the simulated system records for each message when it took it and when it really answered, and the
// difference between the same percentile of those times and of the truth is how much the generator's
// lateness and the system's own tardiness moved it. These systems never answer earlier because a
// message came later, so that the host can only add. If the host moved a percentile that the sample
// supports so far that the comparison would be inconclusive, the test is repeated, and fails after the
// third attempt: a host too slow to tell proves nothing.
package truth

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/weirmq/weir/internal/pace"
)

// Options controls how much is measured.
type Options struct {
	// Scale shortens the runs: 1 takes about 30 s, 0.2 about 7 s; 0 means 1. Below 0.1 there are too few
	// samples to support any tail.
	Scale float64
	// Log receives the log of the simulated systems' drivers; may be nil.
	Log *slog.Logger
	// OnCheck is called with each completed check, from one goroutine at a time; it may be nil.
	OnCheck func(Check)
	// Runs is how many runs Quote does under each disturbance; 0 leaves them out.
	Runs int
	// Self is the path of weir's own binary, which Quote starts.
	Self string
	// OnQuoting is called with what came of each disturbance; it may be nil.
	OnQuoting func(Quoting)
}

func (o Options) defaults() Options {
	if o.Scale <= 0 {
		o.Scale = 1
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Check is one comparison of the instrument with the truth.
type Check struct {
	Name string `json:"name"`
	What string `json:"what"` // one sentence
	Pass bool   `json:"pass"`
	Why  string `json:"why,omitempty"` // why it did not pass
	// Unclear means that it did not pass because the host was too slow to tell in every attempt. It proves
	// nothing either way.
	Unclear  bool   `json:"unclear,omitempty"`
	Attempts int    `json:"attempts"` // number of runs; more than one: the host was too slow to tell before
	Samples  uint64 `json:"samples"`  // messages compared
	Rows     []Row  `json:"rows"`

	// What the host did during the last attempt of the check; nil if no instants are compared.
	Lateness  *Spread `json:"lateness,omitempty"`  // of the generator
	Tardiness *Spread `json:"tardiness,omitempty"` // of the simulated system: answer minus intended departure
}

// A Spread summarizes a distribution, in ns.
type Spread struct {
	P50  int64 `json:"p50_ns"`
	P99  int64 `json:"p99_ns"`
	P999 int64 `json:"p999_ns"`
	Max  int64 `json:"max_ns"`
}

// Unit is the unit of a Row's figures.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	Messages    Unit = "messages"
)

// A Row compares one figure.
type Row struct {
	What      string `json:"what"` // "response p99"
	Unit      Unit   `json:"unit"`
	Want      int64  `json:"want"`
	Got       int64  `json:"got"`
	Tolerance int64  `json:"tolerance"` // in either direction
	// Host is additional upward tolerance: what the host added in this run. For blocked time it also
	// applies downwards: what was late instead.
	Host int64 `json:"host"`
	OK   bool  `json:"ok"`
	// Says is false if Host is so large that OK is inconclusive.
	Says bool `json:"says"`
	// Waiting is what a generator that waits for each answer would have reported, if that is the point of
	// the row; otherwise -1.
	Waiting int64 `json:"waiting"`
}

// attempts is how often a check may run when the host is too slow.
const attempts = 3

// Checks runs all checks and returns them in a fixed order. Timed checks run one after another, so
// that they do not disturb each other; those that only count run beside the first. It takes about 30 s
// at scale 1. The error is ctx's when it ends, or that of a run that failed entirely; the checks
// completed so far are returned with it.
func Checks(ctx context.Context, o Options) ([]Check, error) {
	o = o.defaults()
	cal := pace.Calibrate(2) // a pacer and the simulated system's thread
	timed := []func(context.Context, Options, pace.Calibration) (Check, error){stall, stallBehind, slowdown, queueing}
	counted, searched := plantings(), ceilings()

	type slot struct {
		check Check
		err   error
		ran   bool
	}
	slots := make([]slot, 1+len(timed)+len(counted)+len(searched))
	var told sync.Mutex
	run := func(i int, f func() (Check, error)) {
		s := &slots[i]
		if s.err = ctx.Err(); s.err != nil {
			return
		}
		s.check, s.err = f()
		s.ran = s.err == nil
		if s.ran && o.OnCheck != nil {
			told.Lock()
			defer told.Unlock()
			o.OnCheck(s.check)
		}
	}
	run(0, func() (Check, error) { return closedForm(ctx) })
	var beside sync.WaitGroup
	for i, p := range counted {
		beside.Go(func() { run(1+len(timed)+i, func() (Check, error) { return p.check(ctx, o) }) })
	}
	for i, f := range timed {
		run(1+i, func() (Check, error) { return f(ctx, o, cal) })
	}
	beside.Wait()
	for i, c := range searched { // after the timed checks, which they would disturb
		run(1+len(timed)+len(counted)+i, func() (Check, error) { return c.check(ctx) })
	}

	var checks []Check
	var err error
	for _, s := range slots {
		if s.ran {
			checks = append(checks, s.check)
		}
		if s.err != nil && err == nil {
			err = s.err
		}
	}
	return checks, err
}

// Passed reports whether every check passed.
func Passed(checks []Check) bool {
	for _, c := range checks {
		if !c.Pass {
			return false
		}
	}
	return len(checks) > 0
}

// repeat runs a check until it is conclusive, at most attempts times. It does not retry a conclusive
// failure.
func repeat(ctx context.Context, one func() (Check, error)) (Check, error) {
	for n := 1; ; n++ {
		c, err := one()
		if err != nil {
			return c, err
		}
		c.Attempts = n
		says := c.judge()
		if says || n == attempts {
			return c, nil
		}
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
	}
}

// judge sets Pass and Why from the rows, and reports whether they are conclusive.
func (c *Check) judge() (says bool) {
	c.Pass, c.Why, c.Unclear = true, "", false
	for _, r := range c.Rows {
		if !r.OK {
			c.Pass = false
			c.Why = fmt.Sprintf("%s is %d %s, the truth is %d", r.What, r.Got, r.Unit, r.Want)
			return true
		}
	}
	for _, r := range c.Rows {
		if !r.Says {
			c.Pass, c.Unclear = false, true
			c.Why = fmt.Sprintf("the host was too slow to tell: it alone moved %s by %d %s, the truth being %d", r.What, r.Host, r.Unit, r.Want)
			return false
		}
	}
	return true
}

// exactly returns a row for a count.
func exactly(what string, want, got uint64) Row {
	return Row{What: what, Unit: Messages, Want: clip(want), Got: clip(got), OK: want == got, Says: true, Waiting: -1}
}

func clip(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
