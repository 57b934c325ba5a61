package series

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/slowdisk"
	"github.com/weirmq/weir/result"
)

// Start starts the system of a scenario on this host. An agent does so for a run with the
// system on the agent's host (agent.Agent.Start). bind is the address that its servers
// listen on, "": loopback.
func (h *Host) Start(ctx context.Context, s *scenario.Scenario, bind string, doing func(string), happened func(agent.Happening)) (*agent.System, error) {
	var meter atomic.Pointer[host.ServerMeter]
	var suffers atomic.Pointer[subject]
	running, installed, err := h.serve(ctx, &s.System, bind, nil, apart{disks: s.Fills(), slow: s.Slows(), cuts: s.Cuts()}, doing, func(x broker.ServerEvent) {
		if x.Ended == "" {
			meter.Load().Restarted(x.Process, x.Pid)
			suffers.Load().restarted(x.Process, x.Pid)
		}
		happened(agent.Happening{MonotonicNS: x.MonotonicNS, Text: x.String()})
	})
	if err != nil {
		return nil, err
	}
	up := &agent.System{
		Address: running.Address, Options: running.Options, Started: startedBy(s, running, installed), Done: running.Done(), Stop: running.Stop,
	}
	x := newSubject(running)
	suffers.Store(x)
	up.Disturb = func(ctx context.Context, d agent.Disturbance) { x.disturb(ctx, s, d) }
	if _, clients := fault.Apart(s.Faults); len(clients) > 0 {
		up.Servers = x.reached(bind)
	}
	guard, supervisor := running.Guard()
	up.Guard = guard
	meter.Store(sample(up, host.Watching{Guard: guard, Own: append([]int{supervisor}, running.Disks...), Servers: serversOf(s, running)}))
	return up, nil
}

// sample has the host of a system read until the system is stopped, and its samples kept
// until they are asked for.
func sample(up *agent.System, w host.Watching) *host.ServerMeter {
	clock := pace.NewClock()
	began := clock.Epoch().MonotonicNS
	var mu sync.Mutex
	var kept host.Series
	w.Hear = func(x host.Sample) {
		mu.Lock()
		defer mu.Unlock()
		kept.Add(x.Shift(began))
	}
	meter := host.StartServerMeter(clock, w)
	if meter == nil {
		return nil
	}
	up.Samples = func(since int64) []host.Sample {
		mu.Lock()
		defer mu.Unlock()
		return kept.Take(since, protocol.MostSamples, protocol.MostProcesses)
	}
	stop, once := up.Stop, sync.OnceFunc(meter.Stop)
	up.Stop = func(ctx context.Context) error {
		once()
		return stop(ctx)
	}
	return meter
}

// apart is what servers have of their own in a run.
type apart struct {
	places []broker.Place // where those of each node are; nil: all together
	disks  bool
	slow   bool // their data lie on a file system that can be slow
	cuts   bool // those of each node are in a control group
}

// serve starts real servers, which are installed first where they are not
// there yet. bind is where they listen, "": on loopback; within is where they are started.
func (h *Host) serve(ctx context.Context, sys *scenario.System, bind string, within broker.Within, own apart, note func(string), event func(broker.ServerEvent)) (*broker.Running, *broker.Installation, error) {
	cache, err := broker.CacheDir(h.Env)
	if err != nil {
		return nil, nil, err
	}
	installed, err := h.install(ctx, sys, cache, note)
	if err != nil {
		return nil, nil, err
	}
	running, err := broker.StartSystem(ctx, broker.Serving{
		Self: h.Self, Definition: sys.Definition, Recipe: sys.Recipe, Nodes: sys.Nodes, Settings: sys.ForRecipe, Bind: bind, Cache: cache, Log: h.Log,
		Within: within, Places: own.places, Disks: own.disks, Slow: own.slow, Cuts: own.cuts, OnEvent: event,
	})
	return running, installed, err
}

// install has the servers of a system installed, where they are not there yet.
func (h *Host) install(ctx context.Context, sys *scenario.System, cache string, note func(string)) (*broker.Installation, error) {
	return broker.Ensure(ctx, broker.Installing{Self: h.Self, Driver: sys.Definition.Name, Recipe: sys.Recipe, Cache: cache, Note: note})
}

// bringUp starts the system as the scenario has it: what weir embeds, or real
// servers, which are installed first where they are not there yet.
func (m *measurement) bringUp(ctx context.Context) (*broker.Running, error) {
	sys := &m.scenario.System
	bind, within, places := m.bind()
	if sys.Start == scenario.StartEmbedded {
		return broker.StartEmbedded(ctx, broker.Embedded{
			Self: m.host.Self, Definition: sys.Definition, Nodes: sys.Nodes, Options: m.scenario.ServerOptions(), Log: m.host.Log,
			Bind: bind, Within: within, OnEvent: m.serverEvent,
		})
	}
	own := apart{places: places, disks: m.scenario.Fills(), slow: m.scenario.Slows(), cuts: m.scenario.Cuts() && m.remote()}
	running, installed, err := m.host.serve(ctx, sys, bind, within, own, func(line string) { m.observer.Note("%s: %s", sys.Recipe.Name, line) }, m.serverEvent)
	m.installed = installed
	return running, err
}

// what names the system that was started, and in how many processes it is.
func (m *measurement) what() string {
	if m.scenario.System.Start == scenario.StartEmbedded {
		return m.scenario.System.Definition.Name + " in a process of its own"
	}
	n := len(m.running.Processes)
	if n == 1 {
		return m.scenario.System.Recipe.Title + " in a process of its own"
	}
	return fmt.Sprintf("%s in %d processes of their own", m.scenario.System.Recipe.Title, n)
}

// startedBy is what is known of the system that weir started.
func startedBy(s *scenario.Scenario, running *broker.Running, installed *broker.Installation) *result.Started {
	x := &result.Started{By: s.System.Start.String()}
	if installed != nil {
		x.Recipe, x.Source, x.Version = installed.Name, installed.Source, installed.Version
	}
	if len(running.Disks) > 0 {
		x.Data = slowdisk.Means
	}
	x.Processes = processesOf(s, running)
	return x
}

// processesOf are those of a system that weir started, as they were then.
func processesOf(s *scenario.Scenario, running *broker.Running) []result.Process {
	if len(running.Processes) == 0 {
		return []result.Process{{Name: s.System.Definition.Name, Node: 1, Pids: running.Pids}}
	}
	var all []result.Process
	for _, p := range running.Processes {
		all = append(all, result.Process{Name: p.Name, Node: p.Node, Pids: p.Pids})
	}
	return all
}
