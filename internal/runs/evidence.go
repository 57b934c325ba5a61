package runs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// books checks both periods.
func (m *measurement) books(raw *engine.Raw) error {
	if m.scenario.Mode == engine.Consume {
		return nil // nothing was sent, so nothing was owed
	}
	var errs []error
	for _, x := range []struct {
		period string
		m      *result.Messages
	}{{"measured window", &raw.Measured}, {"whole run", &raw.All}} {
		// What a run cut short never came to is not in Scheduled either.
		if err := judge.Books(x.m, 0, raw.Subscriptions); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", x.period, err))
		}
	}
	if raw.Planned > 0 && raw.Planned != raw.All.Scheduled {
		errs = append(errs, fmt.Errorf("whole run: %d messages were scheduled; the plan has %d: %w", raw.All.Scheduled, raw.Planned, judge.ErrBooks))
	}
	return errors.Join(errs...)
}

// evidence is what the verdict is reached from.
func (m *measurement) evidence(raw *engine.Raw, r *result.Result) judge.Inputs {
	l := r.Latency
	in := judge.Inputs{
		Closed:      raw.Closed,
		Consuming:   m.scenario.Mode == engine.Consume,
		Received:    raw.Snapshot.Window.Received,
		Left:        raw.Left,
		Confirmed:   raw.Measured.Confirmed,
		Errors:      uint64(len(raw.Errors)),
		InWindow:    raw.Snapshot.Window.Sent,
		Waited:      m.scenario.Load.WhenFull == engine.Wait && l.Send.Blocked != nil && l.Send.Blocked.MaxNS != nil && *l.Send.Blocked.MaxNS > 0,
		Interrupted: raw.Interrupted,
		Aborted:     raw.Failed,
		Lateness:    l.Send.Lateness,
		HeldUp:      l.Send.HeldUp,
		Responses:   judge.Responses(&l),
		Response:    l.Send.Response,
		E2E:         l.E2E.Response,
		Scheduled:   raw.Measured.Scheduled,
		Sent:        raw.Measured.Sent,
		Dropped:     raw.Measured.Dropped,
		Unsent:      raw.Measured.Unsent,
		Behind:      raw.Behind,
		Blocked:     l.Send.Blocked,
		Inside:      m.inside(raw),
		LaneWaits:   raw.LaneWaits,
		Failing:     m.failing(raw),
		Evicted:     raw.Evicted,
		Books:       m.books(raw),
		Filling:     m.scenario.Mode == engine.Backlog,
		Varying:     varying(m.scenario.Load.Profile),
		Intervals:   r.Intervals,
		HighestPerS: m.highest(raw),
		Cost:        m.cost,
		Host:        &r.Host,
		Agents:      m.parties(raw, r),
		DiskFull:    m.done != nil && m.done.Full,
		Clock:       r.Clock,
		Window:      time.Duration(raw.To - raw.From),
	}
	if d := raw.Drained; d != nil {
		in.Full, in.Lay = d.Full, d.Lay
	}
	if d := raw.Drained; d != nil && d.Messages > 0 {
		in.Draining, in.DrainFirst, in.DrainRest = true, time.Duration(d.From-d.Began), time.Duration(d.To-d.From)
	}
	if d := raw.Receiving; d != nil {
		in.AtFirst = d.Opening
	}
	if raw.Gone != nil {
		in.Gone = raw.Gone.Error()
		if m.cut(raw) {
			in.Aborted, in.Gone = in.Gone, ""
		}
	}
	// Where replies confirm, the round trip is all that a sender knows.
	in.Response = first(in.Response, l.RTT.Response, l.Send.Service, l.RTT.Service)
	in.E2E = first(in.E2E, l.E2E.Service)
	for _, d := range []*result.Dist{
		l.Send.Response, l.Send.Service, l.Send.Lateness, l.Send.HeldUp, l.Send.Blocked, l.Send.Failed, l.E2E.Response, l.E2E.Service, l.RTT.Response, l.RTT.Service, l.Settle,
	} {
		if d != nil {
			in.Overflow += d.Overflow
		}
	}
	for _, s := range m.seconds {
		if s.Handed > 0 {
			in.Seconds = append(in.Seconds, s)
		}
	}
	return in
}

// failing is what the check of failed messages is made from. What was open when
// weir itself ended the run, or when an agent vanished, is not the system's failure.
func (m *measurement) failing(raw *engine.Raw) judge.Failing {
	f := judge.Failing{
		Messages: raw.All, Most: m.scenario.Failed,
		CutShort: raw.Interrupted || raw.Failed != "" || slices.ContainsFunc(raw.Parts, func(p *engine.Part) bool { return p.Missing }),
	}
	stated := 0.0
	for _, o := range m.scenario.Objectives {
		stated += o.Tolerates(&raw.Measured)
	}
	f.Most = min(1, max(f.Most, stated))
	for _, e := range raw.Errors {
		if e.Failed > f.Times {
			f.Error, f.Times = strings.TrimSuffix(e.Class+": "+e.Text, "."), e.Failed
		}
	}
	return f
}

// varying reports whether a profile offers different rates at different times. Of
// bursts alone every second may be as the one before.
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

// inside is what is known of the time in which messages were blocked: of lanes it
// is apart in the messages, of producers' goroutines some calls were looked at.
func (m *measurement) inside(raw *engine.Raw) *judge.Inside {
	if !m.scenario.System.Definition.Capabilities.PublishBlocks {
		return nil
	}
	x := raw.Inside
	in := &judge.Inside{Told: !x.Untold}
	if waited := x.PublishNS + x.FullNS; waited > 0 && x.WallNS > 0 {
		in.Host = float64(x.PublishNS) / float64(waited) * float64(x.BusyNS) / float64(x.WallNS)
	} else if x.PublishNS > 0 {
		in.Told = false // by no call
	}
	return in
}

// highest is the highest rate that was offered.
func (m *measurement) highest(raw *engine.Raw) float64 {
	if rate := engine.HighestRate(m.scenario.Plan()); rate > 0 {
		return rate
	}
	if s := float64(raw.To-raw.From) / 1e9; s > 0 { // a trace
		return float64(raw.Measured.Scheduled) / s
	}
	return 0
}

// cut reports whether the measured window ended before its time.
func (m *measurement) cut(raw *engine.Raw) bool {
	planned := int64(m.scenario.Length())
	return planned > 0 && raw.To < planned
}

// first returns the first distribution that there is.
func first(ds ...*result.Dist) *result.Dist {
	for _, d := range ds {
		if d != nil {
			return d
		}
	}
	return nil
}
