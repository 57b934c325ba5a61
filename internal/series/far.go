package series

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/placement"
)

// far does the run by the fleet.
func (m *measurement) far(ctx context.Context, stop <-chan struct{}, cfg engine.Config) (*engine.Raw, error) {
	run := &fleet.Run{
		Config: cfg, Scenario: m.scenario.YAML(), Files: m.files, Placement: m.scenario.Placement, Folder: m.dir,
		Agents: m.choose(), StartOn: m.startOn, Length: m.scenario.Length(), OnSample: m.sampledThere,
	}
	servers, clients := fault.Apart(m.scenario.Faults)
	if m.there != nil {
		run.Address, run.Options, run.Started = m.there.Address, m.there.Options, m.there.Started
		run.Troubled = len(servers) > 0
		if len(clients) > 0 {
			run.Servers = m.there.Servers
		}
	}
	if m.running != nil {
		run.Address, run.Options = m.running.Address, m.running.Options
		if len(clients) > 0 && m.remote() {
			bind, _, _ := m.bind()
			run.Servers = m.subject.reached(bind)
		}
	}
	if m.faults != nil {
		run.OnOpen = m.faults.opened
	}
	var done *fleet.Done
	var err error
	if m.paused != nil {
		run.Scenario, run.Files, run.Address, run.Options = m.paused.Scenario, m.paused.Files, m.paused.Address, m.paused.Options
		done, err = m.fleet.Resume(ctx, stop, run, m.paused)
	} else {
		// The agents of a split run end with this process.
		if w := m.words.Resume; w != "" && m.scenario.Placement.Kind != placement.Split {
			m.observer.Note("the run is %[1]s (%[2]s %[1]s resumes it if this coordinator is killed)", m.id, w)
		}
		done, err = m.fleet.Do(ctx, stop, run)
	}
	if done == nil {
		return nil, err
	}
	if m.paused != nil {
		m.started = done.Raw.Epoch.Wall
	}
	m.done, m.config = done, cfg
	return done.Raw, err
}

// may refuses what an agent that takes part does not allow on its host, and a driver that it lacks.
func (m *measurement) may(ctx context.Context) error {
	name := m.scenario.System.Definition.Name
	servers, clients := fault.Apart(m.scenario.Faults)
	if !m.remote() {
		clients = nil // this process breaks the connections of its children
	}
	chosen := m.choose()
	var errs []error
	for _, f := range clients {
		if f.On != "" && !slices.Contains(chosen, f.On) {
			errs = append(errs, fmt.Errorf("%w: the fault %s: the agents that send or receive are %s", protocol.ErrNotAllowed, f, strings.Join(chosen, ", ")))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	errs = append(errs, m.fleet.May(ctx, chosen, func(agent string) protocol.Query {
		return protocol.Query{Driver: name, Needs: m.scenario.Needs(), Faults: fault.Named(fault.Share(clients, agent))}
	}))
	if m.startOn != "" {
		errs = append(errs, m.fleet.May(ctx, []string{m.startOn}, func(string) protocol.Query {
			return protocol.Query{Driver: name, Faults: fault.Named(servers)}
		}))
	}
	return errors.Join(errs...)
}

// choose says which agents do the run; it is asked of those that have joined when
// it is asked first.
func (m *measurement) choose() []string {
	if m.chosen == nil {
		m.chosen = m.fleet.Choose(dealers(m.scenario, m.agents), m.scenario.Placement, m.startOn)
	}
	return m.chosen
}

// bringUpThere has an agent start the system on its host, and connects the scenario
// to it. end has that agent end it. Of a run that is taken up it only says how it
// ends.
func (m *measurement) bringUpThere(ctx context.Context, stop <-chan struct{}) (end func(), err error) {
	name := m.scenario.System.Definition.Name
	end = func() {
		if err := m.fleet.End(context.WithoutCancel(ctx), m.startOn, m.id); err != nil {
			m.observer.Complain(fmt.Errorf("ending %s: %w", name, err))
		}
	}
	if m.paused != nil {
		m.there = &fleet.System{Address: m.paused.Address, Options: m.paused.Options, Started: m.paused.Started}
		return end, nil
	}
	m.observer.Doing("starting " + name + " on the host of agent " + m.startOn)
	starting, abort := abortable(ctx, stop)
	defer abort()
	run := &fleet.Run{Config: m.scenario.Config(m.id, m.run), Scenario: m.scenario.YAML(), Files: m.files}
	there, err := m.fleet.Bring(starting, m.startOn, run, func(line string) { m.observer.Note("%s on %s: %s", name, m.startOn, line) })
	if err = stopped(err, stop); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	there.Started.Agent = m.startOn
	if err := m.reachable(there); err != nil {
		end()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	if err := m.scenario.Connect(there.Address, there.Options); err != nil {
		end()
		return nil, fmt.Errorf("connecting %s: %w", name, err)
	}
	m.there = there
	m.observer.Note("started %s on the host of agent %s at %s", name, m.startOn, strings.Join(there.Address, ", "))
	return end, nil
}

// reachable refuses what listens on the loopback of one machine where agents on
// others shall reach it.
func (m *measurement) reachable(there *fleet.System) error {
	if !slices.ContainsFunc(there.Address, loopbackOnly) {
		return nil
	}
	boot := map[string]string{}
	for _, a := range m.fleet.Agents() {
		boot[a.Name] = a.Boot
	}
	for _, a := range m.choose() {
		if boot[a] != boot[m.startOn] {
			advice := ""
			if m.words.Bind != "" {
				advice = " (" + m.words.Bind + ")"
			}
			return fmt.Errorf("%w: agent %s has it at %s, where agent %s on another machine does not reach it%s",
				protocol.ErrNotAllowed, m.startOn, strings.Join(there.Address, ", "), a, advice)
		}
	}
	return nil
}

// loopbackOnly reports whether an address is on loopback: host:port, or a URL.
func loopbackOnly(address string) bool {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().IsLoopback()
}
