// Package drivertest is the conformance suite: it tests the contract of package driver with a
// driver and, except for in-process ones, a real system. A driver's test is one call to Run.
//
// Every check has a name, begins its failures with the sentence of the contract that it tests,
// bounds every wait, and cleans up. A check does not apply if the driver does not declare its
// capability; any other exception is a waiver with its reason in the harness. A waived check that
// passes fails, so that waivers do not outlive their cause. The suite is itself tested: for every
// check there is a driver that is broken in that one respect and fails that one check.
package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// A Harness describes the system at hand to the suite.
type Harness struct {
	// Options are set on the driver's Config, by SetOption, before every Open: at least "address".
	// If the Config is driver.Narrowed, the suite tests the capabilities with these options.
	Options map[string][]string

	// At are the addresses of the servers, as host:port that clients reach. If set, the leaders
	// that the driver names must be among them: a fault that targets the leader finds its node that
	// way.
	At []string

	// Waive names checks that this driver or this system cannot pass, each with the reason. They
	// are run all the same, and must fail.
	Waive map[string]string

	// Cut breaks every client connection to the system, which is reachable again, at the same
	// address, when Cut returns or soon after: restart it, or drop the connections at a proxy. If
	// nil, LostConnectionReported needs a waiver, and is not run.
	Cut func() error

	// Stall makes the system stop reading from its connections until resume is called: a stopped
	// process, or a proxy that stopped copying. If nil, PublishDoesNotBlock and CancelUnblocks only
	// fill the system's buffers, and BacklogIsAsked needs a waiver.
	Stall func() (resume func(), err error)

	// Hold makes one destination of a run confirm nothing until release is called, while the system
	// continues with the others: for example by suspending a process of the server. If nil, because
	// the system or the client has no such state, StalledDestination does not apply.
	Hold func(run, destination string) (release func(), err error)

	// Kill kills every server at once, without a clean shutdown. start starts them again, with
	// their stored data, and returns when they answer. If nil, KilledServer does not apply.
	Kill func() (start func() error)

	// Existing returns the name by which a run with driver.Run.Existing uses a destination of
	// another run; that name with a hyphen and a suffix must not exist. If nil, the check of that
	// name does not apply.
	Existing func(run, destination string) string

	// Allocs is the maximum number of allocations for a message that is sent, delivered and
	// settled: those of the client library, and few more. 0: AllocBudget does not apply.
	Allocs float64

	// DeadTwice is why the system may move a message to the dead letters more than once; "": it
	// does not.
	DeadTwice string

	// Offset returns the offset, as ConsumerSpec.From takes it, of the n-th message (from 0) that
	// was sent to a destination of one partition of a run. It is required if positions by offset
	// are declared.
	Offset func(run, destination string, n int) (string, error)

	// Yields is the maximum number of messages that one call of the client library yields: 0 means
	// 1, and Prefetch as many as requested.
	Yields int

	// Nodes is how many servers form the system; 0 means 1.
	Nodes int

	// Quiet is how long the suite waits before it concludes that nothing more arrives; 0 is 200 ms.
	// Every other wait ends as soon as possible, and fails after a minute: a host may be slow.
	Quiet time.Duration

	// Goroutines names functions (as for goleak.IgnoreAnyFunction) whose goroutines are not leaks:
	// they belong to a system inside the test process, or a client library leaves them behind and
	// cannot be told not to, as the driver's page says.
	Goroutines []string

	// Expect is how many checks must run, without waived ones, so that a suite that silently stops
	// applying does not pass. 0: any.
	Expect int
}

// patience bounds every wait.
const patience = 60 * time.Second

// openPatience bounds how long a driver may take to detect that no server answers.
const openPatience = 5 * time.Second

// A check is one test of the suite.
type check struct {
	name string
	rule string // the sentence of the contract; failures begin with it
	// lacks returns the capability that the driver must declare for the check to apply; "" if it
	// applies.
	lacks func(driver.Definition) string
	// without returns what the harness lacks for the check to apply; "" if it applies.
	without func(*Harness) string
	// needs returns what the harness lacks to run it; "" if it can be run.
	needs func(*Harness) string
	run   func(*env)
}

// checks returns the suite, in the order of running. CapabilitiesTrue is the last, because it looks
// at the results of the others.
func checks() []check {
	return slices.Concat(setupChecks(), produceChecks(), consumeChecks(), yieldChecks(), settleChecks(), backlogChecks(), replayChecks(), requestChecks(), budgetChecks(), lifeChecks(), []check{capabilitiesTrue()})
}

// Names returns the names of all checks in the order of running.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// A status is the outcome of a check.
type status uint8

const (
	passed status = iota
	failed
	waived
	inapplicable
)

// A verdict is the outcome of one check, with its reason.
type verdict struct {
	name   string
	status status
	lines  []string // the failures, or the one reason
}

// A suite is one driver under test.
type suite struct {
	def  driver.Definition
	h    Harness
	seen map[string]status          // outcome of the checks so far
	mine func(function string) bool // whether a function is the driver's

	mu       sync.Mutex
	reported map[string]bool // long errors of the checks so far
}

// newSuite returns a suite for what the driver can do with the harness's options.
func newSuite(def driver.Definition, h Harness) *suite {
	if h.Quiet == 0 {
		h.Quiet = 200 * time.Millisecond
	}
	h.Nodes = max(h.Nodes, 1)
	s := &suite{def: def, h: h, seen: map[string]status{}, mine: driversOwn(def), reported: map[string]bool{}}
	if cfg, err := s.config(nil); err == nil { // otherwise every check reports the error
		s.def.Capabilities = def.Capabilities.With(cfg)
	}
	return s
}

// config returns the driver's settings with the harness's options and then those of more.
func (s *suite) config(more map[string][]string) (driver.Config, error) {
	cfg := s.def.New()
	for _, options := range []map[string][]string{s.h.Options, more} {
		for name, values := range options {
			if err := driver.SetOption(cfg, name, values...); err != nil {
				return nil, err
			}
		}
	}
	return cfg, nil
}

// faults returns the errors in the harness.
func (s *suite) faults() []string {
	var fs []string
	names := Names()
	for name, why := range s.h.Waive {
		if !slices.Contains(names, name) {
			fs = append(fs, fmt.Sprintf("waiver of %s: there is no such check (%s)", name, strings.Join(names, ", ")))
		}
		if strings.TrimSpace(why) == "" {
			fs = append(fs, fmt.Sprintf("waiver of %s: has no reason", name))
		}
	}
	slices.Sort(fs)
	return fs
}

func (s *suite) run(c check) verdict {
	v := s.judge(c)
	s.seen[c.name] = v.status
	return v
}

func (s *suite) judge(c check) verdict {
	why, isWaived := s.h.Waive[c.name]
	if c.lacks != nil {
		if lack := c.lacks(s.def); lack != "" {
			if isWaived {
				return verdict{c.name, failed, []string{"waived, but it does not apply: not declared: " + lack}}
			}
			return verdict{c.name, inapplicable, []string{"not declared: " + lack}}
		}
	}
	if c.without != nil {
		if lack := c.without(&s.h); lack != "" {
			if isWaived {
				return verdict{c.name, failed, []string{"waived, but it does not apply: the harness has no " + lack}}
			}
			return verdict{c.name, inapplicable, []string{"not declared: " + lack + " of the harness"}}
		}
	}
	if c.needs != nil {
		if need := c.needs(&s.h); need != "" {
			if !isWaived {
				return verdict{c.name, failed, []string{c.rule + ": not checked: the harness has no " + need + ", and no waiver says why"}}
			}
			return verdict{c.name, waived, []string{why}}
		}
	}
	r := &recorder{rule: c.rule}
	r.do(func() { c.run(newEnv(r, s)) })
	failures := r.take()
	switch {
	case isWaived && len(failures) == 0:
		return verdict{c.name, failed, []string{"waived (" + why + "), but it passes: remove the waiver"}}
	case isWaived:
		return verdict{c.name, waived, append([]string{why}, failures...)}
	case len(failures) > 0:
		return verdict{c.name, failed, failures}
	}
	return verdict{c.name, passed, nil}
}

// Run tests def against its contract, one subtest per check. It takes some seconds, and leaves
// nothing in the system.
func Run(t *testing.T, def driver.Definition, h Harness) {
	t.Helper()
	s := newSuite(def, h)
	for _, f := range s.faults() {
		t.Error(f)
	}
	reached, executed := 0, 0
	all := checks()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			reached++
			v := s.run(c)
			switch v.status {
			case passed:
				executed++
			case failed:
				executed++
				for _, l := range v.lines {
					t.Error(l)
				}
			case waived:
				t.Skip("waived: " + strings.Join(v.lines, "\n"))
			case inapplicable:
				t.Skip(v.lines[0])
			}
		})
	}
	// A run of selected subtests (go test -run) is not a suite.
	switch {
	case reached != len(all):
	case executed < h.Expect:
		t.Errorf("%d checks were run, %d were expected", executed, h.Expect)
	case executed > h.Expect:
		t.Logf("%d checks were run: set Expect to this number", executed)
	}
	s.recordTested(t)
}
