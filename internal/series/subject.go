package series

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/netpartition"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/proctree"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/tcpreset"
	"github.com/weirmq/weir/result"
)

// A subject is a system on this host that suffers faults.
type subject struct {
	running *broker.Running

	mu   sync.Mutex
	pids map[string]int // current process IDs
}

func newSubject(running *broker.Running) *subject {
	x := &subject{running: running, pids: map[string]int{}}
	for _, p := range running.Processes {
		x.pids[p.Name] = p.Pids[0]
	}
	return x
}

// restarted notes the restart of a process. x may be nil.
func (x *subject) restarted(process string, pid int) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pids[process] = pid
}

// clients returns the processes that may hold client connections: this one and its descendants, without
// those of the servers and the network.
func (x *subject) clients() []int {
	all := proctree.All(proctree.Host())
	guard, _ := x.running.Guard()
	delete(all, guard)
	return append([]int{os.Getpid()}, proctree.Below(all, os.Getpid())...)
}

// processes returns the named processes with their descendants, at present.
func (x *subject) processes(names ...string) (pids []int) {
	all := proctree.All(proctree.Host())
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, name := range names {
		if pid := x.pids[name]; pid != 0 {
			pids = append(append(pids, pid), proctree.Below(all, pid)...)
		}
	}
	return pids
}

// system returns the subject of faults. now is the time since the epoch of the run; since converts an
// instant of the host's monotonic clock to it.
func (x *subject) system(now func() int64, since func(monotonicNS int64) int64) fault.System {
	s := fault.System{
		Order: func(ctx context.Context, do string, by time.Duration, processes ...string) (result.Span, error) {
			took, err := x.running.Order(ctx, broker.Order(do), by, processes...)
			return result.Span{FromNS: since(took.BeganNS), ToNS: since(took.EndedNS)}, err
		},
		Sever: func(group tcpreset.Group, processes ...string) (int, error) {
			return tcpreset.Reset(group, x.clients(), x.processes(processes...))
		},
		Now: now,
	}
	for _, p := range x.running.Processes {
		one := fault.Server{Name: p.Name, Node: p.Node, At: p.At}
		if p.Node <= len(x.running.Address) { // also for a host name
			one.At = append([]string{hostPort(x.running.Address[p.Node-1])}, p.At...)
		}
		s.Servers = append(s.Servers, one)
	}
	return s
}

// reached is where clients on other hosts reach the servers, which listen at bind; "": loopback.
func (x *subject) reached(bind string) (all []protocol.Server) {
	if bind == "" {
		bind = "127.0.0.1"
	}
	for _, s := range x.system(nil, nil).Servers {
		all = append(all, protocol.Server{Name: s.Name, Node: s.Node, Address: append(s.At, "")[0], Host: bind, Ports: tcpreset.Ports(x.processes(s.Name))})
	}
	return all
}

// disturb executes a scenario's faults on the servers, in a run that another host coordinates.
func (x *subject) disturb(ctx context.Context, s *scenario.Scenario, d agent.Disturbance) {
	clock := pace.NewClock()
	// The run's clock may differ from the host's: only elapsed time is the same.
	system := x.system(d.Clock.Now, func(monotonicNS int64) int64 {
		return d.Clock.Now() - (clock.Epoch().MonotonicNS + clock.Now() - monotonicNS)
	})
	system.Leaders, system.Keep, system.Tell = d.Leaders, d.Keep, d.Tell
	if s.Cuts() {
		system.Part, system.Parting = x.running.Part, netpartition.Means
	}
	servers, _ := fault.Apart(s.Faults)
	fault.Conduct(ctx, system, servers, s.WarmUp, max(0, s.Length()-s.WarmUp))
}
