package series

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/outliers"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// write writes the folder, the most important files first in case the disk is almost full. Every error
// names its file; whatever could be written stays.
func (m *measurement) write(ctx context.Context, raw *engine.Raw, r *result.Result) error {
	f := m.folder
	for k := range measure.NumKinds {
		for p := range measure.NumPhases {
			_ = f.AppendCensored(k, p, 0, raw.Ended, &raw.Censored[k][p].Ages) // the folder keeps this and the following errors
		}
	}
	for _, x := range raw.Errors {
		_ = f.AppendEvent(result.Event{TNS: raw.Ended, Kind: "error", Text: x.Class + ": " + x.Text, Count: x.Count})
	}
	for _, s := range raw.Stalls {
		_ = f.AppendEvent(hiccup(s))
	}
	r.Events = f.Events()
	_ = f.WriteResult(r)
	_ = f.WriteScenario(m.scenario.YAML())
	env := m.environment(ctx, raw)
	_ = f.WriteEnvironment(env)
	for k := range measure.NumKinds {
		if c := &raw.Snapshot.Kinds[k][measure.Measure]; c.Total() > 0 {
			_ = f.WriteHGRM(k, c, raw.Censored[k][measure.Measure].Total())
		}
	}
	m.entry.Environment = *env
	m.draw(totals(raw)) // last, since it shows what was written
	return f.Close()
}

// hiccup is a scheduling stall of the host as an event.
func hiccup(s engine.Stall) result.Event {
	long := s.To - s.From
	return result.Event{TNS: s.From, Kind: outliers.Hiccup, Text: "the host stalled for " + quantity.Time(long), DurationNS: long}
}

// environment describes where the run takes place; raw is nil before the run, when the system is not
// connected yet.
func (m *measurement) environment(ctx context.Context, raw *engine.Raw) *result.Environment {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	facts := host.Environment(ctx)
	facts.GOMAXPROCS = m.record.procs
	def := m.scenario.System.Definition
	env := &result.Environment{
		Schema: result.SchemaEnvironment,
		Weir:   result.Build{Version: buildinfo.Build(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH},
		Hosts:  m.hosts(facts),
		Clock:  result.Clock{Calibration: m.calibration(raw)},
		System: result.EnvironmentSystem{Driver: def.Name, Client: buildinfo.Client(def)},
	}
	switch {
	case m.servers.running != nil:
		env.System.Started = startedBy(m.scenario, m.servers.running, m.servers.installed)
	case m.servers.there != nil:
		env.System.Started = m.servers.there.Started
	}
	if raw != nil {
		env.Clock.EpochErrorNS = &raw.Epoch.ErrorNS
		env.System.Server = result.Server{Name: raw.Facts.Name, Version: raw.Facts.Version, Nodes: raw.Facts.Nodes}
		env.System.Settings = raw.Facts.Settings
	}
	return env
}

// draw writes report.html, like weir report --html for the folder. A log that could not be written, which
// has been reported, is shown as far as it goes.
func (m *measurement) draw(counts map[string]*measure.Counts) {
	if m.pages == nil {
		return
	}
	drawn := m.entry
	drawn.Totals = counts
	page, err := m.pages.Run(drawn, m.folder.Dir(), m.percentiles)
	if err != nil {
		m.observer.Complain(fmt.Errorf("drawing %s: %w", result.FileReport, err))
		return
	}
	_ = m.folder.WriteReport(page) // the folder keeps the error
}
