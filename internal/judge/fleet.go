package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// The names of the checks of a run by several agents.
const (
	CheckAgents = "agents"
	CheckStart  = "start"
	CheckClock  = "clock"
)

// overAll does a check of a host for every agent, and returns the worst, which its
// value begins with the name of.
func overAll(s *subject, check func(*subject) (result.Check, float64)) result.Check {
	var worst result.Check
	most, of := -1.0, ""
	var bad, silent []string
	for i := range s.Agents {
		a := &s.Agents[i]
		c, part := check(s.on(a))
		switch {
		case c.Name == CheckHeadroom && a.Producers == 0:
		case c.Status == result.NotRun:
			silent = append(silent, a.Name)
		case c.Status != result.Valid:
			bad = append(bad, a.Name)
		}
		told := c.Status == worst.Status && (worst.With != "") != (c.With != "")
		if worst.Name == "" || rankOf(c.Status) > rankOf(worst.Status) || told && c.With == "" || c.Status == worst.Status && !told && part > most {
			worst, most, of = c, part, a.Name
		}
	}
	if worst.Status == result.NotRun {
		return worst
	}
	worst.Value = "agent " + of + ": " + worst.Value
	if others := slices.DeleteFunc(bad, func(n string) bool { return n == of }); len(others) > 0 {
		worst.Value += "; also over the limit: " + agentsNamed(others)
	}
	if len(silent) > 0 {
		worst.Value += "; not checked: " + agentsNamed(silent)
	}
	return worst
}

// mostNamed is how many agents a sentence names.
const mostNamed = 5

func named(names []string) string {
	if n := len(names) - mostNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), n)
	}
	return strings.Join(names, ", ")
}

// agentsNamed names agents, and says that they are.
func agentsNamed(names []string) string {
	if len(names) == 1 {
		return "agent " + names[0]
	}
	return "agents " + named(names)
}

// fleetChecks judges what only a run by several agents can have wrong.
func fleetChecks(s *subject) []result.Check {
	if len(s.Agents) == 0 {
		return nil
	}
	return []result.Check{agents(s), start(s), clocks(s)}
}

// vanished names the agents that are missing.
func (s *subject) vanished() []string {
	var names []string
	for i := range s.Agents {
		if a := &s.Agents[i]; a.Missing {
			names = append(names, a.Name)
		}
	}
	return names
}

// shortfall is the part of the messages scheduled that was not sent.
func (s *subject) shortfall() float64 {
	if s.Messages.Scheduled == 0 {
		return 0
	}
	return float64(s.Messages.Scheduled-min(s.Messages.Sent, s.Messages.Scheduled)) / float64(s.Messages.Scheduled)
}

// agents checks that all took part from beginning to end.
func agents(s *subject) result.Check {
	c := result.Check{Name: CheckAgents, Status: result.Valid, Limit: "all agents there from beginning to end"}
	var says []string
	lost := false
	for i := range s.Agents {
		a := &s.Agents[i]
		if a.LostReports > 0 {
			lost = true
			says = append(says, fmt.Sprintf("%s of the reports of %s never came", count(a.LostReports), a.Name))
		}
		if a.Missing && len(a.Absences) == 0 {
			says = append(says, a.Name+" sent no figures")
		}
		for i, x := range a.Absences {
			switch {
			case x.ToNS != nil:
				says = append(says, fmt.Sprintf("%s was silent from %s to %s", a.Name, s.atSecond(x.FromNS), s.atSecond(*x.ToNS)))
			case a.Missing && i == len(a.Absences)-1:
				says = append(says, fmt.Sprintf("%s vanished at %s", a.Name, s.atSecond(x.FromNS)))
			default:
				says = append(says, fmt.Sprintf("%s was silent from %s on", a.Name, s.atSecond(x.FromNS)))
			}
		}
	}
	gone, loss := s.vanished(), s.Lost()
	if s.evidence.DiskFull && (lost || len(gone) > 0) {
		c.Value = "the coordinator's disk was full: " + named(says)
		c.Status = result.Invalid
		c.Why = "The agents' reports found no room on the coordinator's disk (the folder of WEIR_FLEET_DIR). What the agents did afterwards is in no figure. The agents did not cause this. Make room there, and run it again."
		return c
	}
	if len(says) == 0 {
		c.Value = fmt.Sprintf("all %d", len(s.Agents))
		return c
	}
	c.Value = named(says)
	switch {
	case lost:
		c.Status = result.Invalid
		c.Why = unusable(loss) + " Check the coordinator's NATS server, and the network to it."
	case loss.Any():
		c.Status = result.Invalid
		c.Why = unusable(loss) + " Find out why the agent ended, and run it again."
	case len(gone) > 0:
		c.Status = result.Suspect
		c.Why = fmt.Sprintf("The figures are complete: %s vanished after the measured window, and no message was open. What disturbed the host is in no figure.", agentsNamed(gone))
	default:
		c.Status = result.Suspect
		c.Why = "The agent went on by itself, and all of its reports came afterwards. But a host or a network that stands still for so long may have delayed messages too."
	}
	return c
}

// atSecond writes an instant of the run, since the end of the warm-up.
func (s *subject) atSecond(ns int64) string {
	return fmt.Sprintf("%.1f s", time.Duration(ns-s.WindowFrom()).Seconds())
}

// start checks that the agents began at one instant.
func start(s *subject) result.Check {
	most := startMost
	if w := time.Duration(startPart * float64(s.window())); s.window() > 0 && w < most {
		most = w
	}
	limit := nanos(int64(most)) + " between the first and the last"
	var first, last *result.Agent
	senders := 0
	for i := range s.Agents {
		a := &s.Agents[i]
		if a.Producers > 0 {
			senders++
		}
		if a.StartsNS == nil {
			continue
		}
		if first == nil || *a.StartsNS < *first.StartsNS {
			first = a
		}
		if last == nil || *a.StartsNS >= *last.StartsNS {
			last = a
		}
	}
	switch {
	case senders < 2:
		return inapplicable(CheckStart, limit, "Fewer than two agents send.")
	case first == last:
		return notRun(CheckStart, limit, "Fewer than two agents began to send.")
	}
	apart := *last.StartsNS - *first.StartsNS
	c := result.Check{Name: CheckStart, Status: result.Valid, Limit: limit, Value: fmt.Sprintf("%s between %s and %s", nanos(apart), first.Name, last.Name)}
	if time.Duration(apart) > most {
		c.Status = result.Suspect
		c.Why = "The agents did not begin together, so their messages are not interleaved as the scenario plans. Use quieter hosts, or a better connection to compare the clocks."
	}
	return c
}

// clocks holds the bound of the clocks against the times that need two of them.
func clocks(s *subject) result.Check {
	limit := fmt.Sprintf("%s of any percentile of e2e; over %s of p50 is INVALID", percent(latenessValid), percent(latenessSuspect))
	k := s.Clock
	switch {
	case k == nil || !k.Crosses:
		return inapplicable(CheckClock, limit, "No message goes from one agent to another, so every figure needs one clock only.")
	case s.e2e() == nil:
		return inapplicable(CheckClock, limit, "Every figure needs one clock only.")
	case k.BoundNS == nil:
		return result.Check{
			Name: CheckClock, Status: result.Invalid, Limit: limit, Value: "not known",
			Why: "The clocks of two agents could not be compared, so no time from one to the other is known. The sender's figures hold. Check the connection between agents and coordinator, or keep a message's producer and consumer together (placement: paired).",
		}
	}
	c := result.Check{Name: CheckClock, Status: result.NotRun, Limit: limit, Why: "There are too few messages for a percentile to compare with."}
	bound := *k.BoundNS
	worst := -1.0
	n := s.e2e().Count + s.e2e().Censored
	for i := range s.e2e().Percentiles {
		row := &s.e2e().Percentiles[i]
		if row.P >= 100 || !stats.Supported(n, row.P) {
			continue
		}
		part := float64(bound) / float64(max(1, row.NS))
		if part <= worst {
			continue
		}
		worst = part
		c.Value = fmt.Sprintf("the clocks are known to ±%s: %s e2e %s (%s)", nanos(bound), times(part), name(row.P), nanos(row.NS))
		switch {
		case part <= latenessValid:
			c.Status, c.Why = result.Valid, ""
		case part > latenessSuspect && row.P == 50:
			c.Status = result.Invalid
			c.Why = "End-to-end times are mostly clock uncertainty. Keep a message's producer and consumer on one host (placement: paired), or bring the agents nearer to the coordinator."
		default:
			c.Status = result.Suspect
			c.Why = "Clock uncertainty is a visible part of the end-to-end times. Read them with their ±."
		}
	}
	if k.Same && c.Value != "" {
		c.Value = "one clock: " + c.Value
	}
	return disturbed(s, c)
}

// disturbed adds to the check of the clocks what was found of them in the run.
func disturbed(s *subject, c result.Check) result.Check {
	k := s.Clock
	add := func(s string) { c.Value = strings.TrimPrefix(c.Value+"; "+s, "; ") }
	if k.Negative > 0 {
		add(fmt.Sprintf("%s deliveries seem to come before they were sent, by up to %s", count(k.Negative), nanos(k.WorstNegativeNS)))
	}
	steps := 0
	for i := range s.Agents {
		a := &s.Agents[i]
		for _, x := range a.Clock.Steps {
			if steps++; steps <= mostNamed {
				add(fmt.Sprintf("the clock of %s stepped by %s at %s", a.Name, signed(x.ByNS), s.atSecond(x.AtNS)))
			}
		}
	}
	if steps > mostNamed {
		add(fmt.Sprintf("%d steps in all", steps))
	}
	var doubted []string
	apart := int64(0)
	for i := range s.Agents {
		if y := s.Agents[i].Clock.Chrony; y != nil && !y.Agrees {
			doubted = append(doubted, s.Agents[i].Name)
			apart = max(apart, y.ApartNS)
		}
	}
	if len(doubted) > 0 {
		add(fmt.Sprintf("chrony contradicts this for %s, by up to %s more than both bounds allow", named(doubted), nanos(apart)))
	}
	switch {
	case k.WorstNegativeNS > *k.BoundNS:
		c.Status = result.Invalid
		c.Why = "A message seems to come before it was sent, by more than the bound on the clock offset: the bound does not hold. Use no end-to-end time of this run. Check what sets the clocks of these hosts."
	case steps > 0 && c.Status != result.Invalid:
		c.Status = result.Suspect
		c.Why = "A clock was set, or changed its rate, during the run. weir corrects end-to-end times for it, and their ± covers the time until it noticed. Check what sets the clocks of that host."
	case len(doubted) > 0 && c.Status != result.Invalid:
		c.Status = result.Suspect
		c.Why = "What weir measured and what chrony says about the wall clocks of both hosts cannot both be true. weir does not use the wall clocks, so chrony probably follows a wrong source: see chronyc tracking on both hosts."
	}
	return c
}

// signed writes a duration that may be less than zero.
func signed(ns int64) string {
	if ns < 0 {
		return "-" + nanos(-ns)
	}
	return "+" + nanos(ns)
}

// Blur notes in a distribution of times between agents how far its values may be
// off, and takes back the percentiles that are finer than that: all of them where
// bound is nil, and nothing is known. d may be nil.
func Blur(d *result.Dist, bound *int64) {
	if d == nil {
		return
	}
	d.ClockBoundNS = bound
	for i := range d.Percentiles {
		switch p := &d.Percentiles[i]; {
		case bound == nil:
			p.Supported, p.UnsupportedBy = false, result.ByUnknownClock
		case p.NS < *bound && p.Supported:
			p.Supported, p.UnsupportedBy = false, result.ByClock
		}
	}
}
