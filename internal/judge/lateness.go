package judge

import (
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// A Response is a reported response distribution, and the same without lateness.
type Response struct {
	Name   string // "send", "rtt" or "e2e"
	All    *result.Dist
	OnTime *result.Dist
}

// latency returns which latency it is: "send", "rtt" or "e2e".
func (r *Response) latency() string {
	of, _, _ := strings.Cut(r.Name, ".")
	return of
}

// Responses returns the responses of a run, those known to senders first.
func Responses(l *result.Latency) []Response {
	return slices.DeleteFunc([]Response{
		{"send", l.Send.Response, l.Send.OnTime}, {"rtt", l.RTT.Response, l.RTT.OnTime}, {"e2e", l.E2E.Response, l.E2E.OnTime},
	}, func(r Response) bool { return r.All == nil })
}

// moved returns by how much lateness moved percentile p, in ns and as a fraction of it. ok is false if
// either distribution has no figure there.
func (r *Response) moved(p float64) (by int64, part float64, ok bool) {
	all, onTime := r.All.Percentile(p), r.OnTime.Percentile(p)
	if all == nil || onTime == nil || !all.Supported {
		return 0, 0, false
	}
	by = max(0, all.NS-onTime.NS)
	return by, float64(by) / float64(max(1, all.NS)), true
}

// touched reports whether lateness moved percentile p by more than is valid.
func (r *Response) touched(p float64) bool {
	_, part, ok := r.moved(p)
	return ok && part > latenessValid
}

// Late reports whether over a tenth of percentile p of a response is lateness. For results of older
// versions, with a nil onTime, it reports whether over half is, comparing with the same percentile of
// lateness, which may be of other messages.
func Late(response, onTime, lateness *result.Dist, p float64) bool {
	if onTime == nil {
		l, r := lateness.Percentile(p), response.Percentile(p)
		return l != nil && r != nil && l.Supported && r.Supported && float64(l.NS) > latenessSuspect*float64(max(1, r.NS))
	}
	r := Response{All: response, OnTime: onTime}
	return r.touched(p)
}

// lateness judges by how much the generator's lateness moved each percentile of each response. It does not
// cover other effects, such as late messages arriving in bursts.
func lateness(s *subject) check {
	limit := say("lateness.limit", "limit", latenessValid, "limit_invalid", latenessSuspect)
	responses := Responses(&s.Latency)
	switch {
	case s.Consuming():
		return inapplicable(CheckLateness, limit, say("no.sending"))
	case s.closed():
		return inapplicable(CheckLateness, limit, say("lateness.closed"))
	case len(responses) == 0:
		return notRun(CheckLateness, limit, say("no.confirmation"))
	}
	c := notRun(CheckLateness, limit, s.tooFewToJudge())
	worst := -1.0
	var where []string
	stands := false // any percentile
	halfLate := false
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
			halfLate = halfLate || s == result.Invalid && row.P == 50
			if rankOf(s) <= rankOf(c.status) && (s != c.status || part <= worst) {
				continue
			}
			worst = part
			if c.finds(s, say("lateness.none")); by > 0 {
				c.finds(s, say("lateness.moved", "of", r.Name, "p", row.P, "without", row.NS-by, "response", row.NS, "part", part))
			}
		}
		if len(touched) > 0 {
			where = append(where, r.Name+" "+spans(judged, touched))
		}
	}
	switch {
	case !c.wrong():
	case s.Host.PacerWaits > 0:
		c.find(result.Suspect, say("lateness.pacer_waits", "waits", s.Host.PacerWaits))
	default:
		c.why = s.culprit(say("lateness.changes", "figures", where, "limit", latenessValid, "only", stands && c.status == result.Suspect))
		if stands && !halfLate { // the figures that it moved are marked
			c.status, c.noted = result.Valid, true
		}
	}
	return c
}

// tooFewToJudge says why no percentile can be judged.
func (s *subject) tooFewToJudge() finding.Finding {
	if s.Lost().Any() {
		return say("few.agent_lost")
	}
	return say("few.messages", "needs", stats.Needed(50))
}

// judgeMove judges one percentile that lateness moved by by ns, a fraction part of it.
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

// behindBy reports whether the generator was behind for enough of the window to explain a missing fraction
// of its messages.
func (s *subject) behindBy(part float64) bool {
	if s.Host.PacerWaits > 0 || s.Latency.Send.Lateness == nil || s.Latency.Send.Lateness.MaxNS == nil || part <= 0 {
		return false
	}
	return float64(*s.Latency.Send.Lateness.MaxNS) >= behindLeast*part*float64(s.window())
}

// culprit explains the lateness that moved some percentiles, and advises.
func (s *subject) culprit(changes finding.Finding) []finding.Finding {
	held, woken, pacers := s.wakeUpDelayShare(), s.wokenLate(), max(1, s.host.Pacers)
	fifo := s.host.Calibration != nil && s.host.Calibration.FIFO
	switch {
	case held >= heldUpIsWhy:
		why := []finding.Finding{say("lateness.host", "held", held), changes, say("lateness.host_advice", "fifo", fifo)}
		if woken > latenessValid { // it may be all of a median
			why = append(why, say("lateness.also_producers", "woken", woken, "alone", s.alone(pacers)))
		}
		return why
	case woken > max(held, 1-held-woken):
		return []finding.Finding{say("lateness.producers", "woken", woken), changes, say("lateness.producers_advice", "pacers", pacers, "alone", s.alone(pacers))}
	}
	why, advice := s.fellBehindFor()
	return []finding.Finding{why, changes, advice}
}

// fellBehindFor explains why pacers without delayed wake-ups fell behind, as far as a host check shows it,
// and advises.
func (s *subject) fellBehindFor() (why, advice finding.Finding) {
	for _, c := range hostChecks(s) {
		u := s.host.Usage // nil for a fleet
		switch {
		case !c.found():
			continue
		case c.name == CheckHeadroom:
			return say("lateness.pacers_limit", "found", c.value), say("advice.fewer")
		case c.name != CheckCPU || u == nil:
			return say("lateness.another", "check", c.name, "found", c.value), say("advice.read")
		case *u.CPUShare > cpuMost:
			return say("lateness.no_core", "found", c.value), say("advice.fewer")
		}
		return say("lateness.busy", "busy", *u.HostBusyShare, "mostly", *u.CPUShare < *u.HostBusyShare/2, "used", *u.CPUShare), say("advice.stop_others")
	}
	if held := s.wakeUpDelayShare(); held > latenessValid {
		return say("lateness.partly_host", "held", held), say("advice.repeat")
	}
	return say("lateness.unknown"), say("advice.repeat")
}

func (s *subject) alone(pacers int) finding.Finding {
	if u := s.host.Usage; u != nil && int(u.Cores/2) > pacers {
		return say("lateness.alone", "producers", int(u.Cores/2), "cores", true) // engine.pacerRate
	}
	return say("lateness.alone", "producers", pacers)
}

// wakeUpDelayShare is the fraction of all lateness that cannot be the pacers' own.
func (s *subject) wakeUpDelayShare() float64 {
	if s.Latency.Send.Lateness == nil || s.Latency.Send.HeldUp == nil || s.Latency.Send.Lateness.MeanNS == nil || s.Latency.Send.HeldUp.MeanNS == nil || *s.Latency.Send.Lateness.MeanNS <= 0 {
		return 0
	}
	return *s.Latency.Send.HeldUp.MeanNS / *s.Latency.Send.Lateness.MeanNS
}

// wokenLate is the fraction of all lateness from delayed wake-ups of producer goroutines, after their
// pacers had released the messages.
func (s *subject) wokenLate() float64 {
	l := s.Latency.Send.Lateness
	if s.evidence.Blocked == nil || l == nil || l.MeanNS == nil || *l.MeanNS <= 0 || l.Count == 0 {
		return 0
	}
	return min(1, float64(s.evidence.Blocked.WokenNS)/(*l.MeanNS*float64(l.Count)))
}

// spans names some of the judged percentiles, with runs of neighbours as ranges.
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
			out = append(out, finding.Percentile(judged[i]))
		default:
			out = append(out, finding.Percentile(judged[i])+" up to "+finding.Percentile(judged[j-1]))
		}
		i = j
	}
	return strings.Join(out, " and ")
}
