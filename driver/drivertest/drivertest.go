// Package drivertest is the conformance suite: what package driver promises to
// the engine, held against a driver and, for all but the in-process ones, a real
// system. A driver's test is one call to Run.
//
// Every check is named, begins its failures with the sentence of the contract
// that it checks, bounds every wait, and cleans up behind itself. A check does
// not apply only where the driver does not declare the capability it is about;
// any other exception is a waiver with its reason in the harness, and a waived
// check that passes fails, so that waivers do not outlive their cause. The suite
// is itself tested: for every check there is a driver that is broken in that one
// respect and fails that one check.
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

// A Harness is what the suite has to know of the system at hand.
type Harness struct {
	// Options are set on the driver's Config, by SetOption, before every Open:
	// "address" to begin with.
	Options map[string][]string

	// At are the ports of the servers, each as host:port that clients reach. Where they are
	// given, the leaders that the driver names must be among them: a fault that seeks the
	// leader finds its node by that.
	At []string

	// Waive names checks that this driver or this system cannot pass, each with
	// the reason. They are run all the same, and fail when they pass.
	Waive map[string]string

	// Cut breaks every client connection to the system, which is reachable
	// again, at the same address, when Cut returns or soon after: restart it,
	// or drop the connections at a proxy. Where it is nil,
	// LostConnectionReported needs a waiver, and is not run.
	Cut func() error

	// Stall makes the system stop reading from its connections until resume is
	// called: a stopped process, a proxy that stopped copying. Where it is nil,
	// PublishDoesNotBlock and CancelUnblocks only fill the system's buffers, and
	// BacklogIsAsked needs a waiver.
	Stall func() (resume func(), err error)

	// Hold makes one destination of a run confirm nothing until release is called, while
	// the system goes on with the others: a process of the server that is suspended. Where
	// it is nil, because the system or the client knows no such state, StalledDestination
	// does not apply.
	Hold func(run, destination string) (release func(), err error)

	// Kill ends every server at once, and nothing is put in order first. start starts them
	// again, with what they stored, and returns when they answer. Where it is nil,
	// KilledServer does not apply.
	Kill func() (start func() error)

	// Existing returns the name by which a run with driver.Run.Existing uses a destination of
	// another run; one with a hyphen and more behind it does not exist. Where it is nil, the
	// check of that name does not apply.
	Existing func(run, destination string) string

	// Allocs is the most allocations of a message that is sent, delivered and settled: those
	// of the client library, and few more. 0: AllocBudget does not apply.
	Allocs float64

	// DeadTwice is why the system may move a message to the dead letters more than
	// once; "": it does not.
	DeadTwice string

	// Offset returns the offset, as ConsumerSpec.From takes it, of the n-th
	// message (from 0) that was sent to a destination of one partition of a run.
	// It is needed where positions by offset are declared.
	Offset func(run, destination string, n int) (string, error)

	// Yields is the most messages that one call of the client library yields: 0 is
	// read as 1, and Prefetch says as many as it was asked for.
	Yields int

	// Nodes is how many servers form the system; 0 is read as 1.
	Nodes int

	// Quiet is how long the suite waits before it believes that nothing more
	// arrives; 0 is 200 ms. Every other wait ends as soon as it is over, and
	// fails after a minute: a host may be slow.
	Quiet time.Duration

	// Goroutines names functions (as goleak.IgnoreAnyFunction takes them). Their
	// goroutines belong to a system inside the test process, or a client library leaves them
	// at its end and cannot be told not to, as the driver's page says. They are not a leak.
	Goroutines []string

	// Expect is how many checks must have been run, waived ones not counted, so
	// that a suite which silently stopped to apply does not pass. 0: any.
	Expect int
}

// patience bounds every wait.
const patience = 60 * time.Second

// openPatience bounds how long a driver may take to find that no server answers.
const openPatience = 5 * time.Second

// A check is one test of the suite.
type check struct {
	name string
	rule string // the sentence of the contract; failures begin with it
	// lacks returns the capability that the driver would have to declare for
	// the check to apply; "" when it applies.
	lacks func(driver.Definition) string
	// without returns what the harness lacks for the check to apply; "" when it applies.
	without func(*Harness) string
	// needs returns what the harness lacks to run it; "" when it can be run.
	needs func(*Harness) string
	run   func(*env)
}

// checks is the suite, in the order of running. CapabilitiesTrue is the last,
// because it looks at what became of the others.
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

// A status is what became of a check.
type status uint8

const (
	passed status = iota
	failed
	waived
	inapplicable
)

// A verdict is what became of one check, and why.
type verdict struct {
	name   string
	status status
	lines  []string // the failures, or the one reason
}

// A suite is one driver under test.
type suite struct {
	def  driver.Definition
	h    Harness
	seen map[string]status          // what became of the checks so far
	mine func(function string) bool // whether a function is the driver's

	mu   sync.Mutex
	told map[string]bool // long errors of the checks so far
}

func newSuite(def driver.Definition, h Harness) *suite {
	if h.Quiet == 0 {
		h.Quiet = 200 * time.Millisecond
	}
	h.Nodes = max(h.Nodes, 1)
	return &suite{def: def, h: h, seen: map[string]status{}, mine: driversOwn(def), told: map[string]bool{}}
}

// faults returns what is wrong with the harness.
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

// Run holds def to its contract, one subtest a check. It takes some seconds, and
// leaves nothing in the system.
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
	// A run of chosen subtests (go test -run) is not a suite.
	if reached == len(all) && executed < h.Expect {
		t.Errorf("%d checks were run, %d were expected", executed, h.Expect)
	}
	s.recordTested(t)
}
