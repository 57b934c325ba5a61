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

// A Party is an agent of a run by several, as the verdict needs it.
type Party struct {
	Agent *result.Agent
	Cost  Cost    // of the instrument on its host
	PerS  float64 // the most messages/s that it offers; 0: it sends none
}

// inputs is what the checks of a host are held against on an agent's.
func (p *Party) inputs(in *Inputs) *Inputs {
	own := *in
	own.Host, own.Cost, own.HighestPerS = nil, p.Cost, p.PerS
	own.Consuming = in.Consuming || p.Agent.Producers == 0
	if h := p.Agent.Host; h != nil {
		own.Host = &result.Host{Usage: h.Usage, Lanes: h.Lanes, LaneWaits: h.LaneWaits, Calibration: h.Calibration, Hiccups: h.Hiccups}
	}
	return &own
}

// overAll does a check of a host for every agent, and returns the worst, which its
// value begins with the name of.
func overAll(in *Inputs, check func(*Inputs) (result.Check, float64)) result.Check {
	var worst result.Check
	most, of := -1.0, ""
	var bad, silent []string
	for i := range in.Agents {
		p := &in.Agents[i]
		c, part := check(p.inputs(in))
		switch {
		case c.Name == CheckHeadroom && p.Agent.Producers == 0:
		case c.Status == result.NotRun:
			silent = append(silent, p.Agent.Name)
		case c.Status != result.Valid:
			bad = append(bad, p.Agent.Name)
		}
		told := c.Status == worst.Status && (worst.With != "") != (c.With != "")
		if worst.Name == "" || rankOf(c.Status) > rankOf(worst.Status) || told && c.With == "" || c.Status == worst.Status && !told && part > most {
			worst, most, of = c, part, p.Agent.Name
		}
	}
	if worst.Status == result.NotRun {
		return worst
	}
	worst.Value = of + ": " + worst.Value
	if others := slices.DeleteFunc(bad, func(n string) bool { return n == of }); len(others) > 0 {
		worst.Value += "; also beyond it: " + named(others)
	}
	if len(silent) > 0 {
		worst.Value += "; not looked at: " + named(silent)
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

// fleetChecks judges what only a run by several agents can have wrong.
func fleetChecks(in *Inputs) []result.Check {
	if len(in.Agents) == 0 {
		return nil
	}
	return []result.Check{agents(in), start(in), clocks(in)}
}

// vanished names the agents that are missing.
func (in *Inputs) vanished() []string {
	var names []string
	for _, p := range in.Agents {
		if p.Agent.Missing {
			names = append(names, p.Agent.Name)
		}
	}
	return names
}

// shortfall is the part of the messages scheduled that was not sent.
func (in *Inputs) shortfall() float64 {
	if in.Scheduled == 0 {
		return 0
	}
	return float64(in.Scheduled-min(in.Sent, in.Scheduled)) / float64(in.Scheduled)
}

// agents checks that all took part from beginning to end.
func agents(in *Inputs) result.Check {
	c := result.Check{Name: CheckAgents, Status: result.Valid, Limit: "all from beginning to end"}
	var says []string
	lost := false
	for _, p := range in.Agents {
		a := p.Agent
		if a.LostReports > 0 {
			lost = true
			says = append(says, fmt.Sprintf("%s of the reports of %s never came", count(a.LostReports), a.Name))
		}
		if a.Missing && len(a.Absences) == 0 {
			says = append(says, a.Name+" gave no figures")
		}
		for i, x := range a.Absences {
			switch {
			case x.ToNS != nil:
				says = append(says, fmt.Sprintf("%s was not heard of from %s to %s", a.Name, atSecond(x.FromNS), atSecond(*x.ToNS)))
			case a.Missing && i == len(a.Absences)-1:
				says = append(says, fmt.Sprintf("%s vanished at %s", a.Name, atSecond(x.FromNS)))
			default:
				says = append(says, fmt.Sprintf("%s was not heard of from %s on", a.Name, atSecond(x.FromNS)))
			}
		}
	}
	gone := in.vanished()
	if in.DiskFull && (lost || len(gone) > 0) {
		c.Value = "the coordinator's disk was full: " + named(says)
		c.Status = result.Invalid
		c.Why = "The agents' reports found no room where the run was coordinated (the folder of WEIR_FLEET_DIR), and were not taken from then on: what the agents did afterwards is in no figure. They are not to blame. Make room there, and run it again."
		return c
	}
	if len(says) == 0 {
		c.Value = fmt.Sprintf("all %d", len(in.Agents))
		return c
	}
	c.Value = named(says)
	switch {
	case lost:
		c.Status = result.Invalid
		c.Why = "What those reports held is in no figure. Look at the coordinator's NATS server, and at the way there."
	case len(gone) > 0 && in.shortfall() > rateShortfall:
		c.Status = result.Invalid
		c.Why = fmt.Sprintf("What %s was to send was not sent, so that the load was not the one that was asked for. What had been reported until then is counted.", named(gone))
	case len(gone) > 0:
		c.Status = result.Suspect
		c.Why = "The load was kept all the same. What had been reported until then is counted; what happened there afterwards is not known."
	default:
		c.Status = result.Suspect
		c.Why = "It went on by itself, and all of its reports came afterwards; but a host or a network that stands still for so long may have delayed messages too."
	}
	return c
}

// atSecond writes an instant of the run.
func atSecond(ns int64) string { return fmt.Sprintf("%.1f s", time.Duration(ns).Seconds()) }

// start checks that the agents began at one instant.
func start(in *Inputs) result.Check {
	most := startMost
	if w := time.Duration(startPart * float64(in.Window)); in.Window > 0 && w < most {
		most = w
	}
	limit := nanos(int64(most)) + " between the first and the last"
	var first, last *result.Agent
	senders := 0
	for _, p := range in.Agents {
		a := p.Agent
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
		return inapplicable(CheckStart, limit, "No two agents send.")
	case first == last:
		return notRun(CheckStart, limit, "No two agents began to send.")
	}
	apart := *last.StartsNS - *first.StartsNS
	c := result.Check{Name: CheckStart, Status: result.Valid, Limit: limit, Value: fmt.Sprintf("%s between %s and %s", nanos(apart), first.Name, last.Name)}
	if time.Duration(apart) > most {
		c.Status = result.Suspect
		c.Why = "The agents did not begin together: their messages lie otherwise against each other than the scenario has it. A quieter host, or clocks that are better known, bring them together."
	}
	return c
}

// clocks holds the bound of the clocks against the times that need two of them.
func clocks(in *Inputs) result.Check {
	limit := fmt.Sprintf("%s of e2e at each percentile (suspect to %s)", percent(latenessValid), percent(latenessSuspect))
	k := in.Clock
	switch {
	case k == nil || !k.Crosses:
		return inapplicable(CheckClock, limit, "No message goes from one agent to another, so that no figure needs two clocks.")
	case in.E2E == nil:
		return inapplicable(CheckClock, limit, "No figure needs two clocks.")
	case k.BoundNS == nil:
		return result.Check{
			Name: CheckClock, Status: result.Invalid, Limit: limit, Value: "not known",
			Why: "The clocks of two agents could not be compared, so that no time from one to the other is known; what the sender's side has stands. Look at the connection between agents and coordinator, or keep a message's producer and consumer together (placement: paired).",
		}
	}
	c := result.Check{Name: CheckClock, Status: result.NotRun, Limit: limit, Why: "Too few messages for a percentile to hold it against."}
	bound := *k.BoundNS
	worst := -1.0
	n := in.E2E.Count + in.E2E.Censored
	for i := range in.E2E.Percentiles {
		row := &in.E2E.Percentiles[i]
		if row.P >= 100 || !stats.Supported(n, row.P) {
			continue
		}
		part := float64(bound) / float64(max(1, row.NS))
		if part <= worst {
			continue
		}
		worst = part
		c.Value = fmt.Sprintf("±%s of %s is %s at %s", nanos(bound), nanos(row.NS), percent(part), name(row.P))
		switch {
		case part <= latenessValid:
			c.Status, c.Why = result.Valid, ""
		case part > latenessSuspect && row.P == 50:
			c.Status = result.Invalid
			c.Why = "End-to-end times are mostly what the clocks do not know of each other. Keep a message's producer and consumer on one host (placement: paired), or bring the agents nearer to the coordinator."
		default:
			c.Status = result.Suspect
			c.Why = "What the clocks do not know of each other is a visible part of the end-to-end times: read them with their ±."
		}
	}
	if k.Same && c.Value != "" {
		c.Value = "one clock: " + c.Value
	}
	return disturbed(in, c)
}

// disturbed adds to the check of the clocks what was found of them in the run.
func disturbed(in *Inputs, c result.Check) result.Check {
	k := in.Clock
	add := func(s string) { c.Value = strings.TrimPrefix(c.Value+"; "+s, "; ") }
	if k.Negative > 0 {
		add(fmt.Sprintf("%s deliveries before they were sent, by up to %s", count(k.Negative), nanos(k.WorstNegativeNS)))
	}
	steps := 0
	for _, p := range in.Agents {
		for _, s := range p.Agent.Clock.Steps {
			if steps++; steps <= mostNamed {
				add(fmt.Sprintf("the clock of %s stepped by %s at %s", p.Agent.Name, signed(s.ByNS), atSecond(s.AtNS)))
			}
		}
	}
	if steps > mostNamed {
		add(fmt.Sprintf("%d steps in all", steps))
	}
	var doubted []string
	apart := int64(0)
	for _, p := range in.Agents {
		if y := p.Agent.Clock.Chrony; y != nil && !y.Agrees {
			doubted = append(doubted, p.Agent.Name)
			apart = max(apart, y.ApartNS)
		}
	}
	if len(doubted) > 0 {
		add(fmt.Sprintf("chrony says otherwise of %s, by up to %s more than both bounds allow", named(doubted), nanos(apart)))
	}
	switch {
	case k.WorstNegativeNS > *k.BoundNS:
		c.Status = result.Invalid
		c.Why = "A message came before it was sent by more than the clocks can be off by what is known of them: the bound does not hold. Use no end-to-end time of this run, and look at what sets the clocks of these hosts."
	case steps > 0 && c.Status != result.Invalid:
		c.Status = result.Suspect
		c.Why = "A clock was set, or changed its rate, in mid-run. End-to-end times are corrected for it as well as the exchanges tell, and their ± holds the time until it was noticed. See what sets the clocks of that host."
	case len(doubted) > 0 && c.Status != result.Invalid:
		c.Status = result.Suspect
		c.Why = "What the exchanges measured and what chrony says of the wall clocks of both hosts cannot both be true. The exchanges need nothing of the wall clocks, so that mostly chrony follows a wrong source: see chronyc tracking on both hosts."
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
