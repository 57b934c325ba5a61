package series

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/netpartition"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/tcpreset"
	"github.com/weirmq/weir/result"
)

// disturbance is what a run does to the servers that weir started for it, and to the network.
type disturbance struct {
	course fault.Course

	asking sync.Mutex // one question at a time

	mu      sync.Mutex
	facts   func(context.Context) (driver.Facts, error) // of the open system; nil before, and where agents have it open
	leaders func(context.Context) ([]string, error)     // of what agents have open; nil where this process has it
	epoch   int64                                       // on the host's monotonic clock
	begun   chan struct{}                               // closed when epoch is known

	done []result.Fault // after the end of conduct
	said []promise      // likewise
	over chan struct{}  // closed then
	end  context.CancelFunc
}

// disturb prepares the faults of a run, and has cfg tell what they need. It returns what
// ends them, which waits until none is carried out any more.
func (m *measurement) disturb(ctx context.Context, cfg *engine.Config) (end func()) {
	s := m.scenario
	if len(s.Faults)+len(s.Network.Partitions) == 0 || m.running == nil && m.fleet == nil {
		return func() {}
	}
	d := &disturbance{begun: make(chan struct{}), over: make(chan struct{})}
	m.faults = d
	if m.running == nil { // agents do them
		return func() {}
	}
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
	faults := s.Faults
	if m.remote() { // agents break the connections of their clients
		faults, _ = fault.Apart(faults)
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
		done := fault.Conduct(ctx, system, faults, s.WarmUp, max(0, s.Length()-s.WarmUp))
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

// remote reports whether clients are in agents of other hosts, or may be.
func (m *measurement) remote() bool {
	return m.fleet != nil && m.scenario.Placement.Kind != placement.Split
}

// opened takes what tells who leads, where agents have the system open.
func (d *disturbance) opened(leaders func(context.Context) ([]string, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaders = leaders
}

// subjected is the system that faults happen to.
func (m *measurement) subjected(d *disturbance) fault.System {
	clock := pace.NewClock()
	offset := clock.Epoch().MonotonicNS - d.epoch
	system := m.subject.system(
		func() int64 { return clock.Now() + offset },
		func(monotonicNS int64) int64 { return monotonicNS - d.epoch },
	)
	system.Leaders = func(ctx context.Context) ([]string, error) {
		d.mu.Lock()
		leaders := d.leaders
		d.mu.Unlock()
		if leaders != nil {
			return leaders(ctx)
		}
		f, err := d.ask(ctx)
		return f.Leaders, err
	}
	system.Tell = func(at int64, text string) {
		m.event(engine.Event{At: at, Kind: "injected", Text: text})
	}
	switch {
	case !m.scenario.Cuts():
	case m.remote():
		system.Part, system.Parting = m.running.Part, netpartition.Means
	default:
		system.Part, system.Parting = m.sever, network.CutMeans
	}
	return system
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
	if m.done != nil {
		done = inOrder(done, m.done.Faults)
	}
	m.faults.course.Effects(done, raw.From, raw.To, raw.Ended, fault.End{Censored: &raw.Censored, Lost: raw.Lost})
	return done
}

// weakened says when a confirmation meant less than at the beginning of a run with faults.
func (m *measurement) weakened(raw *engine.Raw) []result.Weaker {
	if m.faults == nil {
		return nil
	}
	return weaker(raw.Facts.Confirms, m.faults.said, raw.Ended)
}

// untold is why not all that agents did is known; nil where it is.
func (m *measurement) untold() error {
	if m.done == nil {
		return nil
	}
	return m.done.Untold
}

// undone returns an error for the first fault that could not be done, or not be undone.
func undone(r *result.Result) error {
	for _, f := range r.Faults {
		if f.Error != "" {
			return fmt.Errorf("the fault %s %s, due at %.1f s of the measurement: %s", f.Do, f.To, float64(f.DueNS-r.WindowFrom())/1e9, f.Error)
		}
	}
	return nil
}

// CheckFaults refuses scenarios with faults that this host does not let weir do, with
// tcpreset.ErrMissing, broker.ErrNoDisks, slowdisk.ErrMissing, clockstep.ErrMissing or
// netpartition.ErrMissing, and what is needed; and faults of agents where there are none. self is weir's
// own binary.
func CheckFaults(ctx context.Context, self string, all []*scenario.Scenario, by Executors) error {
	for _, s := range all {
		for _, f := range s.Faults {
			if f.OfAgents() && !by.Agents {
				return fmt.Errorf("%s: the fault %s: needs a run by a fleet (--fleet N)", s.Name, f)
			}
		}
	}
	for _, s := range all {
		verbs := fault.Named(by.here(s))
		if s.Networked(by.Agents) { // in a namespace of its own weir may, and that is tried elsewhere
			verbs = slices.DeleteFunc(verbs, func(verb string) bool { return fault.Verb(verb) == fault.Disconnect || fault.Verb(verb) == fault.Cut })
		}
		if err := Able(ctx, self, verbs); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// Able refuses, as CheckFaults does, the verbs of faults that this host does not let weir do.
// self is weir's own binary.
func Able(ctx context.Context, self string, verbs []string) error {
	for _, verb := range verbs {
		var err error
		switch fault.Verb(verb) {
		case fault.Fill:
			err = broker.CheckDisks(ctx)
		case fault.Slow:
			err = broker.CheckSlowDisks()
		case fault.Clock:
			err = clockstep.Check(self)
		case fault.Cut:
			err = netpartition.Check(ctx, self)
		case fault.Disconnect:
			err = tcpreset.Check()
		}
		switch {
		case err != nil && ctx.Err() != nil: // what did not end in time is not known to be missing
			return fmt.Errorf("trying %s on this host: %w", verb, ctx.Err())
		case err != nil:
			return fmt.Errorf("%s: %w", verb, err)
		}
	}
	return nil
}
