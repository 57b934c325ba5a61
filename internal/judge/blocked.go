package judge

import "github.com/weirmq/weir/result"

// hostShare is the fraction of the blocked time in which the generator's threads ran or waited for a core.
// It is 1 if unknown, since it may be as much.
func hostShare(b *result.BlockedTime) (share float64, known bool) {
	switch waited := b.PublishNS + b.FullNS; {
	case b.Unreported:
	case waited > 0 && b.LookedNS > 0:
		return float64(b.PublishNS) / float64(waited) * float64(b.BusyNS) / float64(b.LookedNS), true
	case b.PublishNS <= 0: // pacers' blocking is recorded separately, in the messages
		return 0, true
	}
	return 1, false
}

// blocked checks that the host did not cause what counts as blocking: a client library that works, or waits
// for a core, is not blocked by the system.
func blocked(s *subject) check {
	limit := say("blocked.limit", "limit", latenessValid)
	responses := Responses(&s.Latency)
	switch {
	case s.closed() || s.Consuming():
		return inapplicable(CheckBlocked, limit, say("no.rate"))
	case s.evidence.Blocked == nil:
		return inapplicable(CheckBlocked, limit, say("blocked.never"))
	case s.Latency.Send.Blocked == nil || len(responses) == 0:
		return notRun(CheckBlocked, limit, say("no.confirmation"))
	}
	share, known := hostShare(s.evidence.Blocked)
	c := notRun(CheckBlocked, limit, s.tooFewToJudge())
	worst := -1.0
	for _, r := range responses {
		for _, b := range s.Latency.Send.Blocked.Percentiles {
			row := r.All.Percentile(b.P)
			if b.P >= 100 || row == nil || !b.Supported || !row.Supported {
				continue
			}
			if part := share * float64(b.NS) / float64(max(1, row.NS)); part > worst {
				worst = part
				c = valid(CheckBlocked, limit, say("blocked.value", "waited", int64(share*float64(b.NS)), "of", r.Name, "p", b.P, "part", part, "ns", row.NS))
			}
		}
	}
	if worst > latenessValid && !known {
		return notRun(CheckBlocked, limit, say("blocked.hidden"))
	}
	return c.notes(worst > latenessValid, "blocked.host", "share", share) // the figures are marked
}
