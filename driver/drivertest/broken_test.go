package drivertest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modest declares the minimum for a driver with a consumer side.
func modest(c *driver.Capabilities) {
	c.Partitions, c.Replicas, c.Keys, c.Batch, c.Subscriptions, c.Competing = false, false, false, false, false, false
	c.Nack, c.DeadLetters = false, false
	c.SettleConfirmed, c.Requests, c.Retains, c.Ordering, c.MaxPayload = false, false, false, driver.Unordered, 0
	c.Settle, c.Replays, c.Resumes = []driver.Settle{driver.SettleAuto}, nil, false
}

// mute declares no consumer side.
func mute(c *driver.Capabilities) {
	modest(c)
	c.Consume, c.Settle = false, nil
}

// forgetful does not declare resuming, which these faults break too.
func forgetful(c *driver.Capabilities) { c.Resumes, c.DeadLetters = false, false }

func blocking(c *driver.Capabilities) { c.PublishBlocks = true }

// try runs the suite over a memory with the fault, in virtual time, and returns
// the verdicts.
func try(t *testing.T, fault string, change func(*driver.Capabilities), adjust func(*Harness)) []verdict {
	t.Helper()
	var vs []verdict
	synctest.Test(t, func(t *testing.T) {
		caps := memCapabilities()
		if change != nil {
			change(&caps)
		}
		m := newMemory(fault, caps)
		defer close(m.released)
		h := m.harness()
		if adjust != nil {
			adjust(&h)
		}
		s := newSuite(m.definition(), h)
		s.mine = func(function string) bool { return strings.Contains(function, "drivertest.(*memConsumer).") }
		if fs := s.faults(); len(fs) > 0 {
			t.Errorf("the harness is faulty: %v", fs)
		}
		for _, c := range checks() {
			vs = append(vs, s.run(c))
		}
	})
	return vs
}

// failures returns the names of the checks that failed, and all of their text.
func failures(vs []verdict) (names []string, text string) {
	for _, v := range vs {
		if v.status == failed {
			names = append(names, v.name)
			text += v.name + ": " + strings.Join(v.lines, "\n\t") + "\n"
		}
	}
	return names, text
}

func TestSoundDriversPassTheSuite(t *testing.T) {
	for name, change := range map[string]func(*driver.Capabilities){
		"with every capability":  nil,
		"with few capabilities":  modest,
		"with no consumer side":  mute,
		"whose Publish blocks":   blocking,
		"with order per key":     func(c *driver.Capabilities) { c.Ordering = driver.PerKey },
		"ordered by partition":   func(c *driver.Capabilities) { c.Ordering = driver.PerPartition },
		"that acknowledges each": func(c *driver.Capabilities) { c.Settle = c.Settle[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			vs := try(t, "", change, nil)
			if _, text := failures(vs); text != "" {
				t.Error(text)
			}
			for _, v := range vs {
				if name == "with every capability" && v.status != passed {
					t.Errorf("%s was not run: %v", v.name, v.lines)
				}
			}
		})
	}
}

// The driver allocates more than the payloads, but in pieces smaller than any of them, as a driver
// that polls does.
func TestSmallPiecesAreNotCopies(t *testing.T) {
	if _, text := failures(try(t, "allocates in small pieces", nil, nil)); text != "" {
		t.Error(text)
	}
}

// broken has one fault per line: each fails the check that it is listed under, and no other.
var broken = []struct {
	check, fault string
	change       func(*driver.Capabilities)
}{
	{"OpenClose", "lives as long as Open's context", nil},
	{"OpenClose", "cannot close", nil},
	{"OpenUnreachable", "connects lazily", nil},
	{"OpenUnreachable", "takes ages to find nobody", nil},
	{"OpenUnreachable", "calls the unreachable by another name", nil},
	{"ConfigStrict", "every Config is the same", nil},
	{"ConfigStrict", "an option has no help", nil},
	{"ConfigStrict", "the defaults are not valid", nil},
	{"DeclareTwice", "declares only once", nil},
	{"DeleteTwice", "deletes only once", nil},
	{"GuaranteeDeclared", "guarantees what it does not declare", nil},
	{"GuaranteeDeclared", "guarantees nothing", nil},
	{"GuaranteeDeclared", "has no version", nil},
	{"RoundTripBytes", "ends payloads at a zero", nil},
	{"RoundTripBytes", "cuts at 65,535 bytes", nil},
	{"TooLarge", "swallows what is too large", nil},
	{"TooLarge", "calls the too large by another name", nil},
	{"ExactlyOneCompletion", "completes some twice", nil},
	{"ExactlyOneCompletion", "forgets to complete one", nil},
	{"NoTouchAfterComplete", "sends the caller's bytes", nil},
	{"PublishDoesNotBlock", "blocks undeclared", nil},
	{"GuaranteeDeclared", "tells no leader", nil},
	{"StalledDestination", "waits behind a destination that stands still", nil},
	{"FlushMeansAll", "flushes too early", nil},
	{"CloseCompletesAll", "abandons at Close", nil},
	{"CloseCompletesAll", "closes with errors of its own", nil},
	{"CloseCompletesAll", "closes only once", nil},
	{"CancelUnblocks", "returns the context's error from Run", nil},
	{"CancelUnblocks", "waits for room for ever", blocking},
	{"CancelUnblocks", "hides why it stopped", blocking},
	{"BatchEqualsSingles", "turns batches round", nil},
	{"BatchEqualsSingles", "drops the last of a batch", nil},
	{"DeliveryStableUntilReturn", "reuses the buffer too early", nil},
	{"GroupSplits", "gives every consumer everything", func(c *driver.Capabilities) { c.Replays = nil }},
	{"GroupsEachGetAll", "has one subscription", nil},
	{"Order", "lets one overtake", nil},
	{"Ready", "is ready too early", nil},
	{"Ready", "is ready twice", nil},
	{"Retains", "keeps nothing before Run", nil},
	{"Sources", "takes every destination for its first", nil},
	{"DeliversEachYield", "gathers what several calls yield", nil},
	{"DeliversUncopied", "copies before it delivers", nil},
	{"DeliversUncopied", "copies before it delivers", modest},
	{"NackRedelivers", "takes a nack for an ack", forgetful},
	{"DeadLetters", "drops dead letters", nil},
	{"DeadLetters", "delivers again for ever", nil},
	{"SettledNotRedelivered", "forgets the last acknowledgements", forgetful},
	{"SettleConfirmed", "never reports settlement", nil},
	{"SettleConfirmed", "reports settlement twice", nil},
	{"SettleConfirmed", "loses the token", nil},
	{"SettleConfirmed", "fails to settle", nil},
	{"BacklogCounts", "does not say what is left", func(c *driver.Capabilities) { c.Requests = false }},
	{"BacklogCounts", "says that nothing is left", nil},
	{"BacklogIsAsked", "answers for a system that stands still", nil},
	{"BacklogIsAsked", "says in its own words that it was not answered", nil},
	{"Replays", "begins at the start, wherever it should", nil},
	{"Replays", "takes the offset for that of the last it had", nil},
	{"Replays", "takes any text for an offset", nil},
	{"Replays", "begins again wherever the next consumer should", nil},
	{"Resumes", "forgets a subscription that nobody consumes", nil},
	{"RequestReply", "cuts replies at 1,000 bytes", nil},
	{"RequestReply", "completes requests twice", nil},
	{"RequestReply", "flushes requests too early", nil},
	{"RequestReply", "lets every responder answer", nil},
	{"RequestRefused", "answers what was refused", nil},
	{"RequestUnanswered", "waits for a reply for ever", nil},
	{"RequestUnanswered", "takes no reply for one", nil},
	{"RequestClose", "abandons requests at Close", nil},
	{"RequestClose", "closes requests with errors of its own", nil},
	{"RequestLost", "forgets requests when cut", nil},
	{"LostConnectionReported", "reconnects in silence", nil},
	{"LostConnectionReported", "does not say whose connection is back", nil},
	{"LostConnectionReported", "forgets what was under way when cut", nil},
	{"AllocBudget", "allocates for each message", nil},
	{"KilledServer", "confirms without a server", nil},
	{"KilledServer", "tells facts of servers that are gone", nil},
	{"KilledServer", "forgets what it confirmed", nil},
	{"Existing", "finds out late what is missing", nil},
	{"Existing", "takes away what it found", nil},
	{"RunsIsolated", "names without the run", nil},
	{"RunsIsolated", "deletes for everybody", nil},
	{"LeavesNothing", "deletes nothing", nil},
	{"LeavesNothing", "leaves a goroutine", nil},
	{"CapabilitiesTrue", "promises replicas it has not", nil},
	{"CapabilitiesTrue", "drops keys", nil},
	{"CapabilitiesTrue", "batches undeclared", modest},
	{"CapabilitiesTrue", "settles undeclared", func(c *driver.Capabilities) { c.SettleConfirmed = false }},
	{"CapabilitiesTrue", "invents a partition", modest},
	{"CapabilitiesTrue", "answers requests undeclared", modest},
}

func TestBrokenDriversFailExactlyTheirCheck(t *testing.T) {
	rules := map[string]string{}
	for _, c := range checks() {
		rules[c.name] = c.rule
		if c.rule == "" {
			t.Errorf("%s has no sentence of the contract", c.name)
		}
		if !slices.ContainsFunc(broken, func(b struct {
			check, fault string
			change       func(*driver.Capabilities)
		},
		) bool {
			return b.check == c.name
		}) {
			t.Errorf("no driver is broken in what %s checks", c.name)
		}
	}
	for _, b := range broken {
		t.Run(b.check+"/"+b.fault, func(t *testing.T) {
			if b.check == "AllocBudget" {
				needs.NoRace(t)
			}
			vs := try(t, b.fault, b.change, nil)
			names, text := failures(vs)
			if !slices.Equal(names, []string{b.check}) {
				t.Fatalf("failed %v, want %s and no other:\n%s", names, b.check, text)
			}
			for _, v := range vs {
				if v.status == failed && !strings.HasPrefix(v.lines[0], rules[b.check]) && !strings.HasPrefix(v.lines[0], ruleOnce) {
					t.Errorf("the failure does not begin with the sentence of the contract: %s", v.lines[0])
				}
			}
		})
	}
}
