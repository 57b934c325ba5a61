package series

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet"

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

// Start starts the system of a scenario on this host. An agent calls it for a run with the system on its
// host (agent.Agent.Start). bind is the address that its servers listen on, "": loopback.
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

// sample records the host of a system until the system is stopped, and keeps the samples until they are
// asked for.
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

// apart describes what the servers of a run have separately.
type apart struct {
	places []broker.Place // one per node; nil: all together
	disks  bool
	slow   bool // their data are on a file system that can be slowed
	cuts   bool // each node has a control group
}

// serve starts real servers, installing them first if necessary. bind is where they listen, "": on
// loopback; within is where to start them.
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

// install installs the servers of a system, unless installed.
func (h *Host) install(ctx context.Context, sys *scenario.System, cache string, note func(string)) (*broker.Installation, error) {
	return broker.Ensure(ctx, broker.Installing{Self: h.Self, Driver: sys.Definition.Name, Recipe: sys.Recipe, Cache: cache, Note: note})
}

// servers are the system that weir starts, on this host or an agent's.
type servers struct {
	*measurement
	idle
	running   *broker.Running      // on this host; nil: nothing
	installed *broker.Installation // what was started with start: process
	subject   *subject             // the same, for faults
	there     *fleet.System        // started on an agent's host; nil: nothing
	ended     bool                 // the system here is being stopped
	died      []death
}

// start starts the system and connects the scenario to it.
func (m *servers) start(ctx context.Context, stop <-chan struct{}) (err error) {
	name := m.scenario.System.Definition.Name
	starting, abort := abortable(ctx, stop)
	defer abort()
	var address []string
	var options map[string][]string
	switch {
	case m.team.startOn != "" && m.team.paused != nil:
		m.there = &fleet.System{Address: m.team.paused.Address, Options: m.team.paused.Options, Started: m.team.paused.Started}
		return nil
	case m.team.startOn != "":
		m.observer.Doing("starting " + name + " on the host of agent " + m.team.startOn)
		if m.there, err = m.team.bring(starting); m.there != nil {
			address, options = m.there.Address, m.there.Options
		}
	case m.scenario.System.Start == scenario.StartNone || m.team.paused != nil:
		return nil
	default:
		m.observer.Doing("starting " + name)
		if m.running, err = m.bringUp(starting); m.running != nil {
			address, options = m.running.Address, m.running.Options
		}
	}
	what := "starting"
	if err = stopped(err, stop); err == nil {
		what, err = "connecting", m.scenario.Connect(address, options)
	}
	if err != nil {
		m.stop(ctx, nil)
		return fmt.Errorf("%s %s: %w", what, name, err)
	}
	if m.there != nil {
		m.observer.Note("started %s on the host of agent %s at %s", name, m.team.startOn, strings.Join(address, ", "))
		return nil
	}
	m.mu.Lock()
	m.subject = newSubject(m.running)
	m.mu.Unlock()
	m.observer.Note("started %s at %s", m.what(), strings.Join(address, ", "))
	return nil
}

func (m *servers) stop(ctx context.Context, raw *engine.Raw) {
	name := m.scenario.System.Definition.Name
	if m.there != nil {
		if err := m.team.fleet.End(context.WithoutCancel(ctx), m.team.startOn, m.id); err != nil {
			m.observer.Complain(fmt.Errorf("ending %s: %w", name, err))
		}
	}
	if m.running == nil {
		return
	}
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	limit := max(20*time.Second, m.running.EndsWithin())
	if raw != nil && raw.Gone != nil { // the rest of a cluster cannot stop in order; its guard ends it, even after us
		limit = 5 * time.Second
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := m.running.Stop(ending); !m.tellOfDeaths() && err != nil {
		m.observer.Complain(fmt.Errorf("stopping %s: %w", name, err))
	}
}

// bringUp starts the scenario's system on this host: the embedded one, or real servers, installing them
// first if necessary.
func (m *servers) bringUp(ctx context.Context) (*broker.Running, error) {
	sys := &m.scenario.System
	bind, within, places := m.link.bind()
	if sys.Start == scenario.StartEmbedded {
		return broker.StartEmbedded(ctx, broker.Embedded{
			Self: m.host.Self, Definition: sys.Definition, Nodes: sys.Nodes, Options: m.scenario.ServerOptions(), Log: m.host.Log,
			Bind: bind, Within: within, OnEvent: m.event,
		})
	}
	own := apart{places: places, disks: m.scenario.Fills(), slow: m.scenario.Slows(), cuts: m.scenario.Cuts() && m.team.remote()}
	running, installed, err := m.host.serve(ctx, sys, bind, within, own, func(line string) { m.observer.Note("%s: %s", sys.Recipe.Name, line) }, m.event)
	m.installed = installed
	return running, err
}

// what names the started system and its number of processes.
func (m *servers) what() string {
	if m.scenario.System.Start == scenario.StartEmbedded {
		return m.scenario.System.Definition.Name + " in a process of its own"
	}
	n := len(m.running.Processes)
	if n == 1 {
		return m.scenario.System.Recipe.Title + " in a process of its own"
	}
	return fmt.Sprintf("%s in %d processes of their own", m.scenario.System.Recipe.Title, n)
}

// startedBy describes the system that weir started.
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

// processesOf returns the processes of a system when weir started it.
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

// event handles an event of a server that weir started, until the system is stopped.
func (m *servers) event(e broker.ServerEvent) {
	m.mu.Lock()
	ended, meter, at := m.ended, m.meter.host, int64(0) // before the epoch is known
	if m.epoch != 0 {
		at = e.MonotonicNS - m.epoch
	}
	m.mu.Unlock()
	if ended {
		return
	}
	m.mu.Lock()
	m.died = slices.DeleteFunc(m.died, func(d death) bool { return d.event.Process == e.Process })
	switch {
	case e.Ended == "":
		m.subject.restarted(e.Process, e.Pid)
	case !e.ByFault: // reported in the table of faults
		m.died = append(m.died, death{e, at})
	}
	m.mu.Unlock()
	if e.Ended == "" {
		meter.Restarted(e.Process, e.Pid)
	}
	m.measurement.event(engine.Event{At: at, Kind: "server", Text: e.String()})
}

// A death is an unrequested end of a server.
type death struct {
	event broker.ServerEvent
	at    int64 // ns since the epoch; 0 if before
}

// tellOfDeaths reports servers that ended by themselves and were not restarted, and returns whether there
// were any: errors in stopping the system are then expected.
func (m *servers) tellOfDeaths() bool {
	m.mu.Lock()
	died := slices.Clone(m.died)
	m.mu.Unlock()
	name := m.scenario.System.Definition.Name
	for _, d := range died {
		who := name
		if d.event.Process != name {
			who = fmt.Sprintf("%s: %s on node %d", name, d.event.Process, d.event.Node)
		}
		when := "before the run began"
		if d.at > 0 {
			when = fmt.Sprintf("%.1f s into the run", float64(d.at)/1e9)
		}
		m.observer.Complain(fmt.Errorf("%s ended by itself %s: %s", who, when, ending(d.event.Ended)))
	}
	return len(died) > 0
}

// ending adds its number to the signal that ended a server: "killed (signal 9)".
func ending(why string) string {
	if name, by := strings.CutPrefix(why, "signal: "); by {
		for n := syscall.Signal(1); n < 32; n++ {
			if n.String() == name {
				return fmt.Sprintf("%s (signal %d)", name, n)
			}
		}
	}
	return strings.ReplaceAll(why, "\n", "; ")
}
