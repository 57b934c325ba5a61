package runs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/result"
)

// watchServers starts to meter the processes of the system that weir started. It
// returns what ends it.
func (m *measurement) watchServers(clock *pace.Clock) (end func()) {
	if m.running == nil {
		return func() {}
	}
	guard, supervisor := m.running.Guard()
	var servers []host.Server
	for _, p := range processesOf(m.scenario, m.running) {
		s := host.Server{Name: p.Name, Node: p.Node, Dir: m.running.Dir}
		if len(p.Pids) > 0 {
			s.Pid = p.Pids[0] // the others stem from it
		}
		if supervisor != 0 {
			s.Dir = filepath.Join(m.running.Dir, p.Name)
		}
		servers = append(servers, s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = clock
	m.servers = host.StartServerMeter(clock, guard, []int{supervisor}, servers)
	return m.servers.Stop
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
	if e.Ended != "" {
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

// used is what those processes did in the measured window; nil where that is not
// known.
func (m *measurement) used(raw *engine.Raw) *result.Servers {
	if m.servers == nil {
		return nil
	}
	epoch := raw.Epoch.MonotonicNS - m.clock.Epoch().MonotonicNS // on the meter's clock
	span, used := m.servers.Between(raw.From+epoch, raw.To+epoch)
	if used == nil {
		return nil
	}
	return &result.Servers{SpanS: span, Processes: used}
}
