package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// The names of the checks of runs by several agents.
const (
	CheckAgents = "agents"
	CheckStart  = "start"
	CheckClock  = "clock"
)

// overAll runs a host check for every agent, and returns the worst, with the agent's name before the value.
func overAll(s *subject, of func(*subject) check) check {
	var worst check
	name := ""
	var bad, silent []string
	for i := range s.Agents {
		a := &s.Agents[i]
		c := of(s.on(a))
		switch {
		case c.name == CheckHeadroom && a.Producers == 0:
		case c.status == result.NotRun:
			silent = append(silent, a.Name)
		case c.found():
			bad = append(bad, a.Name)
		}
		pointed := c.status == worst.status && (worst.with != "") != (c.with != "")
		if worst.name == "" || rankOf(c.status) > rankOf(worst.status) || c.status == worst.status && c.noted && !worst.noted || pointed && c.with == "" || c.status == worst.status && !pointed && c.part > worst.part {
			worst, name = c, a.Name
		}
	}
	if worst.status == result.NotRun {
		return worst
	}
	worst.value[0] = say("agent.of", "agent", name, "found", worst.value[0])
	if others := slices.DeleteFunc(bad, func(n string) bool { return n == name }); len(others) > 0 {
		worst.add("agent.also", "agents", others)
	}
	if len(silent) > 0 {
		worst.add("agent.unchecked", "agents", silent)
	}
	return worst
}

func fleetChecks(s *subject) []check {
	if len(s.Agents) == 0 {
		return nil
	}
	return []check{agents(s), start(s), clocks(s)}
}

func (s *subject) vanished() []string {
	var names []string
	for i := range s.Agents {
		if a := &s.Agents[i]; a.Missing {
			names = append(names, a.Name)
		}
	}
	return names
}

// shortfall is the fraction of scheduled messages that was not sent.
func (s *subject) shortfall() float64 {
	if s.Messages.Scheduled == 0 {
		return 0
	}
	return float64(s.Messages.Scheduled-min(s.Messages.Sent, s.Messages.Scheduled)) / float64(s.Messages.Scheduled)
}

// agents checks that every agent took part from start to end.
func agents(s *subject) check {
	c := valid(CheckAgents, say("agents.limit"), say("agents.all", "agents", len(s.Agents)))
	var says []finding.Finding
	lost := false
	for i := range s.Agents {
		a := &s.Agents[i]
		if a.LostReports > 0 {
			lost = true
			says = append(says, say("agents.reports_lost", "reports", a.LostReports, "agent", a.Name))
		}
		if a.Missing && len(a.Absences) == 0 {
			says = append(says, say("agents.no_figures", "agent", a.Name))
		}
		for i, x := range a.Absences {
			code, from := "agents.silent", x.FromNS-s.WindowFrom()
			if x.ToNS == nil && a.Missing && i == len(a.Absences)-1 {
				code = "agents.vanished"
			}
			silent := say(code, "agent", a.Name, "from", from)
			if x.ToNS != nil {
				silent.Values["to"] = *x.ToNS - s.WindowFrom()
			}
			says = append(says, silent)
		}
	}
	gone, loss := s.vanished(), s.Lost()
	full := s.evidence.DiskFull && (lost || len(gone) > 0)
	value := say("agents.found", "says", says, "disk_full", full)
	switch {
	case full:
		c.finds(result.Invalid, value, say("agents.disk_full"))
	case len(says) == 0:
	case lost:
		c.finds(result.Invalid, value, unusable(loss), say("agents.check_network"))
	case loss.Any():
		c.finds(result.Invalid, value, unusable(loss), say("agents.check_agent"))
	case len(gone) > 0:
		c.finds(result.Suspect, value, say("agents.complete", "agents", gone))
	default:
		c.finds(result.Suspect, value, say("agents.went_on"))
	}
	return c
}

// start checks that the agents began at the same time.
func start(s *subject) check {
	most := startMost
	if w := time.Duration(startPart * float64(s.window())); s.window() > 0 && w < most {
		most = w
	}
	limit := say("start.limit", "limit", most)
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
		return inapplicable(CheckStart, limit, say("start.one_sends"))
	case first == last:
		return notRun(CheckStart, limit, say("start.one_began"))
	}
	apart := *last.StartsNS - *first.StartsNS
	c := valid(CheckStart, limit, say("start.apart", "apart", apart, "first", first.Name, "last", last.Name))
	return c.suspect(time.Duration(apart) > most, "start.late")
}

// clocks compares the clock uncertainty with the times that involve two clocks.
func clocks(s *subject) check {
	limit := say("clock.limit", "limit", latenessValid, "limit_invalid", latenessSuspect)
	k := s.Clock
	c := notRun(CheckClock, limit, say("few.percentile"))
	switch {
	case k == nil || !k.Crosses:
		return inapplicable(CheckClock, limit, say("clock.local"))
	case s.e2e() == nil:
		return inapplicable(CheckClock, limit, say("clock.one"))
	case k.BoundNS == nil:
		c.finds(result.Invalid, say("clock.not_known"), say("clock.not_compared"))
		return c
	}
	worst := -1.0
	n := s.e2e().Count + s.e2e().Censored
	for i := range s.e2e().Percentiles {
		row := &s.e2e().Percentiles[i]
		if row.P >= 100 || !stats.Supported(n, row.P) {
			continue
		}
		part := float64(*k.BoundNS) / float64(max(1, row.NS))
		if part <= worst {
			continue
		}
		worst = part
		c = valid(CheckClock, limit, say("clock.bound", "same", k.Same, "bound", *k.BoundNS, "part", part, "p", row.P, "ns", row.NS))
		switch {
		case part <= latenessValid:
		case part > latenessSuspect && row.P == 50:
			c.find(result.Invalid, say("clock.mostly"))
		default: // the figures are marked
			c.find(result.Valid, say("clock.visible"))
		}
	}
	c.disturbed(s)
	return c
}

// disturbed adds what the run's record says about the clocks.
func (c *check) disturbed(s *subject) {
	k := s.Clock
	if k.Negative > 0 {
		c.add("clock.negative", "negative", k.Negative, "by", k.WorstNegativeNS)
	}
	steps := 0
	var doubted, by []string
	apart := int64(0)
	for i := range s.Agents {
		a := &s.Agents[i]
		for _, x := range a.Clock.Steps {
			if steps++; steps <= finding.MostNamed {
				c.add("clock.step", "agent", a.Name, "by", x.ByNS, "at", x.AtNS-s.WindowFrom())
			}
		}
		if y := a.Clock.Daemon; y != nil && !y.Agrees {
			doubted = append(doubted, a.Name)
			if !slices.Contains(by, y.Name()) {
				by = append(by, y.Name())
			}
			apart = max(apart, y.ApartNS)
		}
	}
	if steps > finding.MostNamed {
		c.add("clock.steps", "steps", steps)
	}
	if len(doubted) > 0 {
		c.add("clock.daemon", "by", strings.Join(by, " and "), "agents", doubted, "apart", apart)
	}
	switch {
	case k.WorstNegativeNS > *k.BoundNS:
		c.find(result.Invalid, say("clock.wrong"))
	case c.status == result.Invalid:
	case steps > 0:
		c.find(result.Suspect, say("clock.set"))
	case len(doubted) > 0:
		c.find(result.Suspect, say("clock.doubted"))
	}
}

// Blur records the clock uncertainty of latencies between agents in their distribution, and withdraws
// percentiles below it: all of them if bound is nil, meaning unknown. d may be nil.
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
