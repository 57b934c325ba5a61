package series

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// watchServers starts to read what this host does, and what weir uses of it, the system
// that weir started, and the processes that it was told to watch. It returns what ends it.
func (m *measurement) watchServers(clock *pace.Clock) (end func(), err error) {
	w := host.Watching{Hear: m.sampled}
	if w.Servers, err = watched(m.scenario); err != nil {
		return nil, err
	}
	if m.running != nil {
		guard, supervisor := m.running.Guard()
		w.Guard, w.Own = guard, append([]int{supervisor}, m.running.Disks...)
		w.Servers = append(serversOf(m.scenario, m.running), w.Servers...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = clock
	m.servers = host.StartServerMeter(clock, w)
	return m.servers.Stop, nil
}

// serversOf are the servers of a system that weir started, as they are read.
func serversOf(s *scenario.Scenario, running *broker.Running) []host.Server {
	_, supervisor := running.Guard()
	var all []host.Server
	for _, p := range processesOf(s, running) {
		x := host.Server{Name: p.Name, Node: p.Node, Dir: running.Dir}
		if len(p.Pids) > 0 {
			x.Pid = p.Pids[0] // the others stem from it
		}
		if supervisor != 0 {
			x.Dir = filepath.Join(running.Dir, p.Name)
			if s.Fills() || s.Slows() { // a disk is mounted where only they see it
				x.Dir = filepath.Join("/proc", strconv.Itoa(supervisor), "root", x.Dir)
			}
		}
		all = append(all, x)
	}
	return all
}

// watched are the processes that a scenario has weir watch. The error says which of them
// this host does not have.
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

// sampled takes what this host did in a second.
func (m *measurement) sampled(x host.Sample) {
	m.mu.Lock()
	epoch, began := m.epoch, m.clock.Epoch().MonotonicNS
	m.mu.Unlock()
	if x = x.Shift(began - epoch); epoch != 0 && x.ToNS > 0 {
		m.keep(m.folder.AppendSample(x))
	}
}

// sampledThere takes what the host of the agent did that has the system, in a second.
func (m *measurement) sampledThere(x host.Sample) {
	x.Agent = m.startOn
	m.mu.Lock()
	m.hostThere.Add(x)
	m.mu.Unlock()
	if x.ToNS > 0 {
		m.keep(m.folder.AppendSample(x))
	}
}

// serverEvent takes what becomes of a server of the system that weir started,
// until the system is ended.
func (m *measurement) serverEvent(e broker.ServerEvent) {
	m.mu.Lock()
	ended, servers, at := m.ended, m.servers, int64(0) // before the epoch is known
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
	case !e.ByFault: // which the table of faults tells
		m.died = append(m.died, death{e, at})
	}
	m.mu.Unlock()
	if e.Ended == "" {
		servers.Restarted(e.Process, e.Pid)
	}
	m.event(engine.Event{At: at, Kind: "server", Text: e.String()})
}

// A death is the end of a server without a request.
type death struct {
	event broker.ServerEvent
	at    int64 // ns since the epoch; 0 before it
}

// tellOfDeaths says which servers ended by themselves and were not started again,
// and reports whether any did: what stopping the system says is then no news.
func (m *measurement) tellOfDeaths() bool {
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

// used is what the servers used in the measured window, and what each host did in it; nil
// where that is not known.
func (m *measurement) used(raw *engine.Raw) (servers *result.Servers, resources []host.Sample) {
	if m.servers != nil {
		epoch := raw.Epoch.MonotonicNS - m.clock.Epoch().MonotonicNS // on the meter's clock
		span, used, all := m.servers.Between(raw.From+epoch, raw.To+epoch)
		if all != nil {
			resources = append(resources, all.Shift(-epoch))
		}
		if len(used) > 0 {
			servers = &result.Servers{SpanS: span, Processes: used}
		}
	}
	m.mu.Lock()
	there := m.hostThere.Between(raw.From, raw.To)
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
