package series

import (
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// result adds the agents that executed the run, and their clocks, to a result.
func (m *team) result(raw *engine.Raw, r *result.Result) {
	if m.done == nil {
		return
	}
	r.Run.Gaps = absences(m.done.Gaps)
	if x := m.done.Starter; x != nil {
		r.System.StartedOn = &result.StartedOn{Agent: x.Name, Hostname: x.Host, Part: x.Part, Absences: absences(x.Absences)}
	}
	for i := range m.done.Agents {
		r.Agents = append(r.Agents, m.agent(&m.done.Agents[i]))
	}
	defer judge.Withhold(r)
	c := m.done.Clock
	negative := raw.Negative[measure.Measure]
	r.Clock = &result.FleetClock{Crosses: c.Crosses, Same: c.Same, Negative: negative.Count, WorstNegativeNS: negative.WorstNS}
	if !c.Crosses {
		return
	}
	if c.Known {
		r.Clock.BoundNS = &c.BoundNS
	}
	if !c.Same {
		judge.Blur(r.Latency.E2E.Response, r.Clock.BoundNS)
		judge.Blur(r.Latency.E2E.OnTime, r.Clock.BoundNS)
		judge.Blur(r.Latency.E2E.Service, r.Clock.BoundNS)
		for i := range r.Stages {
			if x := r.Stages[i].E2E; x != nil {
				judge.Blur(x.Response, r.Clock.BoundNS)
				judge.Blur(x.OnTime, r.Clock.BoundNS)
			}
		}
	}
}

// agent returns the result of one agent.
func (m *team) agent(t *fleet.AgentReport) result.Agent {
	a := result.Agent{
		Name: t.Name, Hostname: t.Host, Labels: t.Labels, Missing: t.Part.Missing, LostReports: t.Lost,
		Clock: result.AgentClock{Same: t.Clock.Same, OffsetNS: t.Clock.OffsetNS, Exchanges: t.Clock.Exchanges},
	}
	if m.cfg.Mode != engine.Consume {
		a.Producers = carried(t.Share.Producers, m.cfg.Plan.Producers)
	}
	if m.cfg.Mode != engine.Produce {
		a.Consumers = carried(t.Share.Consumers, m.cfg.Consumers) * m.cfg.Subscriptions
	}
	a.Absences = absences(t.Absences)
	if p := t.Part; p.Missing {
		a.Reported = &result.Reported{UntilNS: p.To}
		for i := range p.Snapshot.Counters {
			a.Reported.Sent += p.Snapshot.Counters[i].Sent
			a.Reported.Received += p.Snapshot.Counters[i].Received
		}
	}
	if t.Clock.BoundNS >= 0 {
		a.Clock.BoundNS = &t.Clock.BoundNS
	}
	if lines := t.Clock.Course.Lines; len(lines) > 0 {
		longest := lines[0]
		for _, l := range lines[1:] {
			if l.To-l.From > longest.To-longest.From {
				longest = l
			}
		}
		a.Clock.DriftPPB = int64(math.Round(longest.DriftPPB))
		for _, l := range lines[:min(len(lines), result.MostClockLines)] {
			a.Clock.Course = append(a.Clock.Course, result.ClockLine{
				FromNS: l.From - t.Clock.EpochNS, ToNS: l.To - t.Clock.EpochNS, OffsetNS: l.Offset - t.Clock.OffsetNS, DriftPPB: int64(math.Round(l.DriftPPB)), BoundNS: l.Bound,
			})
		}
	}
	for _, s := range t.Clock.Steps {
		a.Clock.Steps = append(a.Clock.Steps, result.Step{AtNS: s.At, UncertainNS: s.Uncertain, ByNS: s.By})
	}
	if k := t.Clock.Daemon; k != nil {
		a.Clock.Daemon = &result.TimeDaemon{By: k.By, BoundNS: k.BoundNS, Agrees: k.Agrees, ApartNS: k.ApartNS}
	}
	if p := t.Part; !p.Missing {
		a.Cost = &t.Cost
		a.Host = &result.AgentHost{
			Usage: &p.Host, Pacers: p.Pacers, PacerWaits: p.PacerWaits, Calibration: &p.Calibration, SlotsAbandoned: p.Abandoned, Hiccups: hiccups(&p.Snapshot.Kinds[measure.Hiccups][measure.Measure], p.Stalls, p.From, p.To),
		}
		if a.Producers > 0 {
			a.StartsNS = &t.Starts
		}
	}
	return a
}

// absences converts an agent's absences.
func absences(all []coordinator.Absence) (out []result.Absence) {
	for _, x := range all {
		absence := result.Absence{FromNS: x.From}
		if x.To != 0 {
			absence.ToNS = &x.To
		}
		out = append(out, absence)
	}
	return out
}

// carried is how many of n belong to a part.
func carried(p schedule.Part, n int) (own int) {
	for i := p.Index; i < n; i += max(1, p.Count) {
		own++
	}
	return own
}

// hosts returns the hosts of the run: this one, or for a fleet its agents' hosts, first of all the one on
// which the system was started, and before them this host if no agent is on it.
func (m *measurement) hosts(own host.Facts) []host.Facts {
	if m.team.done == nil {
		return []host.Facts{own}
	}
	var all []host.Facts
	for i := range m.team.done.Agents {
		t := &m.team.done.Agents[i]
		f := t.Facts
		if t.Procs == 0 { // its last report is missing
			f = factsOnJoining(&t.About)
		}
		f.Agent = t.Name
		if t.Procs > 0 {
			f.GOMAXPROCS = t.Procs
		}
		all = append(all, f)
	}
	if x := m.team.done.Starter; x != nil && !x.Part {
		f := x.Facts
		if f.Hostname == "" { // nothing is known of it
			f = factsOnJoining(&x.About)
		}
		f.Agent = x.Name
		all = append(all, f)
	}
	here := func(f host.Facts) bool { return f.BootID == own.BootID && f.Hostname == own.Hostname }
	if !slices.ContainsFunc(all, here) {
		all = slices.Insert(all, 0, own)
	}
	return all
}

// factsOnJoining returns what a vanished agent said of its host on joining.
func factsOnJoining(a *protocol.About) host.Facts {
	f := host.Facts{Hostname: a.Host, Cores: a.Cores}
	f.OS, f.Arch, _ = strings.Cut(a.OS, "/")
	return f
}

// longStall is the shortest stall, in ns, that no thread of weir's own causes.
const longStall = int64(10_000_000) // ns

// hiccups sums up scheduling stalls; nil if they were not recorded. from and to bound the measured window.
func hiccups(c *measure.Counts, stalls []engine.Stall, from, to int64) *result.Hiccups {
	n := c.Total()
	if n == 0 {
		return nil
	}
	held := int64(0)
	for _, s := range stalls {
		if s.To-s.From >= longStall {
			held += max(0, min(s.To, to)-max(s.From, from))
		}
	}
	return &result.Hiccups{Count: n, P50NS: c.Percentile(50), P99NS: c.Percentile(99), P999NS: c.Percentile(99.9), MaxNS: c.Max(), HeldNS: &held}
}
