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
	consuming := func(left *uint64) Inputs { return Inputs{Consuming: true, Left: left} }
	for what, x := range map[string]struct {
		in         Inputs
		value, why string
	}{
		"up to date":                  {consuming(ptr(uint64(0))), "there was nothing to receive", "up to date"},
		"it lies there":               {consuming(ptr(uint64(1234))), "nothing was received", "holds 1,234 messages"},
		"it cannot be asked":          {consuming(nil), "nothing was received", "Check that the destinations hold messages"},
		"no message due":              {Inputs{}, "nothing was sent", "no message was due"},
		"all dropped":                 {Inputs{Scheduled: 9, Dropped: 9}, "nothing was sent", "no room for any message that was due, and when_full dropped them"},
		"all left":                    {Inputs{Scheduled: 9, Unsent: 9}, "nothing was sent", "the system had no room for any until the drain ended"},
		"late to all":                 {Inputs{Scheduled: 9, Unsent: 9, Behind: 9}, "nothing was sent", "the generator did not keep up"},
		"a closed loop that stood":    {Inputs{Closed: true}, "nothing was sent", "(in_flight)"},
		"a backlog that had no room":  {Inputs{Closed: true, Full: true, Lay: 1024}, "nothing was sent", "was full, with 1,024 messages"},
		"sent and never confirmed":    {Inputs{Scheduled: 9, Sent: 9}, "nothing was confirmed", "stands still"},
		"with errors, nothing sent":   {Inputs{Scheduled: 9, Errors: 1}, "nothing was sent", "look at the errors in events.jsonl"},
		"with errors, none confirmed": {Inputs{Scheduled: 9, Sent: 9, Errors: 1}, "nothing was confirmed", "Look at the errors in events.jsonl"},
	} {
		c := run(&x.in)
		if c.Status != result.Invalid || c.Value != x.value || !strings.Contains(c.Why, x.why) {
			t.Errorf("%s: %+v; want %q and %q", what, c, x.value, x.why)
		}
		if says := strings.Contains(c.Why, "events.jsonl"); says != (x.in.Errors > 0) {
			t.Errorf("%s: it speaks of errors: %t", what, says)
		}
	}
}

func TestARateOfFillingAndDrainingIsSuspect(t *testing.T) {
	t.Parallel()
	c := drain(&Inputs{Draining: true, DrainFirst: 1, DrainRest: 1000, Full: true, Lay: 1024})
	if c.Status != result.Suspect || !strings.HasSuffix(c.Value, "the system was full with 1,024 messages") || !strings.Contains(c.Why, "of both") {
		t.Errorf("%+v", c)
	}
}
