package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// The names of the checks.
const (
	CheckRun        = "run"
	CheckAccounting = "books"
	CheckLateness   = "lateness"
	CheckRate       = "offered rate"
	CheckSamples    = "samples"
	CheckLedger     = "ledger"
	CheckOverflow   = "overflow"
	CheckNetwork    = "network"
	CheckBlocked    = "blocked"
	CheckReceived   = "received rate" // only if nothing is sent
	CheckDrain      = "drained rate"  // only if a backlog was drained
)

// Verdict judges a run by its result and against the objectives. It ignores the result's stored verdict.
// Checks that lack data in a result of an older version do not run (see Again).
func Verdict(r *result.Result, objectives []Objective) result.Verdict {
	s := subjectOf(r, objectives)
	checks := []check{run(s), accounting(s), failed(s), lateness(s), rate(s), samples(s), ledger(s), overflow(s), steady(s)}
	checks = append(checks, hostChecks(s)...)
	v := result.Verdict{Figures: figuresOf(s)}
	checks = append(checks, blocked(s), figures(s, v.Figures))
	checks = append(checks, fleetChecks(s)...)
	if r.Network != nil {
		checks = append(checks, network(r.Network))
	}
	if f := s.evidence.Filled; f != nil && f.Messages > 0 {
		checks = append(checks, drain(s))
	}
	if s.Consuming() && s.evidence.Received > 0 {
		checks = append(checks, received(s))
	}
	for _, c := range checks {
		if s.lacks(c.name) {
			c = notRun(c.name, c.limit, say("not.stored"))
		}
		v.Checks = append(v.Checks, c.stored())
	}
	v.Status = Worst(v.Checks)
	for _, o := range objectives {
		v.SLO = append(v.SLO, o.judged(r, &v))
	}
	return v
}

// Worst returns the worst status of the checks that ran; valid if none did.
func Worst(checks []result.Check) result.Status {
	worst := result.Valid
	for _, c := range checks {
		if rankOf(c.Status) > rankOf(worst) {
			worst = c.Status
		}
	}
	return worst
}

// Deciding returns the checks that determine a verdict's status: none for a valid one, only the invalid
// ones for an invalid one. It omits findings that another check has too.
func Deciding(v *result.Verdict) (checks []result.Check) {
	for _, c := range v.Checks {
		if c.Status == v.Status && rankOf(c.Status) > rankOf(result.Valid) && c.With == "" {
			checks = append(checks, c)
		}
	}
	return checks
}

// Reasons names the checks that keep a run from being valid; "" if it is valid.
func Reasons(v *result.Verdict) string {
	var names []string
	for _, c := range Deciding(v) {
		names = append(names, c.Name)
	}
	if n := len(names) - mostReasons; n > 1 { // there is room for one more
		names = append(names[:mostReasons], fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

func rankOf(s result.Status) int {
	return slices.Index([]result.Status{result.Valid, result.Suspect, result.Invalid}, s)
}

func run(s *subject) check {
	c := valid(CheckRun, say("run.limit"), say("run.whole"))
	ended, gone, none := s.endedFor(), s.gone(), s.measuredNothing()
	switch {
	case ended != "":
		c.finds(result.Invalid, say("run.ended", "reason", ended, "nothing", none), say("run.unplanned"))
	case s.Run.Interrupted && none:
		c.finds(result.Invalid, say("run.nothing"), say("run.interrupted_early"))
	case s.Consuming() && none && !s.Booked():
		c.nothingReceived(s)
	case s.Consuming():
	case s.Messages.Sent == 0:
		c.finds(result.Invalid, say("run.unsent"), say("run.sent_nothing", "cause", nothingSent(s)))
	case s.Messages.Confirmed == 0:
		c.finds(result.Invalid, say("run.unconfirmed"), say("run.stands"))
		if by := BlockedBySystem(s.Result); by.Code != "" {
			c.why = []finding.Finding{say("system.blocks_sentence", "by", by), say("run.blocked")}
		} else if s.evidence.Errors != nil {
			c.why = []finding.Finding{say("run.refused"), say("advice.events")}
		}
	}
	switch fault := ByOwnFault(s.Result); {
	case c.status == result.Invalid:
	case gone != "":
		c.finds(result.Invalid, say("run.gone", "reason", gone, "fault", fault), say("run.mixed"))
		if fault.Code == "" {
			c.why = append(c.why, say("run.look"))
		}
	case s.Run.Interrupted:
		c.finds(result.Suspect, say("run.interrupted"), say("run.part"))
	case s.deliveredNothing() && len(s.Lost().Receivers) == 0:
		c.finds(result.Suspect, say("run.undelivered"), say("run.lower_bound"), nothingDelivered(s))
	}
	return c
}

func (s *subject) measuredNothing() bool {
	if s.Consuming() {
		return s.evidence.Received == 0
	}
	return s.Messages.Sent == 0
}

func accounting(s *subject) check {
	c := valid(CheckAccounting, say("books.limit"), say("books.balanced"))
	if err := Accounting(s.Result); err != nil {
		c.finds(result.Invalid, say("books.wrong", "error", strings.ReplaceAll(err.Error(), "\n", "; ")), say("books.fault"))
	}
	return c
}

// fellBehind reports whether enough messages are unsent due to late pacers to show in the offered rate.
func (s *subject) fellBehind() bool {
	return float64(s.evidence.Behind) > rateShortfall*float64(s.Messages.Scheduled)
}

// rate checks that the offered rate is the requested one. Messages that were not sent although the pacers
// reached them in time found the system without room: that is the system's limit, and their ages are in the
// response. If the generator was late, the shortfall is ours.
func rate(s *subject) check {
	limit := say("rate.limit", "limit", rateShortfall, "limit_late", secondRateShortfall*1e9)
	m := &s.Messages
	switch {
	case s.Consuming():
		return inapplicable(CheckRate, limit, say("no.sending"))
	case s.closed():
		return inapplicable(CheckRate, limit, say("rate.closed"))
	case m.Scheduled == 0:
		return notRun(CheckRate, limit, say("rate.unscheduled"))
	}
	missing := m.Scheduled - min(m.Sent, m.Scheduled)
	part := s.shortfall()
	inWindow := float64(s.evidence.Sent) / float64(m.Scheduled)
	value := say("rate.sent", "sent", m.Sent, "scheduled", m.Scheduled, "missing", missing > 0, "dropped", m.Dropped, "unsent", m.Unsent)
	c := valid(CheckRate, limit, value)
	behind, seconds, worst, at := 0, 0, int64(0), int64(0)
	for i := range s.Intervals {
		x := &s.Intervals[i]
		if x.LatestNS == nil {
			continue
		}
		seconds++
		if *x.LatestNS > int64(secondRateShortfall*float64(time.Second)) {
			behind++
			if *x.LatestNS > worst {
				worst, at = *x.LatestNS, int64(x.TS*1e9)
			}
		}
	}
	ours := s.fellBehind() || s.behindBy(part)
	late := behind > 0 && s.Host.PacerWaits == 0
	beyond := part > rateShortfall
	gone, slow := s.vanished(), s.slowStart()
	waited := len(gone) == 0 && !s.behindBy(1-inWindow) && !late && !beyond && s.waited() && s.evidence.Sent > 0 && inWindow < 1-waitedShortfall
	switch {
	case waited:
		value.Values["took"], value.Values["after"] = inWindow, m.Sent-min(m.Sent, s.evidence.Sent)
	case beyond && !ours && len(gone) == 0 && s.waited(): // messages that waited may have been sent in the drain
		value.Values["took"] = min(1-part, inWindow)
	case beyond && !ours && len(gone) == 0:
		value.Values["took"] = 1 - part
	}
	if value.Values["took"] != nil {
		c.limit = say("rate.limit_full", "limit", rateShortfall)
	}
	switch {
	case beyond && len(gone) > 0 && s.evidence.DiskFull:
		c.find(result.Invalid, say("rate.disk_full"))
	case beyond && len(gone) > 0:
		c.find(result.Invalid, say("rate.vanished", "agents", gone))
	case beyond && ours:
		value.Values["behind"] = true
		c.find(result.Invalid, say("rate.behind"))
	case beyond && slow > 0:
		c.find(result.Valid, say("rate.slow_start", "slow", math.Round(slow)), warmUpFor(slow))
	case beyond || waited:
		why := say("rate.waited")
		if beyond {
			why = say("rate.full")
		}
		c.find(result.Valid, append([]finding.Finding{why}, s.mostlySlowStart().findings()...)...)
	case late:
		if l := lateness(s); l.wrong() {
			c.with = CheckLateness
		}
		c.add("rate.late", "late", behind, "seconds", seconds, "worst", worst, "at", max(at, s.WindowFrom())-s.WindowFrom())
		cause, advice := s.fellBehindFor()
		if cause.Code != "lateness.busy" && cause.Code != "lateness.no_core" { // the others say less than the gaps do
			cause = finding.Finding{}
		}
		c.find(result.Suspect, say("rate.gaps", "cause", cause, "advice", advice))
	}
	return c
}

// Full reports whether a rate check (CheckRate) says that the system, not the generator, failed to take the
// rate. This is by design no reason against the figures.
func Full(c result.Check) bool {
	return c.Name == CheckRate && c.Status == result.Valid &&
		(says(c, "rate.full", "rate.waited", "rate.slow_start") || c.Codes == nil && strings.HasPrefix(c.Value, "the system took "))
}

// SlowAtFirst reports whether a check that is Full says that the system took the rate later.
func SlowAtFirst(c result.Check) bool { return Full(c) && says(c, "rate.slow_start") }

// MostlyAtFirst says of a check that is Full, as a clause, that the system took less at first than later; empty
// for others.
func MostlyAtFirst(c result.Check) finding.Finding {
	if !Full(c) || !says(c, "slow.mostly") {
		return finding.Finding{}
	}
	return say("slow.shares", "slow", c.Values["slow"], "before", c.Values["before"], "after", c.Values["after"])
}

// says reports whether a check has one of the codes. Older versions stored none.
func says(c result.Check, codes ...string) bool {
	return slices.ContainsFunc(codes, func(code string) bool { return slices.Contains(c.Codes, code) })
}

// samples reports which percentiles are omitted. Too few samples for some percentiles is fine; too few for
// all leaves only a count and a maximum, which is a reservation.
func samples(s *subject) check {
	limit := say("samples.limit", "limit", stats.MinBeyond)
	d := first(s.response(), s.e2e())
	switch {
	case d == nil && s.Consuming():
		return inapplicable(CheckSamples, limit, say("no.latencies"))
	case d == nil:
		return notRun(CheckSamples, limit, say("samples.none"))
	}
	n := d.Count + d.Censored
	value := say("samples.count", "samples", n)
	c := valid(CheckSamples, limit, value)
	if !stats.Supported(n, 50) {
		value.Values["few"] = true
		c.find(result.Suspect, say("samples.median", "needs", stats.Needed(50)))
		return c
	}
	for i := range d.Percentiles {
		if p := d.Percentiles[i].P; p < 100 && !stats.Supported(n, p) {
			value.Values["below"] = p
			c.find(result.Valid, say("samples.needs", "p", p, "needs", stats.Needed(p)))
			break
		}
	}
	return c
}

func ledger(s *subject) check {
	n := s.Host.LedgerEvicted
	return valid(CheckLedger, say("ledger.limit", "limit", evictedMost), say("ledger.value", "evicted", n)).suspect(n > evictedMost, "ledger.full")
}

// drain checks that the rate of a backlog is not that of a client's buffer.
func drain(s *subject) check {
	f := s.evidence.Filled
	first, rest := f.FirstNS-f.BeganNS, f.LastNS-f.FirstNS
	c := valid(CheckDrain, say("drain.limit"), say("drain.value", "first", first, "rest", rest))
	if f.Full {
		c.add("drain.full", "held", f.Held)
		return c.suspect(true, "drain.both")
	}
	return c.suspect(float64(rest) < drainedLeast*float64(first), "drain.small")
}

// received checks that the rate of a run that only receives is not that of what a client library had
// prefetched.
func received(s *subject) check {
	c := valid(CheckReceived, say("received.limit", "limit", atFirstMost), say("received.value", "first", s.evidence.FirstCalls, "received", s.evidence.Received))
	return c.suspect(float64(s.evidence.FirstCalls) > atFirstMost*float64(s.evidence.Received), "received.few_calls")
}

func overflow(s *subject) check {
	n := s.overflown()
	return valid(CheckOverflow, say("overflow.limit", "limit", overflowMost), say("overflow.value", "samples", n)).suspect(n > overflowMost, "overflow.bound")
}

func network(n *result.Network) check {
	dropped := n.ToSystem.Carried.Overflow + n.FromSystem.Carried.Overflow
	return valid(CheckNetwork, say("network.limit"), say("network.value", "dropped", dropped)).suspect(dropped > 0, "network.dropped")
}
