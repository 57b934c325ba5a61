package judge

import (
	"fmt"

	"github.com/weirmq/weir/result"
)

// hostShare is the share of the blocked time in which the generator's threads ran or
// waited for a core. It is 1 where that is not told, for it may be as much.
func hostShare(b *result.BlockedTime) (share float64, told bool) {
	switch waited := b.PublishNS + b.FullNS; {
	case b.Untold:
	case waited > 0 && b.LookedNS > 0:
		return float64(b.PublishNS) / float64(waited) * float64(b.BusyNS) / float64(b.LookedNS), true
	case b.PublishNS <= 0: // of lanes it is apart in the messages
		return 0, true
	}
	return 1, false
}

// blocked checks that what is called blocked is not the host's doing: the system does not
// keep a client library that works, or a thread of it that waits for a core.
func blocked(s *subject) result.Check {
	c := result.Check{
		Name: CheckBlocked, Status: result.NotRun,
		Limit: percent(latenessValid) + " of any percentile of a response",
	}
	responses := Responses(&s.Latency)
	switch {
	case s.closed() || s.Consuming():
		return inapplicable(c.Name, c.Limit, "This run offers no rate.")
	case s.evidence.Blocked == nil:
		return inapplicable(c.Name, c.Limit, "The client library makes no message wait.")
	case s.Latency.Send.Blocked == nil || len(responses) == 0:
		c.Why = "No message was sent and confirmed."
		return c
	}
	share, told := hostShare(s.evidence.Blocked)
	worst := -1.0
	for _, r := range responses {
		for _, b := range s.Latency.Send.Blocked.Percentiles {
			row := r.All.Percentile(b.P)
			if b.P >= 100 || row == nil || !b.Supported || !row.Supported {
				continue
			}
			if part := share * float64(b.NS) / float64(max(1, row.NS)); part > worst {
				worst = part
				c.Value = fmt.Sprintf("messages waited %s at %s for the host, not for the system: %s of %s %s (%s)", nanos(int64(share*float64(b.NS))), name(b.P), percent(part), r.Name, name(b.P), nanos(row.NS))
			}
		}
	}
	switch {
	case worst < 0:
		c.Why = tooFewToJudge()
	case worst <= latenessValid:
		c.Status = result.Valid
	case !told:
		c.Value = ""
		c.Why = "This platform does not show how long a thread waited for a core, so blocked may include time that the host took. Read it with the checks of the host, or measure on Linux."
	default:
		c.Status = result.Suspect
		c.Why = fmt.Sprintf("For %s of the blocked time, the generator's threads worked inside the client library or waited for a core. The host caused that, not the system. Free cores, lower the rate, or use as few producers as there are lanes.", percent(share))
	}
	return c
}
