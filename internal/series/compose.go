package series

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/export"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// compose builds the result from the engine's measurements.
func (m *measurement) compose(raw *engine.Raw) *result.Result {
	s := m.scenario
	seconds := float64(raw.To-raw.From) / 1e9
	facts := raw.Facts
	options := map[string]any{}
	for k, v := range s.System.Settings() {
		options[k] = v
	}
	r := &result.Result{
		Schema: result.Schema,
		Run: result.Run{
			ID: m.id, Name: s.Name, StartedAt: m.started.Format(time.RFC3339Nano),
			Epoch:    result.Epoch{Wall: raw.Epoch.Wall.UTC().Format(time.RFC3339Nano), MonotonicNS: raw.Epoch.MonotonicNS, BootID: raw.Epoch.BootID},
			MeasureS: seconds, HorizonS: judge.Horizon(seconds), Weir: buildinfo.Build(), Interrupted: raw.Interrupted, Seed: s.Seed, Loop: result.LoopOpen, Mode: s.Mode.String(), Number: uint64(m.run),
		},
		System: result.System{
			Driver: s.System.Definition.Name, Client: buildinfo.Client(s.System.Definition), ClientPath: clientPath(s.System.Config), Batch: batch(s), ConsumeBatch: consumeBatch(s),
			Server:    result.Server{Name: facts.Name, Version: facts.Version, Nodes: facts.Nodes},
			Guarantee: facts.Confirms.Guarantee.String(), Copies: facts.Confirms.Copies.String(), Stable: facts.Confirms.Stable.String(),
			Options: options, Discards: facts.Discards, Discarded: discarded(raw.Discarded),
		},
		Messages:    raw.Measured,
		MessagesAll: raw.All,
		Throughput:  throughput(raw, seconds, s.Mode == engine.Consume),
		Latency:     latency(raw, m.scenario.Objectives, m.percentiles),
		Host:        m.hostOf(raw),
		Events:      m.folder.Events() + len(raw.Errors) + len(raw.Stalls),

		Subscriptions: raw.Shares,
		Stages:        stages(raw, s, m.percentiles),
		Churn:         churned(raw.Churned),
		Pause:         paused(raw.Paused, m.percentiles),
		OfRun:         m.ofRun(raw),
		Streams:       raw.Streams,
	}
	if raw.Ended >= int64(s.WarmUp) {
		r.Run.WarmUpS = new(s.WarmUp.Seconds())
	}
	if raw.Closed {
		r.Run.Loop = result.LoopClosed
	}
	if raw.Gone != nil {
		r.Run.Gone = &result.Gone{FromNS: raw.GoneFrom, Why: raw.Gone.Error(), Answers: driver.IsAnswer(raw.Gone)}
	}
	for _, c := range slices.Backward(m.components()) {
		c.result(raw, r)
	}
	r.Wire = m.wireOf(raw, r)
	r.Evidence = m.evidence(raw)
	r.Verdict = judge.Verdict(r, s.Objectives)
	r.Figures = export.Flat(r)
	return r
}

// discarded returns what the system and client libraries counted as dropped in the run.
func discarded(of []driver.Discarded) (all []result.Discarded) {
	for _, d := range of {
		by := result.BySystem
		if d.Client {
			by = result.ByClient
		}
		all = append(all, result.Discarded{Counter: d.Counter, By: by, Messages: d.Messages})
	}
	return all
}

// throughput returns the rates of the window. The receive rate has its own window if a backlog is drained,
// if nothing is sent, and if a closed loop sends a fixed count. A closed loop has no offered rate.
func throughput(raw *engine.Raw, seconds float64, consuming bool) result.Throughput {
	if seconds <= 0 {
		return result.Throughput{}
	}
	per := func(n uint64) float64 { return float64(n) / seconds }
	w := raw.Snapshot.Window
	t := result.Throughput{
		SentPerS: per(w.Sent), ConfirmedPerS: per(w.Confirmed), SentBytesPerS: per(w.SentBytes), ReceiveS: seconds,
	}
	received, bytes := per(w.Received), per(w.ReceivedBytes)
	t.ReceivedPerS, t.ReceivedBytesPerS = &received, &bytes
	if raw.All.Scheduled > 0 && !consuming {
		t.SendS = seconds
	}
	if !raw.Closed {
		t.OfferedPerS = per(raw.Measured.Scheduled)
	}
	if d := cmp.Or(raw.Drained, raw.Receiving); d != nil {
		t.ReceivedPerS, t.ReceivedBytesPerS, t.ReceiveS = nil, nil, max(0, float64(d.To-d.From)/1e9)
		if messages, bytes, known := d.PerSecond(); known {
			t.ReceivedPerS, t.ReceivedBytesPerS = &messages, &bytes
		}
	}
	return t
}

// latency returns the distributions of the measured phase, with the percentiles of the objectives and those
// in asked.
func latency(raw *engine.Raw, objectives []judge.Objective, asked []float64) result.Latency {
	also := map[string][]float64{}
	for _, o := range objectives {
		if p, ok := o.Percentile(); ok {
			name, _ := o.Latency()
			also[name] = append(also[name], p)
		}
	}
	d := func(k measure.Kind) *result.Dist {
		name, _, _ := strings.Cut(k.String(), ".")
		return judge.Distribution(&raw.Snapshot.Kinds[k][measure.Measure], &raw.Censored[k][measure.Measure].Ages, append(slices.Clone(asked), also[name]...)...)
	}
	return result.Latency{
		Send: result.Send{
			Response: d(measure.SendResponse), OnTime: d(measure.SendOnTime), Service: d(measure.SendService),
			Lateness: d(measure.SendLateness), HeldUp: d(measure.SendHeldUp), Blocked: d(measure.SendBlocked), Hop: d(measure.SendHop), Failed: d(measure.SendFailed),
		},
		E2E:    result.Pair{Response: d(measure.E2EResponse), OnTime: d(measure.E2EOnTime), Service: d(measure.E2EService)},
		RTT:    result.Pair{Response: d(measure.RTTResponse), OnTime: d(measure.RTTOnTime), Service: d(measure.RTTService)},
		Settle: d(measure.Settle), Hiccups: d(measure.Hiccups),
	}
}

// hostOf describes this process and its host during the run. For a fleet it has aggregate values only,
// since its agents have the rest each.
func (m *measurement) hostOf(raw *engine.Raw) result.Host {
	h := result.Host{
		Pacers: raw.Pacers, PacerWaits: raw.PacerWaits,
		LedgerEvicted: raw.Evicted, SlotsAbandoned: raw.Abandoned, BacklogMax: raw.Backlog, DrainNeedsNS: max(raw.DrainNeeds, 0), ListenedNS: int64(raw.Listened),
	}
	if m.team.done == nil {
		cal := m.calibration(raw)
		h.Usage, h.Calibration, h.Hiccups = &raw.Host, &cal, hiccups(&raw.Snapshot.Kinds[measure.Hiccups][measure.Measure], raw.Stalls, raw.From, raw.To)
	}
	return h
}

// calibration returns that of this process, once it ran with the clock that it read.
func (m *measurement) calibration(raw *engine.Raw) pace.Calibration {
	if raw != nil && m.team.done == nil && len(raw.Workers) == 1 {
		return raw.Workers[0].Calibration
	}
	return m.cfg.Calibration
}

// clientPath returns what carries messages to the system; "" for the client library's own publisher.
func clientPath(c driver.Config) string {
	if l, ok := c.(driver.Labelled); ok {
		return l.ClientPath()
	}
	return ""
}

// batch describes how batches were published; "" if there were none.
func batch(s *scenario.Scenario) string {
	switch {
	case s.Mode == engine.Consume || s.Load.Batch.Max < 2:
		return ""
	case s.System.Definition.Capabilities.Batch:
		return result.BatchNative
	}
	return result.BatchOneByOne
}

// consumeBatch describes how batches were acknowledged; "" if there were none.
func consumeBatch(s *scenario.Scenario) string {
	switch {
	case s.Mode == engine.Produce || s.Consume.Batch < 2:
		return ""
	case s.Consume.Settle == driver.SettleBatch:
		return result.BatchNative
	}
	return result.BatchOneByOne
}
