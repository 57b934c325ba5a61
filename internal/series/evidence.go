package series

import (
	"strings"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// evidence returns what the verdict needs beyond the other parts of the result.
func (m *measurement) evidence(raw *engine.Raw) *result.Evidence {
	s := m.scenario
	e := &result.Evidence{
		Subscriptions: raw.Subscriptions,
		Planned:       raw.Planned,
		EndedFor:      raw.Failed,
		Cut:           m.cut(raw),
		HighestPerS:   m.highest(raw),
		RateVaries:    varying(s.Load.Profile),
		WhenFull:      s.Load.WhenFull.String(),
		MayFail:       s.Failed,
		Sent:          raw.Snapshot.Window.Sent,
		Received:      raw.Snapshot.Window.Received,
		Behind:        raw.Behind,
		StillHeld:     raw.Left,
		Errors:        errorsOf(raw.Errors),
	}
	if m.team.done == nil {
		e.Cost = &m.cost
	} else {
		e.DiskFull = m.team.done.Full
	}
	for _, b := range raw.Blocks {
		e.BySystem = append(e.BySystem, result.Block{FromNS: b.From, ToNS: b.To, Why: b.Why, Open: b.Open})
	}
	if d := raw.Drained; d != nil {
		e.Filled = &result.Filled{Messages: d.Messages, Held: d.Lay, Full: d.Full, BeganNS: d.Began, FirstNS: d.From, LastNS: d.To}
	}
	if d := raw.Receiving; d != nil {
		e.FirstCalls = d.Opening
	}
	if s.System.Definition.Capabilities.PublishBlocks {
		x := raw.Inside
		e.Blocked = &result.BlockedTime{Unreported: x.Unreported, PublishNS: x.PublishNS, FullNS: x.FullNS, WokenNS: x.WokenNS, LookedNS: x.WallNS, BusyNS: x.BusyNS}
	}
	return e
}

// errorsOf sums up the errors of a run; nil if there are none.
func errorsOf(all []engine.ErrorCount) *result.Errors {
	if len(all) == 0 {
		return nil
	}
	e := &result.Errors{Kinds: len(all)}
	for _, x := range all {
		if x.Class == engine.ClassBlocked {
			e.Blocked += x.Failed
		}
		if x.Failed > e.Failed {
			e.Worst, e.Failed = strings.TrimSuffix(x.Class+": "+x.Text, "."), x.Failed
		}
	}
	return e
}

// varying reports whether a profile offers different rates at different times. With bursts alone every
// second may be like the one before.
func varying(profile []schedule.Phase) bool {
	for _, p := range profile {
		if p.From != p.To || len(profile) > 1 && !same(p, profile[0]) {
			return true
		}
	}
	return false
}

// same reports whether two phases differ at most in their length.
func same(a, b schedule.Phase) bool {
	a.For, b.For = 0, 0
	return a == b
}

// highest is the highest offered rate.
func (m *measurement) highest(raw *engine.Raw) float64 {
	if rate := engine.HighestRate(m.scenario.Plan()); rate > 0 {
		return rate
	}
	if s := float64(raw.To-raw.From) / 1e9; s > 0 { // a trace
		return float64(raw.Measured.Scheduled) / s
	}
	return 0
}

// cut reports whether the measured window ended early.
func (m *measurement) cut(raw *engine.Raw) bool {
	planned := int64(m.scenario.Length())
	return planned > 0 && raw.To < planned
}
