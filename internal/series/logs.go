package series

import (
	"context"
	"slices"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/outliers"
	"github.com/weirmq/weir/internal/serverlog"
	"github.com/weirmq/weir/result"
)

// How long before and after an event log lines may explain it.
const (
	before = time.Second // slow messages
	behind = time.Second // the end of a fault
)

// logs are the logs of the servers that weir started on this host.
type logs struct {
	*measurement
	follower *serverlog.Follower
	said     map[string][]*result.ServerLog // near clusters of the slowest messages, by distribution
}

// start follows the logs.
func (m *logs) start(context.Context, <-chan struct{}) error {
	if m.servers.running == nil {
		return nil
	}
	var all []serverlog.Log
	for _, p := range m.servers.running.Processes {
		for _, path := range p.Logs {
			all = append(all, serverlog.Log{Process: p.Name, Node: p.Node, Path: path})
		}
	}
	clock := m.cfg.Clock
	began := clock.Epoch().MonotonicNS
	m.follower = serverlog.Follow(func() int64 { return began + clock.Now() }, all)
	return nil
}

// stop reads the logs while the servers still run.
func (m *logs) stop(_ context.Context, raw *engine.Raw) {
	f := m.follower
	defer f.Close()
	if f == nil || raw == nil {
		return
	}
	epoch, secrets := raw.Epoch.MonotonicNS, m.secrets()
	m.said = map[string][]*result.ServerLog{}
	for _, x := range m.kept(raw) {
		for _, said := range f.Read(besideClusters(outliers.Clusters(x.messages), epoch), secrets) {
			m.said[x.of] = append(m.said[x.of], logOf(said, epoch))
		}
	}
	done := m.faults.done[:min(len(m.faults.done), mostFaultLogs)]
	if len(done) == 0 {
		return
	}
	m.faults.course.Effects(done, raw.From, raw.To, raw.Ended, fault.End{Censored: &raw.Censored, Lost: raw.Lost})
	for i, said := range f.Read(besideFaults(done, epoch), secrets) {
		if len(done[i].Processes) > 0 {
			done[i].Log = logOf(said, epoch)
		}
	}
}

func (m *logs) result(raw *engine.Raw, r *result.Result) { r.Slowest = m.slowest(raw, r) }

// mostFaultLogs is for how many faults log lines are kept.
const mostFaultLogs = 20

// besideClusters returns times, on the host's monotonic clock, of log lines that may explain slow messages.
// No line is in two of them.
func besideClusters(clusters []result.SlowCluster, epoch int64) (all []serverlog.Window) {
	for i, c := range clusters {
		w := serverlog.Window{From: epoch + c.FromNS - int64(before), To: epoch + c.ToNS + int64(serverlog.Every)}
		if i > 0 {
			w.From = max(w.From, all[i-1].To+1)
		}
		all = append(all, w)
	}
	return all
}

// besideFaults likewise returns times of log lines that may explain what followed faults: each until
// messages were confirmed again, at most until the next fault.
func besideFaults(faults []result.Fault, epoch int64) (all []serverlog.Window) {
	for i, x := range faults {
		to := x.BeganNS
		if x.UndoneNS != nil {
			to = max(to, *x.UndoneNS)
		}
		if e := x.Effect; e != nil && e.Unconfirmed != nil {
			to = max(to, e.Unconfirmed.ToNS)
		}
		if to += int64(behind); i+1 < len(faults) {
			to = max(x.BeganNS, min(to, faults[i+1].BeganNS-1))
		}
		all = append(all, serverlog.Window{From: epoch + x.BeganNS, To: epoch + to})
	}
	return all
}

// logOf converts log lines to the run's clock.
func logOf(x serverlog.Excerpt, epoch int64) *result.ServerLog {
	log := &result.ServerLog{Lines: []result.LogLine{}, More: x.More, MoreAtLeast: x.AtLeast}
	for _, l := range x.Lines {
		log.Lines = append(log.Lines, result.LogLine{TNS: l.At - epoch, Process: l.Process, Node: l.Node, Text: l.Text})
	}
	return log
}

// secrets are the scenario's secrets. What a recipe passes to its own driver is public.
func (m *logs) secrets() (all []string) {
	for _, s := range driver.Secrets(m.scenario.System.Config) {
		known := false
		for _, values := range m.servers.running.Options {
			known = known || slices.Contains(values, s.Reveal())
		}
		if !known {
			all = append(all, s.Reveal())
		}
	}
	return all
}
