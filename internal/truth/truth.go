// Package truth tests the instrument against systems with known true figures, and
// measures what the instrument costs on this host.
//
// Checks runs the engine, exactly as a run does, against stand-in systems
// written for this: one that freezes, one that slows down, a queue with one
// server (M/M/1), and queues that lose, duplicate, swap and corrupt messages on
// purpose. The stand-ins decide beforehand when each message departs, or
// which ones they lose. So the truth is a computation and not another
// measurement. Figures are what `weir calibrate` prints beside: the clock, the
// waking up, the host's hiccups, the ceiling and the lateness with the driver
// noop.
//
// # What a comparison allows
//
// A reported value may lie below the true one by 3 % and above it by 3 % and by
// what the host did: the stand-in notes for each message when it took it and
// when it really answered, and the same percentile of those, less that of the
// truth, is how much the generator's lateness and the stand-in's own tardiness
// have moved it. Nothing in these systems answers earlier because a message
// came later, so that the host can only add. Where the host moved a percentile
// that the sample supports so far that the comparison would say nothing, the
// test is repeated, and fails after the third time: a host too slow to tell is
// no proof of anything.
package truth

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/weirmq/weir/internal/pace"
)

// Options says how much is measured.
type Options struct {
	// Scale shortens the runs in real time: 1 takes about 30 s, 0.2 about 7 s;
	// 0 is 1. Below 0.1 the samples are too few to support any tail.
	Scale float64
	// Log takes what the stand-ins' drivers say; nil: nothing.
	Log *slog.Logger
	// OnCheck is called with each check as it is done, from one goroutine at a
	// time; it may be nil.
	OnCheck func(Check)
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
	Why  string `json:"why,omitempty"` // it did not pass
	// Unclear: it did not pass because the host was too slow to tell, every
	// time it was tried. It proves nothing, either way.
	Unclear  bool   `json:"unclear,omitempty"`
	Attempts int    `json:"attempts"` // runs it took; more than one: the host was too slow to tell before
	Samples  uint64 `json:"samples"`  // messages compared
	Rows     []Row  `json:"rows"`

	// What the host did while the check ran, in its last attempt: nil where no
	// instant is compared.
	Lateness  *Spread `json:"lateness,omitempty"`  // of the generator
	Tardiness *Spread `json:"tardiness,omitempty"` // of the stand-in: answer less intended departure
}

// A Spread is a distribution in a few figures, in ns.
type Spread struct {
	P50  int64 `json:"p50_ns"`
	P99  int64 `json:"p99_ns"`
	P999 int64 `json:"p999_ns"`
	Max  int64 `json:"max_ns"`
}

// Unit is what a Row counts.
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
	Tolerance int64  `json:"tolerance"` // either way
	// More of it upwards: what the host added in this run. Of what was blocked also
	// downwards: what was late instead.
	Host int64 `json:"host"`
	OK   bool  `json:"ok"`
	// Says is false where Host is so large that OK says nothing.
	Says bool `json:"says"`
	// Waiting is what a generator that waits for each answer would have
	// reported, where that is the point of the row; -1 elsewhere.
	Waiting int64 `json:"waiting"`
}

// attempts is how often a check may be repeated when the host was too slow.
const attempts = 3

// Checks runs all checks and returns them in a fixed order. Those of time run
// one after the other, so that they do not disturb each other; those that only
// count run beside the first. It takes about 30 s at scale 1. The error is ctx's
// when it ends, or that of a run which did not work at all; the checks done so
// far are returned with it.
func Checks(ctx context.Context, o Options) ([]Check, error) {
	o = o.defaults()
	cal := pace.Calibrate(2) // a lane and the stand-in's thread
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
	for i, c := range searched { // after those of time, which they would disturb
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

// repeat runs one until it says something, at most attempts times. A check that
// said something wrong is not tried again.
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

// judge sets Pass and Why from the rows, and reports whether they say anything.
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

// exactly is a row of a count.
func exactly(what string, want, got uint64) Row {
	return Row{What: what, Unit: Messages, Want: clip(want), Got: clip(got), OK: want == got, Says: true, Waiting: -1}
}

func clip(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
