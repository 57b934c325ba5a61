package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestWhatTheSystemDidNotTakeIsJudged shows which shares of failed and unconfirmed
// messages are valid, and that the sentence names the most frequent error.
func TestWhatTheSystemDidNotTakeIsJudged(t *testing.T) {
	for what, x := range map[string]struct {
		m    result.Messages // of the whole run
		e    result.Evidence
		want result.Status
		says string
	}{
		"nothing failed":            {result.Messages{Sent: 100}, result.Evidence{}, result.Valid, "0 of 100 failed or were never confirmed"},
		"one failed":                {result.Messages{Sent: 1_000_000, Failed: 1}, result.Evidence{}, result.Suspect, "1 of 1,000,000 messages failed (below 0.01 %)"},
		"one is unconfirmed":        {result.Messages{Sent: 100, Unconfirmed: 1}, result.Evidence{}, result.Suspect, "1 of 100 messages were never confirmed (1 %)"},
		"one is open in a cut run":  {result.Messages{Sent: 100, Unconfirmed: 1}, result.Evidence{EndedFor: "a producer is full"}, result.Valid, "0 of 100"},
		"one failed in a cut run":   {result.Messages{Sent: 100, Failed: 1, Unconfirmed: 8}, result.Evidence{EndedFor: "a producer is full"}, result.Suspect, "1 of 100 messages failed (1 %)"},
		"as many as may":            {result.Messages{Sent: 100, Failed: 3, Unconfirmed: 2}, result.Evidence{MayFail: 0.05}, result.Valid, "3 of 100 messages failed, and 2 were never confirmed (5 %)"},
		"one more than may":         {result.Messages{Sent: 100, Failed: 3, Unconfirmed: 3}, result.Evidence{MayFail: 0.05}, result.Suspect, "(6 %)"},
		"nearly all":                {result.Messages{Sent: 100_000, Failed: 99_999}, result.Evidence{}, result.Suspect, "(over 99.9 %)"},
		"nothing was sent":          {result.Messages{}, result.Evidence{}, result.NotRun, ""},
		"one that only warms up":    {result.Messages{Sent: 12_000, Failed: 10_583}, result.Evidence{Errors: &result.Errors{Kinds: 1, Worst: "overloaded: OOM", Failed: 10_500}}, result.Suspect, "(88.2 %)"},
		"all may fail, and all did": {result.Messages{Sent: 9, Failed: 9}, result.Evidence{MayFail: 1}, result.Valid, "(100 %)"},
	} {
		in := good()
		in.MessagesAll = x.m
		in.MessagesAll.Scheduled, in.MessagesAll.Confirmed = x.m.Sent, x.m.Sent-x.m.Failed-x.m.Unconfirmed
		in.Evidence = &x.e
		c := failed(of(&in)).stored()
		if c.Status != x.want || !strings.Contains(c.Value, x.says) {
			t.Errorf("%s: %s, %q; want %s, %q", what, c.Status, c.Value, x.want, x.says)
		}
		if x.e.EndedFor == "" && (c.Status == result.Suspect) != (Verdict(&in, nil).Status == result.Suspect) {
			t.Errorf("%s: the verdict is %s", what, Verdict(&in, nil).Status)
		}
		if x.e.Errors != nil && !strings.Contains(c.Why, "10,500 times: overloaded: OOM.") {
			t.Errorf("%s: %q does not name the error", what, c.Why)
		}
		if x.e.Errors != nil && (!strings.Contains(c.Why, "--in-flight") || strings.Contains(c.Why, "limits.failed")) {
			t.Errorf("%s: %q does not name what was too much", what, c.Why)
		}
	}
}

// TestWhatFailedAfterAFaultIsNotPutDownToTheLoad: weir says which share of what failed came
// after a fault that it did itself.
func TestWhatFailedAfterAFaultIsNotPutDownToTheLoad(t *testing.T) {
	kill := func(failed uint64) result.Fault {
		return result.Fault{Do: "kill", To: "leader", Processes: []string{"server-1"}, BeganNS: 5_000_000_000, Effect: &result.FaultEffect{Failed: failed}}
	}
	const load = "did not carry the load"
	for what, x := range map[string]struct {
		faults []result.Fault
		says   string
		load   bool
	}{
		"no fault":        {nil, "The system did not carry the load. The rates", true},
		"all of it":       {[]result.Fault{kill(30)}, "All of it came after weir's own fault kill leader at 3.0 s. The rates", false},
		"of two":          {[]result.Fault{kill(10), kill(20)}, "All of it came after weir's own 2 faults, the first kill leader at 3.0 s. The rates", false},
		"part of it":      {[]result.Fault{kill(10)}, "10 of it came after weir's own fault kill leader at 3.0 s, and 20 without a fault: the system did not carry the load. The rates", true},
		"all that failed": {[]result.Fault{kill(28)}, "All that failed came after weir's own fault kill leader at 3.0 s. The rates", false},
		"another failure": {[]result.Fault{kill(0)}, "The system did not carry the load. The rates", true},
		"half a second":   {[]result.Fault{kill(30)}, "All of it came after weir's own fault kill leader at 4.5 s. The rates", false},
	} {
		in := good()
		in.MessagesAll = result.Messages{Scheduled: 100, Sent: 100, Confirmed: 70, Failed: 30}
		in.Intervals = []result.Interval{{Phase: "warmup"}, {Phase: "measure", TS: 2}}
		if what == "half a second" { // of warm-up: the first second belongs to the window
			in.Intervals, in.Run.WarmUpS = []result.Interval{{Phase: "measure"}}, new(0.5)
		}
		in.Faults = x.faults
		if what == "all that failed" {
			in.MessagesAll.Failed, in.MessagesAll.Unconfirmed = 28, 2
		}
		if c := failed(of(&in)).stored(); !strings.Contains(c.Why, x.says) || strings.Contains(c.Why, load) != x.load {
			t.Errorf("%s: %q; want %q", what, c.Why, x.says)
		}
	}
}

// TestTheLargestShareThatMayFailCounts: shares of an objective, of another and of the scenario
// do not add up.
func TestTheLargestShareThatMayFailCounts(t *testing.T) {
	for failures, want := range map[uint64]result.Status{20: result.Valid, 21: result.Suspect} {
		in := good()
		in.MessagesAll = result.Messages{Scheduled: 1000, Sent: 1000, Confirmed: 1000 - failures, Failed: failures}
		in.Messages = in.MessagesAll
		in.Evidence = &result.Evidence{MayFail: 0.015}
		var objectives []Objective
		for _, text := range []string{"failed <= 1%", "failed <= 2%"} {
			o, err := ParseObjective(text)
			if err != nil {
				t.Fatal(err)
			}
			objectives = append(objectives, o)
		}
		if c := failed(subjectOf(&in, objectives)).stored(); c.Status != want {
			t.Errorf("%d of 1,000 failed: %s, %s; want %s", failures, c.Status, c.Limit, want)
		}
	}
}

// TestAnObjectiveSaysHowManyMayFail reads the share that an objective lets fail of
// a window of 1,000 messages.
func TestAnObjectiveSaysHowManyMayFail(t *testing.T) {
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
		o, err := ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Tolerates(m); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("%s: %v; want %v", text, got, want)
		}
	}
	if o, _ := ParseObjective("failed <= 1%"); o.String() != "ratio(failed, sent) <= 1%" {
		t.Errorf("it is %q", o)
	}
}

// TestTheRateOfFewClientCallsIsSuspect: what a client had fetched before its first
// call returned says little of the system.
func TestTheRateOfFewClientCallsIsSuspect(t *testing.T) {
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

// TestACountThatMayFailIsOfTheWholeRun: the warm-up sends, and fails, too.
func TestACountThatMayFailIsOfTheWholeRun(t *testing.T) {
	o, err := ParseObjective("failed <= 150")
	if err != nil {
		t.Fatal(err)
	}
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
