package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestNothingIsSaidToBeTheCaseThatIsNot: of a run without figures the reason names
// errors only where there are any, and otherwise what happened.
func TestNothingIsSaidToBeTheCaseThatIsNot(t *testing.T) {
	t.Parallel()
	consuming := func(left *uint64) result.Result {
		return result.Result{Run: result.Run{Mode: result.ModeConsume}, Evidence: &result.Evidence{StillHeld: left}}
	}
	of := func(m result.Messages, e result.Evidence) result.Result {
		return result.Result{Messages: m, Evidence: &e}
	}
	closed := func(e result.Evidence) result.Result {
		return result.Result{Run: result.Run{Loop: result.LoopClosed}, Evidence: &e}
	}
	errs := result.Evidence{Errors: &result.Errors{Kinds: 1}}
	for what, x := range map[string]struct {
		in         result.Result
		value, why string
	}{
		"up to date":                  {consuming(ptr(uint64(0))), "there was nothing to receive", "up to date"},
		"it lies there":               {consuming(ptr(uint64(1234))), "nothing was received", "holds 1,234 messages"},
		"it cannot be asked":          {consuming(nil), "nothing was received", "Check that the destinations hold messages"},
		"no message due":              {of(result.Messages{}, result.Evidence{}), "nothing was sent", "no message was due"},
		"all dropped":                 {of(result.Messages{Scheduled: 9, Dropped: 9}, result.Evidence{}), "nothing was sent", "no room for any message that was due, and when_full dropped them"},
		"all left":                    {of(result.Messages{Scheduled: 9, Unsent: 9}, result.Evidence{}), "nothing was sent", "the system had no room for any until the drain ended"},
		"late to all":                 {of(result.Messages{Scheduled: 9, Unsent: 9}, result.Evidence{Behind: 9}), "nothing was sent", "the generator did not keep up"},
		"a closed loop that stood":    {closed(result.Evidence{}), "nothing was sent", "(in_flight)"},
		"a backlog that had no room":  {closed(result.Evidence{Filled: &result.Filled{Full: true, Held: 1024}}), "nothing was sent", "was full, with 1,024 messages"},
		"sent and never confirmed":    {of(result.Messages{Scheduled: 9, Sent: 9}, result.Evidence{}), "nothing was confirmed", "stands still"},
		"with errors, nothing sent":   {of(result.Messages{Scheduled: 9}, errs), "nothing was sent", "look at the errors in events.jsonl"},
		"with errors, none confirmed": {of(result.Messages{Scheduled: 9, Sent: 9}, errs), "nothing was confirmed", "Look at the errors in events.jsonl"},
	} {
		c := run(subjectOf(&x.in, nil)).stored()
		if c.Status != result.Invalid || c.Value != x.value || !strings.Contains(c.Why, x.why) {
			t.Errorf("%s: %+v; want %q and %q", what, c, x.value, x.why)
		}
		if says := strings.Contains(c.Why, "events.jsonl"); says != (x.in.Evidence.Errors != nil) {
			t.Errorf("%s: it speaks of errors: %t", what, says)
		}
	}
}

// TestARunThatDeliveredNothingIsSuspect: its end-to-end latency is a lower bound and nothing
// else. Without consumers, or with one message that arrived, there is nothing to say.
func TestARunThatDeliveredNothingIsSuspect(t *testing.T) {
	t.Parallel()
	const subscriptions = 2
	for what, x := range map[string]struct {
		m    result.Messages
		subs int
		want result.Status
		why  string
	}{
		"all pending":   {result.Messages{Confirmed: 9, Pending: 18}, subscriptions, result.Suspect, "Check whether the consumers receive at all"},
		"some late":     {result.Messages{Confirmed: 9, Pending: 17, Late: 1}, subscriptions, result.Suspect, "Some arrived later"},
		"all lost":      {result.Messages{Confirmed: 9, Lost: 18}, subscriptions, result.Suspect, "All of them are lost"},
		"one delivered": {result.Messages{Confirmed: 9, Pending: 17, Delivered: 1}, subscriptions, result.Valid, ""},
		"all corrupted": {result.Messages{Confirmed: 9, Corrupted: 18}, subscriptions, result.Valid, ""},
		"no consumers":  {result.Messages{Confirmed: 9}, 0, result.Valid, ""},
	} {
		x.m.Scheduled, x.m.Sent = x.m.Confirmed, x.m.Confirmed
		c := run(subjectOf(&result.Result{Messages: x.m, Evidence: &result.Evidence{Subscriptions: x.subs}}, nil)).stored()
		if c.Status != x.want || !strings.Contains(c.Why, x.why) || (c.Value == "nothing was delivered") != (x.want == result.Suspect) {
			t.Errorf("%s: %+v; want %s and %q", what, c, x.want, x.why)
		}
	}
}

func TestARateOfFillingAndDrainingIsSuspect(t *testing.T) {
	t.Parallel()
	c := drain(subjectOf(&result.Result{Evidence: &result.Evidence{Filled: &result.Filled{Messages: 1, FirstNS: 1, LastNS: 1001, Full: true, Held: 1024}}}, nil)).stored()
	if c.Status != result.Suspect || !strings.HasSuffix(c.Value, "the system was full with 1,024 messages") || !strings.Contains(c.Why, "of both") {
		t.Errorf("%+v", c)
	}
}
