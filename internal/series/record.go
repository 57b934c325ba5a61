package series

import (
	"context"
	"runtime"
	"slices"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// pacing calibrates the send clock, and measures the cost of a message.
type pacing struct {
	*measurement
	idle
}

func (p *pacing) start(ctx context.Context, _ <-chan struct{}) (err error) {
	if warning := checkMemory(p.scenario); warning != "" {
		p.note("%s", warning)
	}
	p.observer.Doing("calibrating the pacing clock")
	cfg := p.scenario.Config(p.id, p.run)
	cfg.FIFO = p.fifo && p.team.fleet == nil // in a fleet the agents decide
	cfg.Wire = p.wire != WireOff
	cfg.Pace(pace.Cores())
	if cfg.FIFO && !cfg.Calibration.FIFO {
		p.observer.Note("--fifo: a pacer %s", cfg.Calibration.Why)
	}
	cfg.Clock = pace.NewClock()
	cfg.Log = p.host.Log
	cfg.OnEvent = p.event
	p.cost, err = selftest.Cost(ctx, cfg.Plan, cfg.Calibration, cfg.Pacers)
	p.cfg = cfg
	return err
}

// record records the run while it lasts, and keeps what the result needs.
type record struct {
	*measurement
	idle
	procs     int             // of the Go scheduler during the run
	slices    judge.Slices    // of the measured samples
	parts     measure.Seconds // counts of the current second
	intervals []result.Interval
	backlogs  []backlogAt // at the ends of intervals
	progress  result.Progress
	early     *judge.Early  // ends the run; nil: nothing does
	enough    chan struct{} // closed by early
}

// backlogAt is the number of waiting messages at an instant.
type backlogAt struct {
	at int64
	measure.Backlog
}

// start writes what is known before the first message, so that a killed run leaves a description.
func (m *record) start(ctx context.Context, _ <-chan struct{}) error {
	m.procs = m.cfg.Procs() // as the engine will set GOMAXPROCS for the run
	m.keep(m.folder.WriteScenario(m.scenario.YAML()))
	m.keep(m.folder.WriteEnvironment(m.environment(ctx, nil)))
	m.cfg.OnStart, m.cfg.OnInterval = m.began, m.interval
	return nil
}

// began starts intervals.hlog.
func (m *record) began(epoch pace.Epoch) {
	m.procs = runtime.GOMAXPROCS(0) // the value in force
	m.mu.Lock()
	m.epoch = epoch.MonotonicNS
	meter := m.meter.host
	m.mu.Unlock()
	meter.Mark()
	m.keep(m.folder.StartIntervals(epoch.Wall, buildinfo.Version()))
}

// until returns what ends the run early: a signal or, if requested, that its objectives are decided.
func (m *record) until(ctx context.Context, stop <-chan struct{}) <-chan struct{} {
	if !m.scenario.Until {
		return stop
	}
	m.early, m.enough = judge.WatchFor(m.scenario.Objectives, &m.slices, m.scenario.Topology.Subscriptions), make(chan struct{})
	either := make(chan struct{})
	go func() {
		select {
		case <-m.enough:
			close(either)
		case <-stop:
			close(either)
		case <-ctx.Done():
		}
	}()
	return either
}

// decided reports whether the run ended because its objectives were decided.
func (m *record) decided() bool { return m.enough != nil && latch.Closed(m.enough) }

// interval handles an interval of the engine, which may be part of a second.
func (m *record) interval(iv *measure.Interval) {
	m.slices.Add(iv)
	if m.faults.planned {
		m.faults.course.Add(iv, m.scenario.Load.Closed)
	}
	if second := m.parts.Add(iv); second != nil {
		m.second(second)
	}
	if m.early != nil && m.early.Add(iv) {
		m.early = nil
		m.event(engine.Event{At: iv.To, Kind: "decided", Text: "every objective about a percentile is decided: the run ends"})
		close(m.enough)
	}
}

// second handles a second of the run: a line for each distribution, an entry for result.json, the view.
func (m *record) second(iv *measure.Interval) {
	phase := m.phase((iv.From + iv.To) / 2)
	m.intervals = append(m.intervals, judge.Interval(iv, phase, m.scenario.Load.Closed))
	m.backlogs = append(m.backlogs, backlogAt{iv.To, slices.Clone(iv.Backlog)})
	m.keep(m.folder.AppendInterval(iv))
	m.keep(m.folder.AppendProgress(m.progress.Add(iv)))
	m.observer.Interval(iv)
}

func (m *record) result(raw *engine.Raw, r *result.Result) {
	if rest := m.parts.Rest(); rest != nil {
		m.second(rest)
	}
	for i, b := range m.backlogs {
		m.intervals[i].Backlog = b.Net(b.at, raw.Lost)
	}
	r.Intervals = m.intervals
	m.correlate(raw, &r.Latency)
}

// correlate recomputes the percentiles' intervals, using the run's slices to account for dependence between
// samples.
func (m *record) correlate(raw *engine.Raw, l *result.Latency) {
	for k, d := range map[measure.Kind]*result.Dist{
		measure.SendResponse: l.Send.Response, measure.SendService: l.Send.Service, measure.SendLateness: l.Send.Lateness,
		measure.SendHeldUp: l.Send.HeldUp, measure.SendBlocked: l.Send.Blocked, measure.SendHop: l.Send.Hop, measure.SendFailed: l.Send.Failed,
		measure.SendOnTime: l.Send.OnTime, measure.E2EOnTime: l.E2E.OnTime, measure.RTTOnTime: l.RTT.OnTime,
		measure.E2EResponse: l.E2E.Response, measure.E2EService: l.E2E.Service,
		measure.RTTResponse: l.RTT.Response, measure.RTTService: l.RTT.Service, measure.Settle: l.Settle,
	} {
		if d != nil {
			observed, censored := &raw.Snapshot.Kinds[k][measure.Measure], &raw.Censored[k][measure.Measure]
			m.slices.Widen(k, d, observed, censored)
			if of, is := withoutLateness(k, m.scenario.Load.Closed); is {
				m.slices.Stalls(d, judge.Samples{Kind: of, Observed: &raw.Snapshot.Kinds[of][measure.Measure], Censored: &raw.Censored[of][measure.Measure]}, m.oversleep(raw))
			}
		}
	}
}

// withoutLateness returns the kind of the same messages without lateness; false if k is not what a run
// reports first.
func withoutLateness(k measure.Kind, closed bool) (of measure.Kind, is bool) {
	if closed {
		return k, k == measure.SendService || k == measure.E2EService || k == measure.RTTService
	}
	return k.OnTime()
}

// oversleep is how late a thread that sleeps ordinarily wakes; in a fleet where it wakes soonest.
func (m *record) oversleep(raw *engine.Raw) int64 {
	if m.team.fleet == nil {
		return m.cfg.Calibration.P50
	}
	var all []int64
	for _, w := range raw.Workers {
		if w.Calibration.Samples > 0 {
			all = append(all, w.Calibration.P50)
		}
	}
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}
