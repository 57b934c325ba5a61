package series

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// meter records the activity of hosts, and the resources of weir and the servers.
type meter struct {
	*measurement
	host  *host.ServerMeter // this host; nil: not available
	clock *pace.Clock       // of host
	there host.Series       // the host of an agent that starts the system
}

// start begins to record this host and the resources of weir, of the system that weir started, and of
// watched processes.
func (m *meter) start(context.Context, <-chan struct{}) (err error) {
	w := host.Watching{Hear: m.sampled}
	if w.Servers, err = watched(m.scenario); err != nil {
		return err
	}
	if running := m.servers.running; running != nil {
		guard, supervisor := running.Guard()
		w.Guard, w.Own = guard, append([]int{supervisor}, running.Disks...)
		w.Servers = append(serversOf(m.scenario, running), w.Servers...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = m.cfg.Clock
	m.host = host.StartServerMeter(m.clock, w)
	return nil
}

func (m *meter) stop(context.Context, *engine.Raw) { m.host.Stop() }

func (m *meter) result(raw *engine.Raw, r *result.Result) {
	r.Servers, r.Resources = m.used(raw)
	r.Efficiency = efficiency(r, m.scenario.Price)
}

// serversOf returns the servers of a system that weir started, for the meter.
func serversOf(s *scenario.Scenario, running *broker.Running) []host.Server {
	_, supervisor := running.Guard()
	var all []host.Server
	for _, p := range processesOf(s, running) {
		x := host.Server{Name: p.Name, Node: p.Node, Dir: running.Dir}
		if len(p.Pids) > 0 {
			x.Pid = p.Pids[0] // the parent of the others
		}
		if supervisor != 0 {
			x.Dir = filepath.Join(running.Dir, p.Name)
			if s.Fills() || s.Slows() { // only the servers see its mount
				x.Dir = filepath.Join("/proc", strconv.Itoa(supervisor), "root", x.Dir)
			}
		}
		all = append(all, x)
	}
	return all
}

// watched finds the processes that a scenario watches. The error names the missing ones.
func watched(s *scenario.Scenario) ([]host.Server, error) {
	var all []host.Server
	for _, pid := range s.Watch {
		x, err := host.Watch(pid)
		if err != nil {
			return nil, fmt.Errorf("watch_pid: %w", err)
		}
		all = append(all, x)
	}
	return all, nil
}

// sampled records a sample of this host, about a second.
func (m *meter) sampled(x host.Sample) {
	m.mu.Lock()
	epoch, began := m.epoch, m.clock.Epoch().MonotonicNS
	m.mu.Unlock()
	if x = x.Shift(began - epoch); epoch != 0 && x.ToNS > 0 {
		m.keep(m.folder.AppendSample(x))
	}
}

// sampledThere records a sample of the host of the agent that has the system.
func (m *meter) sampledThere(x host.Sample) {
	x.Agent = m.team.startOn
	m.mu.Lock()
	m.there.Add(x)
	m.mu.Unlock()
	if x.ToNS > 0 {
		m.keep(m.folder.AppendSample(x))
	}
}

// used returns the servers' resources in the measured window, and each host's activity in it; nil if
// unknown.
func (m *meter) used(raw *engine.Raw) (servers *result.Servers, resources []host.Sample) {
	if m.host != nil {
		epoch := raw.Epoch.MonotonicNS - m.clock.Epoch().MonotonicNS // on the meter's clock
		span, used, all := m.host.Between(raw.From+epoch, raw.To+epoch)
		if all != nil {
			resources = append(resources, all.Shift(-epoch))
		}
		if len(used) > 0 {
			servers = &result.Servers{SpanS: span, Processes: used}
		}
	}
	m.mu.Lock()
	there := m.there.Between(raw.From, raw.To)
	m.mu.Unlock()
	if there == nil {
		return servers, resources
	}
	if span, used := there.Servers(); servers == nil {
		servers = &result.Servers{SpanS: span, Processes: used}
	} else {
		servers.Processes = append(servers.Processes, used...)
	}
	return servers, append(resources, *there)
}
