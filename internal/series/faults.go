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
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/tcpreset"
	"github.com/weirmq/weir/result"
)

// faults are the faults of a run, in the servers that weir started for it and in the network.
type faults struct {
	*measurement
	planned bool // there are any
	course  fault.Course

	asking sync.Mutex // one question at a time

	mu      sync.Mutex
	facts   func(context.Context) (driver.Facts, error) // of the open system; nil before, and if agents have it open
	leaders func(context.Context) ([]string, error)     // of the system that agents have open; nil if this process has it open
	epoch   int64                                       // on the host's monotonic clock
	begun   chan struct{}                               // closed when epoch is known

	done []result.Fault     // set when conduct ends
	said []reportedConfirms // likewise
	over chan struct{}      // closed then; nil: agents execute all of them
	end  context.CancelFunc
}

// start prepares the faults, and has the engine report what they need.
func (d *faults) start(ctx context.Context, _ <-chan struct{}) error {
	s := d.scenario
	d.planned = len(s.Faults)+len(s.Network.Partitions) > 0 && (d.servers.running != nil || d.team.fleet != nil)
	if !d.planned || d.servers.running == nil {
		return nil
	}
	d.begun, d.over = make(chan struct{}), make(chan struct{})
	ctx, d.end = context.WithCancel(ctx)
	d.cfg.OnOpen = func(facts func(context.Context) (driver.Facts, error)) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.facts = facts
	}
	start := d.cfg.OnStart
	d.cfg.OnStart = func(epoch pace.Epoch) {
		start(epoch)
		d.epoch = epoch.MonotonicNS
		close(d.begun)
	}
	due := s.Faults
	if d.team.remote() { // agents break their own clients' connections
		due, _ = fault.Apart(due)
	}
	go func() {
		defer close(d.over)
		select {
		case <-d.begun:
		case <-ctx.Done():
			return
		}
		system := d.subjected()
		parted, said := make(chan []result.Fault), make(chan []reportedConfirms)
		go func() { parted <- d.link.part(ctx, d.epoch) }()
		go func() {
			said <- follow(ctx, d.ask, system.Now, func(p reportedConfirms) {
				c := p.confirms
				d.event(engine.Event{At: p.at, Kind: "guarantee", Text: fmt.Sprintf("a confirmation means %s, copies %s, stable %s", c.Guarantee, c.Copies, c.Stable)})
			})
		}()
		done := fault.Conduct(ctx, system, due, s.WarmUp, max(0, s.Length()-s.WarmUp))
		d.done = inOrder(done, <-parted)
		d.said = <-said
	}()
	return nil
}

// stop waits until no fault is in progress.
func (d *faults) stop(context.Context, *engine.Raw) {
	if d.over != nil {
		d.end()
		<-d.over
	}
}

// result adds the faults and their effects, and when a confirmation meant less than at the start.
func (d *faults) result(raw *engine.Raw, r *result.Result) {
	if !d.planned {
		return
	}
	done := slices.Clone(d.done)
	if d.team.done != nil {
		done = inOrder(done, d.team.done.Faults)
	}
	d.course.Effects(done, raw.From, raw.To, raw.Ended, fault.End{Censored: &raw.Censored, Lost: raw.Lost})
	r.Faults, r.System.Weaker = done, weaker(raw.Facts.Confirms, d.said, raw.Ended)
}

// ask asks the open system for its facts.
func (d *faults) ask(ctx context.Context) (driver.Facts, error) {
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

// opened stores how to query the leaders if agents have the system open.
func (d *faults) opened(leaders func(context.Context) ([]string, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaders = leaders
}

// subjected returns the system that suffers the faults.
func (d *faults) subjected() fault.System {
	clock := pace.NewClock()
	offset := clock.Epoch().MonotonicNS - d.epoch
	system := d.servers.subject.system(
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
		d.event(engine.Event{At: at, Kind: "injected", Text: text})
	}
	switch {
	case !d.scenario.Cuts():
	case d.team.team.remote():
		system.Part, system.Parting = d.servers.running.Part, netpartition.Means
	default:
		system.Part, system.Parting = d.link.cutPairs, network.CutMeans
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

// undone returns an error for the first fault that could not be done, or not be undone.
func undone(r *result.Result) error {
	for _, f := range r.Faults {
		if f.Error != "" {
			return fmt.Errorf("the fault %s %s, due at %.1f s of the measurement: %s", f.Do, f.To, float64(f.DueNS-r.WindowFrom())/1e9, f.Error)
		}
	}
	return nil
}

// CheckFaults refuses scenarios with faults that this host does not allow, with tcpreset.ErrMissing,
// broker.ErrNoDisks, slowdisk.ErrMissing, clockstep.ErrMissing or netpartition.ErrMissing and what is
// needed, and faults of agents without agents. self is the path of weir's own binary.
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
		if s.Networked(by.Agents) { // allowed in a namespace of its own, which is checked elsewhere
			verbs = slices.DeleteFunc(verbs, func(verb string) bool { return fault.Verb(verb) == fault.Disconnect || fault.Verb(verb) == fault.Cut })
		}
		if err := Able(ctx, self, verbs); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// Able refuses fault verbs that this host does not allow, as CheckFaults does. self is the path of weir's
// own binary.
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
		case err != nil && ctx.Err() != nil: // a check that timed out proves nothing missing
			return fmt.Errorf("trying %s on this host: %w", verb, ctx.Err())
		case err != nil:
			return fmt.Errorf("%s: %w", verb, err)
		}
	}
	return nil
}
