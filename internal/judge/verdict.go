package judge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// The names of the checks.
const (
	CheckRun      = "run"
	CheckBooks    = "books"
	CheckLateness = "lateness"
	CheckRate     = "offered rate"
	CheckSamples  = "samples"
	CheckLedger   = "ledger"
	CheckOverflow = "overflow"
	CheckNetwork  = "network"
	CheckBlocked  = "blocked"
	CheckReceived = "received rate" // only where nothing is sent
	CheckDrain    = "drained rate"  // only where a backlog was drained
)

// Verdict judges a run by what its result holds, and against the objectives. It does
// not look at the result's own verdict. Of a result that an older version stored,
// checks may be missing what they need: they have not run then (see Again).
func Verdict(r *result.Result, objectives []Objective) result.Verdict {
	s := subjectOf(r, objectives)
	v := result.Verdict{Checks: []result.Check{
		run(s), books(s), failed(s), lateness(s), rate(s), samples(s), ledger(s), overflow(s),
	}}
	v.Checks = append(v.Checks, steady(s))
	v.Checks = append(v.Checks, hostChecks(s)...)
	v.Checks = append(v.Checks, blocked(s))
	v.Checks = append(v.Checks, fleetChecks(s)...)
	if r.Network != nil {
		v.Checks = append(v.Checks, network(r.Network))
	}
	if f := s.evidence.Filled; f != nil && f.Messages > 0 {
		v.Checks = append(v.Checks, drain(s))
	}
	if s.Consuming() && s.evidence.Received > 0 {
		v.Checks = append(v.Checks, received(s))
	}
	for i := range v.Checks {
		if c := &v.Checks[i]; s.lacks(c.Name) {
			*c = notRun(c.Name, c.Limit, unstored)
		}
	}
	v.Status = Worst(v.Checks)
	for _, o := range objectives {
		v.SLO = append(v.SLO, o.Judge(r))
	}
	return v
}

// Worst returns the worst status of the checks that ran; valid where none did.
func Worst(checks []result.Check) result.Status {
	worst := result.Valid
	for _, c := range checks {
		if rankOf(c.Status) > rankOf(worst) {
			worst = c.Status
		}
	}
	return worst
}

// Deciding returns the checks that give a verdict its status: none of a valid one, and of an
// invalid one only those that are invalid. A finding that another check has too is left out.
func Deciding(v *result.Verdict) (checks []result.Check) {
	for _, c := range v.Checks {
		if c.Status == v.Status && rankOf(c.Status) > rankOf(result.Valid) && c.With == "" {
			checks = append(checks, c)
		}
	}
	return checks
}

// Reasons names the checks that are why a run is not valid; "" of a valid one.
func Reasons(v *result.Verdict) string {
	var names []string
	for _, c := range Deciding(v) {
		names = append(names, c.Name)
	}
	if n := len(names) - mostReasons; n > 1 { // one more has room
		names = append(names[:mostReasons], fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

func rankOf(s result.Status) int {
	return slices.Index([]result.Status{result.Valid, result.Suspect, result.Invalid}, s)
}

func run(s *subject) result.Check {
	c := result.Check{Name: CheckRun, Status: result.Valid, Value: "ran to its end", Limit: "runs to its end"}
	switch {
	case s.endedFor() != "":
		c.Status, c.Value = result.Invalid, "ended early: "+s.endedFor()
		if s.measuredNothing() {
			c.Value = "nothing was measured: " + c.Value
		}
		c.Why = "The run did not go as planned: the figures until then do not describe the planned load."
	case s.Run.Interrupted && s.measuredNothing():
		c.Status, c.Value = result.Invalid, "nothing was measured"
		c.Why = "The run was interrupted before the measured window began or held a message."
	case s.Consuming() && s.evidence.Received == 0 && !s.Booked():
		c.Status = result.Invalid
		c.Value, c.Why = nothingReceived(s)
	case s.Consuming():
	case s.Messages.Sent == 0:
		c.Status, c.Value = result.Invalid, "nothing was sent"
		c.Why = "weir sent no message in the measured window: " + nothingSent(s)
	case s.Messages.Confirmed == 0:
		c.Status, c.Value = result.Invalid, "nothing was confirmed"
		c.Why = "The system confirmed none of the messages until the drain ended, so weir cannot judge the run. Check whether the system stands still, or give it a longer drain."
		if by := s.blockedBySystem(); by != "" {
			c.Why = by + "weir cannot judge a run without a confirmation."
		} else if s.evidence.Errors != nil {
			c.Why = "The system accepted none of the messages, so weir cannot judge the run. Look at the errors in events.jsonl."
		}
	}
	switch {
	case c.Status == result.Invalid:
	case s.gone() != "" && ByOwnFault(s.Result) != "":
		c.Status, c.Value = result.Invalid, ByOwnFault(s.Result)+": "+s.gone()
		c.Why = "Figures of the whole window mix the time before and after. The seconds until then (intervals in result.json) describe the system. What it still held is not known, so weir calls nothing lost."
	case s.gone() != "":
		c.Status, c.Value = result.Invalid, "the system is gone: "+s.gone()
		c.Why = "Figures of the whole window mix the time before and after. The seconds until then (intervals in result.json) describe the system. What it still held is not known, so weir calls nothing lost. Look at the system, and give it a longer drain if it was coming back."
	case s.Run.Interrupted:
		c.Status, c.Value = result.Suspect, "interrupted"
		c.Why = "The figures cover the part that ran. Let a run finish before you compare it with others."
	case s.deliveredNothing() && len(s.Lost().Receivers) == 0:
		c.Status, c.Value = result.Suspect, "nothing was delivered"
		c.Why = nothingDelivered(s)
	}
	return c
}

// measuredNothing reports whether the measured window holds no message.
func (s *subject) measuredNothing() bool {
	if s.Consuming() {
		return s.evidence.Received == 0
	}
	return s.Messages.Sent == 0
}

func books(s *subject) result.Check {
	c := result.Check{Name: CheckBooks, Status: result.Valid, Value: "balanced", Limit: "balanced"}
	if err := Books(s.Result); err != nil {
		c.Status, c.Value = result.Invalid, strings.ReplaceAll(err.Error(), "\n", "; ")
		c.Why = "weir lost count of a message: this is a fault of weir. Use none of the figures, and report it with the result folder."
	}
	return c
}

// fellBehind reports whether so many messages are unsent because the lanes were
// late that it shows in the offered rate.
func (s *subject) fellBehind() bool {
	return float64(s.evidence.Behind) > rateShortfall*float64(s.Messages.Scheduled)
}

// rate checks that what was offered is what was asked for. Messages that were
// not sent although the lanes turned to them in time found the system without
// room: that is its limit, not ours, and their ages are in the response. Where
// the generator itself was late the shortfall is ours.
func rate(s *subject) result.Check {
	c := result.Check{
		Name: CheckRate, Status: result.NotRun,
		Limit: fmt.Sprintf("sent within %s of the plan, and never over %s late; messages that a full system did not take do not count", percent(rateShortfall), nanos(int64(secondRateShortfall*float64(time.Second)))),
	}
	switch {
	case s.Consuming():
		return inapplicable(c.Name, c.Limit, "This run sends no messages.")
	case s.closed():
		return inapplicable(c.Name, c.Limit, "A closed loop offers what the system takes.")
	case s.Messages.Scheduled == 0:
		c.Why = "Nothing was scheduled in the measured window."
		return c
	}
	c.Status = result.Valid
	missing := s.Messages.Scheduled - min(s.Messages.Sent, s.Messages.Scheduled)
	part := s.shortfall()
	inWindow := float64(s.evidence.Sent) / float64(s.Messages.Scheduled)
	c.Value = fmt.Sprintf("%s of %s sent", count(s.Messages.Sent), count(s.Messages.Scheduled))
	if missing > 0 {
		c.Value += fmt.Sprintf(" (%s dropped, %s unsent)", count(s.Messages.Dropped), count(s.Messages.Unsent))
	}
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
	late := behind > 0 && s.Host.LaneWaits == 0
	beyond := part > rateShortfall
	gone := s.vanished()
	if !ours && beyond && len(gone) == 0 {
		took := 1 - part
		if s.waited() { // what waited may have been sent in the drain
			took = min(took, inWindow)
		}
		c.Value = fmt.Sprintf(fullSystem+"%s of the rate: %s", percent(took), c.Value)
		c.Limit = fmt.Sprintf("none for a full system (the generator itself: %s)", percent(rateShortfall))
	}
	waited := len(gone) == 0 && !s.behindBy(1-inWindow) && !late && !beyond && s.waited() && s.evidence.Sent > 0 && inWindow < 1-waitedShortfall
	if waited {
		c.Value = fmt.Sprintf(fullSystem+"%s of the rate: %s, %s of them after the window because the system had no room before", percent(inWindow), c.Value, count(s.Messages.Sent-min(s.Messages.Sent, s.evidence.Sent)))
		c.Limit = fmt.Sprintf("none for a full system (the generator itself: %s)", percent(rateShortfall))
	}
	switch {
	case beyond && len(gone) > 0:
		c.Status = result.Invalid
		c.Why = fmt.Sprintf("Messages that were due were not sent, because %s vanished: the run did not keep the planned load.", named(gone))
		if s.evidence.DiskFull {
			c.Why = "What was sent after the coordinator's disk was full is not known: the coordinator took no report from then on."
		}
	case beyond && ours:
		c.Status = result.Invalid
		c.Value = "the generator did not keep up: " + c.Value
		c.Why = "The generator itself was too late to send messages that were due. Lower the rate, or give it a quieter host or more cores."
	case beyond && s.slowStart() > 0:
		slow := s.slowStart()
		c.Why = fmt.Sprintf(slowSystem+"messages that were ready in time found no room %s. It carried the rate from then on. Their ages are in the response as lower bounds. %s", atFirst(slow), warmUpFor(slow))
	case beyond:
		c.Why = "The system did not take the rate: messages that were ready in time found no room. That is the system's limit, not the generator's. Their ages are in the response as lower bounds. Lower the rate to see the system unsaturated."
	case waited:
		c.Why = "The system did not take the rate: messages that were ready in time waited for room. That is the system's limit, not the generator's. The wait is in the response. Lower the rate to see the system unsaturated."
	case late:
		c.Status = result.Suspect
		if s := lateness(s).Status; s == result.Suspect || s == result.Invalid {
			c.With = CheckLateness
		}
		c.Value += fmt.Sprintf("; late in %d of %d seconds, by up to %s in the second from %s of the measurement on", behind, seconds, nanos(worst), s.atSecond(max(at, s.WindowFrom())))
		c.Why = "The generator fell behind for a moment and caught up: the load had gaps and bursts that the scenario does not ask for. Use a quieter host, or more cores."
	}
	return c
}

// slowSystem begins the reason of that check where the system was full at first only.
const slowSystem = "The system was slow at first: "

// SlowAtFirst reports whether a check that is Full says that the system took the rate later.
func SlowAtFirst(c result.Check) bool { return Full(c) && strings.HasPrefix(c.Why, slowSystem) }

// fullSystem begins what the check of the rate says of a full system.
const fullSystem = "the system took "

// Full reports whether a check of the rate (CheckRate) says that the system, and not the
// generator, did not take the rate. That is by design no reason against the figures.
func Full(c result.Check) bool {
	return c.Name == CheckRate && c.Status == result.Valid && strings.HasPrefix(c.Value, fullSystem)
}

// samples tells which percentiles are not told. Too few for some make nothing
// wrong; where they are too few for every one there is no figure left to use
// but a count and a maximum, which is a reservation.
func samples(s *subject) result.Check {
	c := result.Check{Name: CheckSamples, Status: result.Valid, Limit: fmt.Sprintf("at least %d samples beyond a percentile", stats.MinBeyond)}
	d := s.response()
	if d == nil {
		d = s.e2e()
	}
	if d == nil && s.Consuming() {
		return inapplicable(c.Name, c.Limit, "This run did not send these messages, so it has no latencies for them.")
	}
	if d == nil {
		c.Status = result.NotRun
		c.Why = "The run has no samples."
		return c
	}
	n := d.Count + d.Censored
	c.Value = count(n) + " samples"
	if n == 1 {
		c.Value = "1 sample"
	}
	if !stats.Supported(n, 50) {
		c.Status = result.Suspect
		c.Value += ": too few samples for any percentile"
		c.Why = fmt.Sprintf("p50 needs %s samples. Measure for longer, or send more.", count(stats.Needed(50)))
		return c
	}
	for i := range d.Percentiles {
		if p := d.Percentiles[i].P; p < 100 && !stats.Supported(n, p) {
			c.Value += ", enough below " + name(p)
			c.Why = fmt.Sprintf("%s needs %s samples. Measure for longer, or use only the percentiles that are not marked ~.",
				name(p), count(stats.Needed(p)))
			break
		}
	}
	return c
}

func ledger(s *subject) result.Check {
	c := result.Check{Name: CheckLedger, Status: result.Valid, Value: "weir gave up its record of " + count(s.Host.LedgerEvicted) + " messages", Limit: strconv.Itoa(evictedMost)}
	if s.Host.LedgerEvicted > evictedMost {
		c.Status = result.Suspect
		c.Why = "So many messages were out of order at once that the memory for their records was full. weir does not know what became of them. They count neither as lost nor as delivered. Their latencies are lower bounds."
	}
	return c
}

// drain checks that the rate of a backlog is not that of a client's buffer.
func drain(s *subject) result.Check {
	f := s.evidence.Filled
	first, rest := f.FirstNS-f.BeganNS, f.LastNS-f.FirstNS
	c := result.Check{
		Name: CheckDrain, Status: result.Valid, Limit: "the others take longer than the first",
		Value: fmt.Sprintf("the first delivery took %s, the others %s", nanos(first), nanos(rest)),
	}
	switch {
	case f.Full:
		c.Status = result.Suspect
		c.Value += fmt.Sprintf("; the system was full with %s messages", count(f.Held))
		c.Why = "The system was full before the consumers started. The rest was sent while they received, so the received rate is of both. Send no more than the system holds (messages, warmup), or let it hold more."
	case float64(rest) < drainedLeast*float64(first):
		c.Status = result.Suspect
		c.Why = "The backlog was small: the client library had fetched much of it when it handed over the first message. The received rate describes the library more than the system. Fill for longer, or with more messages."
	}
	return c
}

// received checks that the rate of a run that only receives is not that of what a
// client library had fetched before it handed over the first message.
func received(s *subject) result.Check {
	c := result.Check{
		Name: CheckReceived, Status: result.Valid, Limit: percent(atFirstMost) + " in the first client calls",
		Value: fmt.Sprintf("%s of %s messages came in the first client calls of the consumers", count(s.evidence.FirstCalls), count(s.evidence.Received)),
	}
	if float64(s.evidence.FirstCalls) > atFirstMost*float64(s.evidence.Received) {
		c.Status = result.Suspect
		c.Why = "The client library handed over many messages at once, so the received rate rests on few calls, or is not known. Receive more messages, or prefetch fewer."
	}
	return c
}

func overflow(s *subject) result.Check {
	c := result.Check{Name: CheckOverflow, Status: result.Valid, Value: count(s.overflown()) + " samples over 1 h", Limit: strconv.Itoa(overflowMost)}
	if s.overflown() > overflowMost {
		c.Status = result.Suspect
		c.Why = "weir counts latencies over an hour without their value: percentiles that reach them say 1 h. The maximum is exact."
	}
	return c
}

// network judges whether the network was as asked in the run, too.
func network(n *result.Network) result.Check {
	dropped := n.ToSystem.Carried.Overflow + n.FromSystem.Carried.Overflow
	c := result.Check{Name: CheckNetwork, Status: result.Valid, Value: count(uint64(dropped)) + " packets that the link could not carry", Limit: "0"}
	if dropped > 0 {
		c.Status = result.Suspect
		c.Why = "The link dropped packets that it was not asked to drop: the network was worse than the scenario says. A lower rate needs fewer packets."
	}
	return c
}

func name(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

func percent(part float64) string {
	if part > 10 {
		return fmt.Sprintf("%.0f x", part)
	}
	return strconv.FormatFloat(math.Round(part*1000)/10, 'f', -1, 64) + " %"
}

// times says how much something is in terms of what follows: "30 % of", "12 times".
func times(part float64) string {
	if part > 10 {
		return fmt.Sprintf("%.0f times", part)
	}
	return percent(part) + " of"
}

// nanos prints a duration with three significant digits in the unit that fits,
// as the tables of reports do.
func nanos(ns int64) string {
	v := float64(ns)
	for _, u := range []struct {
		name string
		ns   float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if v < u.ns*0.9995 { // what rounds up to 1,000 of a unit is one of the next
			continue
		}
		switch v /= u.ns; {
		case v >= 99.95:
			return fmt.Sprintf("%.0f %s", v, u.name)
		case v >= 9.995:
			return fmt.Sprintf("%.1f %s", v, u.name)
		}
		return fmt.Sprintf("%.2f %s", v, u.name)
	}
	return fmt.Sprintf("%d ns", ns)
}

// count prints a whole number with its thousands apart.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
