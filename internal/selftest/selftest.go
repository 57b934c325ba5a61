// Package selftest tests the instrument against systems with known true figures, and measures what the
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
package selftest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"

	"github.com/weirmq/weir/internal/pace"
)

// Options controls how much is measured.
type Options struct {
	// Scale shortens the runs: 1 takes about 90 s, 0.2 about 20 s; 0 means 1. Below 0.1 there are too few
	// samples to support any tail.
	Scale float64
	// Log receives the log of the simulated systems' drivers; may be nil.
	Log *slog.Logger
	// OnCheck is called with each completed check, from one goroutine at a time; it may be nil.
	OnCheck func(Check)
	// Runs is how many runs Quote does under each disturbance; 0 leaves them out.
	Runs int
	// Self is the path of weir's own binary, which Quote and the check of kernel instants start.
	Self string
	// Only names the parts to do; nil: all.
	Only []string
	// OnQuoting is called with what came of each disturbance; it may be nil.
	OnQuoting func(Quoting)
}

// Wants reports whether a part is to be done.
func (o *Options) Wants(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }

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
	Part string `json:"part"` // the group of checks that it belongs to
	Name string `json:"name"`
	What string `json:"what"` // one sentence
	Pass bool   `json:"pass"`
	Why  string `json:"why,omitempty"` // why it did not pass
	// NotRun is what this host lacks for the check, which then counts as passed.
	NotRun string `json:"not_run,omitempty"`
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
	Runs        Unit = "runs" // simulated runs, or comparisons of them
)

// A Row compares one figure.
type Row struct {
	What      string `json:"what"` // "response p99"
	Unit      Unit   `json:"unit"`
	Want      int64  `json:"want"`
	Got       int64  `json:"got"`
	Tolerance int64  `json:"tolerance"` // in either direction; of runs downwards
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

// The parts of a calibration, in the order in which they run. All but the first and the last are checks.
const (
	PartFigures   = "figures"   // cost and punctuality
	PartQueue     = "queue"     // M/M/1
	PartStall     = "stall"     // systems that freeze or slow down
	PartFaults    = "faults"    // planted ones
	PartCapacity  = "capacity"  // searches
	PartClock     = "clock"     // the processor's counter
	PartKernel    = "kernel"    // kernel instants
	PartIntervals = "intervals" // coverage
	PartCompare   = "compare"   // false and missed differences
	PartQuoted    = "quoted"    // whole runs on a disturbed host
)

// Parts returns the names of the parts in order.
func Parts() []string {
	return []string{PartFigures, PartQueue, PartStall, PartFaults, PartCapacity, PartClock, PartKernel, PartIntervals, PartCompare, PartQuoted}
}

// A checker does one check of a part.
type checker struct {
	part string
	do   func(context.Context) (Check, error)
}

// checkers returns the checks in the order in which they run, and those that only count, which run beside them.
func checkers(o Options) (inTurn, beside []checker) {
	cal := pace.Calibrate(2) // a pacer and the simulated system's thread
	timed := func(part string, f func(context.Context, Options, pace.Calibration) (Check, error)) checker {
		return checker{part, func(ctx context.Context) (Check, error) { return f(ctx, o, cal) }}
	}
	plain := func(part string, f func(context.Context, Options) (Check, error)) checker {
		return checker{part, func(ctx context.Context) (Check, error) { return f(ctx, o) }}
	}
	inTurn = []checker{
		{PartQueue, closedForm},
		timed(PartQueue, queueing), timed(PartStall, stall), timed(PartStall, stallBehind),
		timed(PartStall, slowdown), plain(PartClock, counterError), plain(PartKernel, kernelInstants),
	}
	for _, c := range ceilings() { // after the timed checks, which these and the next would disturb
		inTurn = append(inTurn, checker{PartCapacity, c.check})
	}
	inTurn = append(inTurn, plain(PartIntervals, intervals), plain(PartCompare, differences))
	for _, p := range plantings() {
		beside = append(beside, plain(PartFaults, p.check))
	}
	return inTurn, beside
}

// Checks runs the checks of the chosen parts. Timed checks run one after another, so that they do not
// disturb each other; those that only count run beside them. It takes about 90 s at scale 1. The error is
// ctx's when it ends, or that of a run that failed entirely; the checks completed so far are returned with
// it, in the order of Parts.
func Checks(ctx context.Context, o Options) ([]Check, error) {
	o = o.defaults()
	var mu sync.Mutex
	var checks []Check
	var failed error
	run := func(all []checker) {
		for _, j := range all {
			if !o.Wants(j.part) || ctx.Err() != nil {
				continue
			}
			c, err := j.do(ctx)
			c.Part = j.part
			mu.Lock()
			switch {
			case err == nil:
				checks = append(checks, c)
				if o.OnCheck != nil {
					o.OnCheck(c)
				}
			case failed == nil:
				failed = err
			}
			mu.Unlock()
		}
	}
	inTurn, beside := checkers(o)
	var all sync.WaitGroup
	all.Go(func() { run(beside) })
	run(inTurn)
	all.Wait()
	slices.SortStableFunc(checks, func(a, b Check) int {
		return cmp.Compare(slices.Index(Parts(), a.Part), slices.Index(Parts(), b.Part))
	})
	if failed == nil {
		failed = ctx.Err()
	}
	return checks, failed
}

// Passed reports whether every check passed.
func Passed(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.Pass })
}

// notRun returns a check for which the host lacks something.
func notRun(name, what string, lacks error) Check {
	return Check{Name: name, What: what, Pass: true, NotRun: lacks.Error()}
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

// ofRuns returns a row for how many of all runs are right, of which some may be wrong.
func ofRuns(what string, all, right, mayBeWrong int) Row {
	return Row{What: what, Unit: Runs, Want: int64(all), Got: int64(right), Tolerance: int64(mayBeWrong), OK: all-right <= mayBeWrong, Says: true, Waiting: -1}
}

func clip(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
