package judge

import (
	"fmt"

	"github.com/weirmq/weir/result"
)

// Inside is what is known of the time in which messages were blocked.
type Inside struct {
	Told bool    // the kernel tells what threads did then; of a driver's lanes the host's share is lateness already
	Host float64 // share of it in which the generator's threads ran, or waited for a core: what is not apart in the messages
}

// blocked checks that what is called blocked is not the host's doing: a client
// library that works, or whose thread waits for a core, is not kept by the system.
func blocked(in *Inputs) result.Check {
	c := result.Check{
		Name: CheckBlocked, Status: result.NotRun,
		Limit: fmt.Sprintf("the host's part of blocked at most %s of each response at each percentile", percent(latenessValid)),
	}
	switch {
	case in.Closed || in.Consuming:
		return inapplicable(c.Name, c.Limit, "This run offers no rate.")
	case in.Inside == nil:
		return inapplicable(c.Name, c.Limit, "The client library makes no message wait.")
	case in.Blocked == nil || len(in.Responses) == 0:
		c.Why = "No message was sent and confirmed."
		return c
	}
	share, worst := in.Inside.Host, -1.0
	if !in.Inside.Told {
		share = 1 // for all that is known
	}
	for _, r := range in.Responses {
		for _, b := range in.Blocked.Percentiles {
			row := r.All.Percentile(b.P)
			if b.P >= 100 || row == nil || !b.Supported || !row.Supported {
				continue
			}
			if part := share * float64(b.NS) / float64(max(1, row.NS)); part > worst {
				worst = part
				c.Value = fmt.Sprintf("%s of %s is %s at %s %s", nanos(int64(share*float64(b.NS))), nanos(row.NS), percent(part), r.Name, name(b.P))
			}
		}
	}
	switch {
	case worst < 0:
		c.Why = tooFewToJudge()
	case worst <= latenessValid:
		c.Status = result.Valid
	case !in.Inside.Told:
		c.Value = ""
		c.Why = "This platform does not show how long a thread waited for a core, so blocked may include time that the host took. Read it with the checks of the host, or measure on Linux."
	default:
		c.Status = result.Suspect
		c.Why = fmt.Sprintf("For %s of the blocked time, the generator's threads worked inside the client library or waited for a core. The host caused that, not the system. Free cores, lower the rate, or use as few producers as there are lanes.", percent(share))
	}
	return c
}
