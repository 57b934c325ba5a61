package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/proctree"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/sever"
	"github.com/weirmq/weir/result"
)

// disturbance is what a run does to the servers that it started, and to the network.
type disturbance struct {
	course fault.Course

	asking sync.Mutex // one question at a time

	mu    sync.Mutex
	facts func(context.Context) (driver.Facts, error) // of the open system; nil before
	epoch int64                                       // on the host's monotonic clock
	begun chan struct{}                               // closed when epoch is known

	done []result.Fault // after the end of conduct
	said []promise      // likewise
	over chan struct{}  // closed then
	end  context.CancelFunc
}

// disturb prepares the faults of a run, and has cfg tell what they need. It returns what
// ends them, which waits until none is carried out any more.
func (m *measurement) disturb(ctx context.Context, cfg *engine.Config) (end func()) {
	s := m.scenario
	if len(s.Faults)+len(s.Network.Partitions) == 0 || m.running == nil {
		return func() {}
	}
	d := &disturbance{begun: make(chan struct{}), over: make(chan struct{})}
	m.faults = d
	ctx, d.end = context.WithCancel(ctx)
	cfg.OnOpen = func(facts func(context.Context) (driver.Facts, error)) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.facts = facts
	}
	start := cfg.OnStart
	cfg.OnStart = func(epoch pace.Epoch) {
		start(epoch)
		d.epoch = epoch.MonotonicNS
		close(d.begun)
	}
	go func() {
		defer close(d.over)
		select {
		case <-d.begun:
		case <-ctx.Done():
			return
		}
		system := m.subjected(d)
		parted, said := make(chan []result.Fault), make(chan []promise)
		go func() { parted <- m.part(ctx, d.epoch) }()
		go func() {
			said <- follow(ctx, d.ask, system.Now, func(p promise) {
				c := p.confirms
				m.event(engine.Event{At: p.at, Kind: "guarantee", Text: fmt.Sprintf("a confirmation means %s, copies %s, stable %s", c.Guarantee, c.Copies, c.Stable)})
			})
		}()
		done := fault.Conduct(ctx, system, s.Faults, s.WarmUp, max(0, s.Length()-s.WarmUp))
		d.done = inOrder(done, <-parted)
		d.said = <-said
	}()
	return func() {
		d.end()
		<-d.over
	}
}

// ask asks the open system for its facts.
func (d *disturbance) ask(ctx context.Context) (driver.Facts, error) {
	d.mu.Lock()
	facts := d.facts
	d.mu.Unlock()
	if facts == nil {
		return driver.Facts{}, errors.New("the connection of the driver is in another process")
	}
	d.asking.Lock()
	defer d.asking.Unlock()
	return facts(ctx)
}

// subjected is the system that faults happen to.
func (m *measurement) subjected(d *disturbance) fault.System {
	var servers []fault.Server
	for _, p := range m.running.Processes {
		s := fault.Server{Name: p.Name, Node: p.Node}
		if p.Node <= len(m.running.Address) {
			s.Address = hostPort(m.running.Address[p.Node-1])
		}
		servers = append(servers, s)
	}
	m.mu.Lock()
	m.pids = map[string]int{}
	for _, p := range m.running.Processes {
		m.pids[p.Name] = p.Pids[0]
	}
	m.mu.Unlock()
	clock := pace.NewClock()
	offset := clock.Epoch().MonotonicNS - d.epoch
	system := fault.System{
		Servers: servers,
		Order: func(ctx context.Context, do string, by time.Duration, processes ...string) (int64, error) {
			at, err := m.running.Order(ctx, broker.Order(do), by, processes...)
			return at - d.epoch, err
		},
		Sever: func(group sever.Group, processes ...string) (int, error) {
			return sever.Reset(group, m.clientPids(), m.serverPids(processes))
		},
		Leaders: func(ctx context.Context) ([]string, error) {
			f, err := d.ask(ctx)
			return f.Leaders, err
		},
		Now: func() int64 { return clock.Now() + offset },
		Tell: func(at int64, text string) {
			m.event(engine.Event{At: at, Kind: "injected", Text: text})
		},
	}
	if m.scenario.Cuts() {
		system.Part = m.sever
	}
	return system
}

// clientPids are the processes that may have connections of clients: this one and all that it
// started, without those that carry the servers and the network.
func (m *measurement) clientPids() []int {
	all := proctree.All(proctree.Host())
	guard, _ := m.running.Guard()
	delete(all, guard)
	return append([]int{os.Getpid()}, proctree.Below(all, os.Getpid())...)
}

// serverPids are the processes of that name with all that they started, as they are now.
func (m *measurement) serverPids(names []string) (pids []int) {
	all := proctree.All(proctree.Host())
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if pid := m.pids[name]; pid != 0 {
			pids = append(append(pids, pid), proctree.Below(all, pid)...)
		}
	}
	return pids
}

// hostPort is an address without its scheme and its path.
func hostPort(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	return address
}

// faultsOf are the faults of a run that is over, with what followed each.
func (m *measurement) faultsOf(raw *engine.Raw) []result.Fault {
	if m.faults == nil {
		return nil
	}
	done := slices.Clone(m.faults.done)
	m.faults.course.Effects(done, raw.From, raw.To, raw.Ended)
	return done
}

// weakened says when a confirmation meant less than at the beginning of a run with faults.
func (m *measurement) weakened(raw *engine.Raw) []result.Weaker {
	if m.faults == nil {
		return nil
	}
	return weaker(raw.Facts.Confirms, m.faults.said, raw.Ended)
}

// undone returns an error for the first fault that could not be done, or not be undone.
func undone(faults []result.Fault) error {
	for _, f := range faults {
		if f.Error != "" {
			return fmt.Errorf("the fault %s %s, due at %.1f s: %s", f.Do, f.To, float64(f.DueNS)/1e9, f.Error)
		}
	}
	return nil
}

// CheckFaults refuses scenarios with faults that this host does not let weir do, with
// sever.ErrMissing, broker.ErrNoDisks, slowdisk.ErrMissing or clockstep.ErrMissing, and what is
// needed. self is weir's own binary.
func CheckFaults(ctx context.Context, self string, all []*scenario.Scenario) error {
	for _, s := range all {
		if s.Fills() {
			if err := broker.CheckDisks(ctx); err != nil {
				return fmt.Errorf("%s: fill: %w", s.Name, err)
			}
		}
		if s.Slows() {
			if err := broker.CheckSlowDisks(); err != nil {
				return fmt.Errorf("%s: slow: %w", s.Name, err)
			}
		}
		if s.Steps() {
			if err := clockstep.Check(self); err != nil {
				return fmt.Errorf("%s: clock: %w", s.Name, err)
			}
		}
		for _, f := range s.Faults {
			if f.Do == fault.Disconnect && !s.Networked() { // in a namespace of its own weir may
				if err := sever.Check(); err != nil {
					return fmt.Errorf("%s: %s: %w", s.Name, f, err)
				}
			}
		}
	}
	return nil
}
