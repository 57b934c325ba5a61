package judge

import (
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// TestFailedAndUnconfirmedSharesAreJudged: which shares of failed and unconfirmed messages are
// valid, and why there are more.
func TestFailedAndUnconfirmedSharesAreJudged(t *testing.T) {
	const ok, suspect = result.Valid, result.Suspect
	const load, faults = "failed.load failed.accepted failed.look", "fault.own failed.accepted failed.look"
	cut := result.Evidence{EndedFor: "a producer is full"}
	kill := func(failed ...uint64) (all []result.Fault) {
		for _, n := range failed {
			all = append(all, result.Fault{Do: "kill", To: "leader", Processes: []string{"server-1"}, BeganNS: 5e9, Effect: &result.FaultEffect{Failed: n}})
		}
		return all
	}
	thirty := result.Messages{Sent: 100, Failed: 30}
	for what, x := range map[string]struct {
		m      result.Messages // of the whole run
		e      result.Evidence
		faults []result.Fault
		want   result.Status
		found  string
		why    string
	}{
		"nothing failed":           {m: result.Messages{Sent: 100}, want: ok, found: "failed.none"},
		"one failed":               {m: result.Messages{Sent: 1_000_000, Failed: 1}, want: suspect, found: "failed.failed", why: load},
		"one is unconfirmed":       {m: result.Messages{Sent: 100, Unconfirmed: 1}, want: suspect, found: "failed.open", why: load},
		"one is open in a cut run": {m: result.Messages{Sent: 100, Unconfirmed: 1}, e: cut, want: ok, found: "failed.none"},
		"one failed in a cut run":  {m: result.Messages{Sent: 100, Failed: 1, Unconfirmed: 8}, e: cut, want: suspect, found: "failed.failed", why: load},
		"as many as may":           {m: result.Messages{Sent: 100, Failed: 3, Unconfirmed: 2}, e: result.Evidence{MayFail: 0.05}, want: ok, found: "failed.both"},
		"one more than may":        {m: result.Messages{Sent: 100, Failed: 3, Unconfirmed: 3}, e: result.Evidence{MayFail: 0.05}, want: suspect, found: "failed.both", why: load},
		"all may fail, and did":    {m: result.Messages{Sent: 9, Failed: 9}, e: result.Evidence{MayFail: 1}, want: ok, found: "failed.failed"},
		"nothing was sent":         {want: result.NotRun, why: "failed.unsent"},
		"one that only warms up": {
			m: result.Messages{Sent: 12_000, Failed: 10_583}, e: result.Evidence{Errors: &result.Errors{Kinds: 1, Worst: "overloaded: OOM", Failed: 10_500}},
			want: suspect, found: "failed.failed", why: "failed.load failed.frequent failed.accepted failed.fewer_in_flight",
		},
		"all after a fault":     {m: thirty, faults: kill(30), want: suspect, found: "failed.failed", why: "failed.after_fault " + faults},
		"all after two":         {m: thirty, faults: kill(10, 20), want: suspect, found: "failed.failed", why: "failed.after_fault " + faults},
		"some after a fault":    {m: thirty, faults: kill(10), want: suspect, found: "failed.failed", why: "failed.partly_after_fault " + faults},
		"none after a fault":    {m: thirty, faults: kill(0), want: suspect, found: "failed.failed", why: load},
		"failed, and open ones": {m: result.Messages{Sent: 100, Failed: 28, Unconfirmed: 2}, faults: kill(28), want: suspect, found: "failed.both", why: "failed.failed_after_fault " + faults},
	} {
		in := good()
		in.MessagesAll, in.Faults, in.Evidence = x.m, x.faults, &x.e
		in.MessagesAll.Scheduled, in.MessagesAll.Confirmed = x.m.Sent, x.m.Sent-x.m.Failed-x.m.Unconfirmed
		c := failed(of(&in))
		if found := c.stored(); c.status != x.want || x.found != "" && !says(found, x.found) || whyOf(c) != x.why {
			t.Errorf("%s: %+v; want %s, %s for %s", what, found, x.want, x.found, x.why)
		}
		if x.e.EndedFor == "" && (c.status == suspect) != (Verdict(&in, nil).Status == suspect) {
			t.Errorf("%s: the verdict is %s", what, Verdict(&in, nil).Status)
		}
	}
}

// Also if the warm-up ends within a second.
func TestFaultTimeCountsFromWindow(t *testing.T) {
	in := good()
	in.Run.WarmUpS = new(0.5)
	in.Faults = []result.Fault{{Do: "kill", To: "leader", Processes: []string{"server-1"}, BeganNS: 5e9, Effect: &result.FaultEffect{Failed: 30}}}
	if n, fault := of(&in).afterFaults(); n != 30 || fault.String() != "fault kill leader at 4.5 s" {
		t.Errorf("%d after %q", n, fault)
	}
}

// Fractions of different objectives and of the scenario do not add up.
func TestLargestAllowedFailureShareApplies(t *testing.T) {
	for failures, want := range map[uint64]result.Status{20: result.Valid, 21: result.Suspect} {
		in := good()
		in.MessagesAll = result.Messages{Scheduled: 1000, Sent: 1000, Confirmed: 1000 - failures, Failed: failures}
		in.Messages = in.MessagesAll
		in.Evidence = &result.Evidence{MayFail: 0.015}
		var objectives []Objective
		for _, text := range []string{"failed <= 1%", "failed <= 2%"} {
			o := must.Get(ParseObjective(text))(t)
			objectives = append(objectives, o)
		}
		if c := failed(subjectOf(&in, objectives)).stored(); c.Status != want {
			t.Errorf("%d of 1,000 failed: %s, %s; want %s", failures, c.Status, c.Limit, want)
		}
	}
}

// Reads the fraction that an objective allows to fail in a window of 1,000 messages.
func TestObjectiveSetsAllowedFailures(t *testing.T) {
	m := &result.Messages{Scheduled: 2000, Sent: 1000, Confirmed: 900}
	for text, want := range map[string]float64{
		"failed <= 1%":                    0.01,
		"failed<1%":                       0.01,
		"unconfirmed <= 2%":               0.02,
		"failed <= 10":                    0.01,
		"failed <= 5000":                  1,
		"failed == 0":                     0,
		"failed >= 10":                    0, // that is not a bound
		"ratio(failed, sent) <= 1%":       0.01,
		"ratio(failed, scheduled) <= 10%": 0.2,
		"ratio(lost, sent) <= 1%":         0,
		"lost <= 7":                       0,
		"e2e.p99 <= 1ms":                  0,
	} {
		o := must.Get(ParseObjective(text))(t)
		if got := o.Tolerates(m); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("%s: %v; want %v", text, got, want)
		}
	}
	if o, _ := ParseObjective("failed <= 1%"); o.String() != "ratio(failed, sent) <= 1%" {
		t.Errorf("it is %q", o)
	}
}

// What a client prefetched before its first call returned says little about the system.
func TestRateFromFewClientCallsIsSuspect(t *testing.T) {
	for atFirst, want := range map[uint64]result.Status{1: result.Valid, 200: result.Valid, 201: result.Suspect, 1000: result.Suspect, 2000: result.Suspect} {
		in := good()
		in.Run.Mode, in.Latency, in.Messages = result.ModeConsume, result.Latency{}, result.Messages{}
		in.Evidence.Received, in.Evidence.FirstCalls = 2000, atFirst
		if v := Verdict(&in, nil); v.Status != want {
			t.Errorf("%d of 2,000 at first: %s; want %s", atFirst, v.Status, want)
		}
	}
	in := good()
	in.Evidence.FirstCalls = 1 << 20 // of a run that sends nobody asks
	if v := Verdict(&in, nil); v.Status != result.Valid {
		t.Errorf("a run that sends: %s", v.Status)
	}
}

// The warm-up's messages can fail, too.
func TestAllowedFailureCountCoversWholeRun(t *testing.T) {
	o := must.Get(ParseObjective("failed <= 150"))(t)
	for n, want := range map[uint64]result.Status{150: result.Valid, 160: result.Suspect} {
		in := good()
		in.Messages.Sent = 1000
		in.MessagesAll = result.Messages{Scheduled: 1200, Sent: 1200, Failed: n, Confirmed: 1200 - n}
		in.Evidence = &result.Evidence{}
		if c := failed(subjectOf(&in, []Objective{o})).stored(); c.Status != want {
			t.Errorf("%d failed: %s, %q (%s)", n, c.Status, c.Value, c.Limit)
		}
	}
}
