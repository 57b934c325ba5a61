package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// A Response is a distribution of responses that a report prints, and that of the
// same messages without their lateness.
type Response struct {
	Name   string // "send", "rtt" or "e2e"
	All    *result.Dist
	OnTime *result.Dist
}

// Responses returns the responses of a run, those that its senders know first.
func Responses(l *result.Latency) []Response {
	return slices.DeleteFunc([]Response{
		{"send", l.Send.Response, l.Send.OnTime}, {"rtt", l.RTT.Response, l.RTT.OnTime}, {"e2e", l.E2E.Response, l.E2E.OnTime},
	}, func(r Response) bool { return r.All == nil })
}

// moved returns by how much lateness moved percentile p, in ns and as a part of
// the percentile. ok is false where either has no figure there.
func (r *Response) moved(p float64) (by int64, part float64, ok bool) {
	all, onTime := r.All.Percentile(p), r.OnTime.Percentile(p)
	if all == nil || onTime == nil || !all.Supported {
		return 0, 0, false
	}
	by = max(0, all.NS-onTime.NS)
	return by, float64(by) / float64(max(1, all.NS)), true
}

// touched reports whether lateness moved percentile p beyond what is valid.
func (r *Response) touched(p float64) bool {
	_, part, ok := r.moved(p)
	return ok && part > latenessValid
}

// HostLimited reports whether over half of percentile p of a response is
// lateness: such a figure is marked wherever it is shown. In results of older
// versions, without onTime, it compares with the same percentile of lateness, which
// may be of other messages.
func HostLimited(response, onTime, lateness *result.Dist, p float64) bool {
	if onTime == nil {
		l, r := lateness.Percentile(p), response.Percentile(p)
		return l != nil && r != nil && l.Supported && r.Supported && float64(l.NS) > latenessSuspect*float64(max(1, r.NS))
	}
	r := Response{All: response, OnTime: onTime}
	_, part, ok := r.moved(p)
	return ok && part > latenessSuspect
}

// lateness judges by how much the generator's lateness moved each percentile of
// each response. What it did otherwise, as by the bursts in which late messages
// come, is not in that.
func lateness(s *subject) result.Check {
	c := result.Check{
		Name: CheckLateness, Status: result.NotRun,
		Limit: fmt.Sprintf("%s of any percentile of a response; over %s of p50 or p99 is INVALID", percent(latenessValid), percent(latenessSuspect)),
	}
	responses := Responses(&s.Latency)
	switch {
	case s.Consuming():
		return inapplicable(c.Name, c.Limit, "This run sends no messages.")
	case s.closed():
		return inapplicable(c.Name, c.Limit, "A closed loop has no schedule, so no message can be late. Its figures are service times at saturation.")
	case len(responses) == 0:
		c.Why = "No message was sent and confirmed."
		return c
	}
	worst := -1.0
	var where []string
	stands := false // some percentile
	for i := range responses {
		r := &responses[i]
		var judged, touched []float64
		for _, row := range r.All.Percentiles {
			by, part, ok := r.moved(row.P)
			if !ok || row.P >= 100 {
				continue
			}
			judged = append(judged, row.P)
			s := judgeMove(row.P, by, part)
			if s == result.Valid {
				stands = true
			} else {
				touched = append(touched, row.P)
			}
			if rankOf(s) > rankOf(c.Status) || s == c.Status && part > worst {
				c.Status, worst = s, part
				c.Value = fmt.Sprintf("without the generator's lateness %s %s is %s, not %s: %s less", r.Name, name(row.P), nanos(row.NS-by), nanos(row.NS), percent(part))
				if by == 0 {
					c.Value = "lateness moved no percentile"
				}
			}
		}
		if len(touched) > 0 {
			where = append(where, r.Name+" "+spans(judged, touched))
		}
	}
	switch {
	case c.Value == "":
		c.Why = tooFewToJudge()
	case c.Status == result.Valid:
	case s.Host.LaneWaits > 0:
		c.Status = result.Suspect
		c.Why = fmt.Sprintf("The system refused so many messages that a lane's room for them was full (%s times), and the lane had to wait. The system caused most of this lateness. The response is right; its split into lateness, blocked and service is not. Lower the rate.", count(s.Host.LaneWaits))
	default:
		c.Why = s.culprit(strings.Join(where, ", "), stands && c.Status == result.Suspect)
	}
	return c
}

// tooFewToJudge is why a check of each percentile was not run.
func tooFewToJudge() string {
	return fmt.Sprintf("There are fewer than %d messages, too few for any percentile.", stats.Needed(50))
}

// judgeMove judges one percentile that lateness moved by so many ns, which is part
// of it.
func judgeMove(p float64, by int64, part float64) result.Status {
	least, decides := headline(p)
	switch {
	case part <= latenessValid:
		return result.Valid
	case part <= latenessSuspect || !decides || by <= least:
		return result.Suspect
	}
	return result.Invalid
}

// behindBy reports whether the generator was behind by so much of the window as to
// be why a part of its messages is missing.
func (s *subject) behindBy(part float64) bool {
	if s.Host.LaneWaits > 0 || s.Latency.Send.Lateness == nil || s.Latency.Send.Lateness.MaxNS == nil || part <= 0 {
		return false
	}
	return float64(*s.Latency.Send.Lateness.MaxNS) >= behindLeast*part*float64(s.window())
}

// culprit says what caused the lateness that moved the percentiles named, and what to do.
func (s *subject) culprit(where string, stands bool) string {
	where += " by over " + percent(latenessValid)
	if stands {
		where += ", and no other percentile by as much"
	}
	woken, lanes := s.wokenLate(), max(1, s.host.Lanes)
	if held := s.heldUp(); held >= heldUpIsWhy {
		also := ""
		if woken > latenessValid { // of it may be the whole of a median
			also = fmt.Sprintf(" Producers' goroutines that woke late are another %s: with %s each lane sends by itself.", percent(woken), s.alone(lanes))
		}
		return fmt.Sprintf("The host woke the generator too late: that is %s of all lateness. It changes %s. Use a quieter host, or give each lane a free core%s.%s",
			percent(held), where, s.advise(", or run with --fifo"), also)
	}
	if woken > max(s.heldUp(), 1-s.heldUp()-woken) {
		return fmt.Sprintf("The lanes were in time, but producers' goroutines woke late: that is %s of all lateness. It changes %s. Each producer has such a goroutine where the client may block and producers outnumber lanes (%d). Use %s. A goroutine takes 5 µs to 50 µs to wake even on a quiet host.",
			percent(woken), where, lanes, s.alone(lanes))
	}
	why, advice := s.fellBehindFor()
	return fmt.Sprintf("%s It changes %s. %s", why, where, advice)
}

// fellBehindFor says why lanes that were not woken late fell behind, as far as a check of
// the host shows it, and what to do.
func (s *subject) fellBehindFor() (why, advice string) {
	const fewer = "Lower the rate, or use a host with more cores (each lane needs one)."
	for _, c := range hostChecks(s) {
		u := s.host.Usage // nil of a fleet
		switch {
		case rankOf(c.Status) <= rankOf(result.Valid):
			continue
		case c.Name == CheckHeadroom:
			return "The lanes work near their limit, and fell behind: " + c.Value + ".", fewer
		case c.Name != CheckCPU || u == nil:
			return fmt.Sprintf("The lanes fell behind. The cause may be what another check found (%s: %s).", c.Name, c.Value), "Read its advice."
		case *u.CPUShare > cpuMost:
			return "The generator had hardly a free core, and the lanes fell behind: " + c.Value + ".", fewer
		}
		how := "also"
		if *u.CPUShare < *u.HostBusyShare/2 {
			how = "mostly"
		}
		return fmt.Sprintf("The host was %s busy, %s with other processes (weir used %s of its cores), and the lanes fell behind.", percent(*u.HostBusyShare), how, percent(*u.CPUShare)),
			"Stop what else runs, or put the system on another host."
	}
	why = "The lanes fell behind, and nothing shows why."
	if held := s.heldUp(); held > latenessValid {
		why = fmt.Sprintf("The lanes fell behind: of all lateness the host's late wake-ups are %s, and nothing shows the cause of the rest.", percent(held))
	}
	return why, "Repeat the run on a quieter host, or at a lower rate."
}

// alone says with how many producers each has a lane of its own.
func (s *subject) alone(lanes int) string {
	if u := s.host.Usage; u != nil && int(u.Cores/2) > lanes {
		return fmt.Sprintf("--producers %d (at up to 20,000/s each)", int(u.Cores/2)) // engine.laneRate
	}
	return fmt.Sprintf("--producers %d", lanes)
}

// heldUp is the part of all lateness that the lanes cannot have made.
func (s *subject) heldUp() float64 {
	if s.Latency.Send.Lateness == nil || s.Latency.Send.HeldUp == nil || s.Latency.Send.Lateness.MeanNS == nil || s.Latency.Send.HeldUp.MeanNS == nil || *s.Latency.Send.Lateness.MeanNS <= 0 {
		return 0
	}
	return *s.Latency.Send.HeldUp.MeanNS / *s.Latency.Send.Lateness.MeanNS
}

// wokenLate is the part of all lateness in which goroutines of producers woke, after their
// lanes had turned to the messages.
func (s *subject) wokenLate() float64 {
	l := s.Latency.Send.Lateness
	if s.evidence.Blocked == nil || l == nil || l.MeanNS == nil || *l.MeanNS <= 0 || l.Count == 0 {
		return 0
	}
	return min(1, float64(s.evidence.Blocked.WokenNS)/(*l.MeanNS*float64(l.Count)))
}

// advise is the advice to take precedence, where lanes do not have it yet.
func (s *subject) advise(precedence string) string {
	if s.host.Calibration != nil && s.host.Calibration.FIFO {
		return ""
	}
	return precedence
}

// spans names some of the percentiles judged, neighbours as the first to the last
// of them.
func spans(judged, some []float64) string {
	var out []string
	for i := 0; i < len(judged); i++ {
		j := i
		for j < len(judged) && slices.Contains(some, judged[j]) {
			j++
		}
		switch j - i {
		case 0:
			continue
		case 1:
			out = append(out, name(judged[i]))
		default:
			out = append(out, name(judged[i])+" up to "+name(judged[j-1]))
		}
		i = j
	}
	return strings.Join(out, " and ")
}
