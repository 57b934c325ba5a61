package judge

import (
	"fmt"

	"github.com/weirmq/weir/result"
)

// CheckHeldUp is the name of the check of what held the lanes up.
const CheckHeldUp = "held up"

// heldUp holds that part of lateness that the lanes cannot have made against the
// response at the same percentile. It is never more than lateness is, so that it
// doubts no run which that check does not; it tells a host that runs a lane late
// from lanes that have too much to do.
func heldUp(in *Inputs) result.Check {
	c := result.Check{Name: CheckHeldUp, Status: result.NotRun, Limit: fmt.Sprintf("%s of the response at each percentile", percent(latenessValid))}
	switch {
	case in.Closed, in.Consuming:
		return inapplicable(c.Name, c.Limit, "Nothing was due at an instant that a lane could wait for.")
	case in.HeldUp == nil || in.Response == nil:
		c.Why = "No message was sent and confirmed."
		return c
	}
	worst := -1.0
	for i := range in.HeldUp.Percentiles {
		h := &in.HeldUp.Percentiles[i]
		r := in.Response.Percentile(h.P)
		if h.P >= 100 || r == nil || !h.Supported || !r.Supported {
			continue
		}
		if _, part := judgeLateness(h.NS, r.NS); part > worst {
			worst = part
			c.Value = fmt.Sprintf("%s of %s is %s at %s", nanos(h.NS), nanos(r.NS), percent(part), name(h.P))
		}
	}
	switch {
	case worst < 0:
		c.Why = tooFewToJudge()
	case worst > latenessValid:
		c.Status = result.Suspect
		c.Why = fmt.Sprintf("Lanes that had nothing to do but wait were run so late: the host gave their cores to others, or to other threads of this process (cpu and gc tell). Where the system under test is on this host it met the same. A quieter host or a free core for each lane%s makes it go away.",
			in.advise(", or precedence over others (--fifo),"))
	default:
		c.Status = result.Valid
	}
	return c
}

// madeBy says, as sentences with a space before them, at which percentiles of
// lateness the lanes were run late and at which they made it themselves; where that
// is not known, how busy the host was; "" where nothing is.
func (in *Inputs) madeBy(late []result.Percentile) string {
	var held, own []string
	for i := range late {
		switch h := in.HeldUp.Percentile(late[i].P); {
		case h == nil:
		case float64(h.NS) >= heldUpIsWhy*float64(late[i].NS):
			held = append(held, fmt.Sprintf("%s at %s", nanos(h.NS), name(late[i].P)))
		default:
			own = append(own, name(late[i].P))
		}
	}
	said := ""
	if len(held) > 0 {
		said = fmt.Sprintf(" Lanes that had nothing to do but wait were run late, by %s.", span(held))
	}
	if len(own) > 0 {
		said += fmt.Sprintf(" At %s most of it is of the generator's own making: work on messages before, or waking a producer that publishes for itself.", span(own))
	}
	if said == "" && in.Host != nil && in.Host.Usage != nil && in.Host.Usage.HostBusyShare != nil {
		return fmt.Sprintf(" All cores of the host together were %s busy.", percent(*in.Host.Usage.HostBusyShare))
	}
	return said
}

// span names the first and the last of several percentiles.
func span(of []string) string {
	if len(of) == 1 {
		return of[0]
	}
	return of[0] + " to " + of[len(of)-1]
}
