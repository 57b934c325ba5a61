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

// A team is the agents that execute a run.
type team struct {
	*measurement
	idle
	fleet   *fleet.Fleet      // nil: this process executes the run
	agents  int               // how many of the fleet
	chosen  []string          // their names, once chosen
	startOn string            // the agent that starts the system on its host; "": here, or nowhere
	files   map[string][]byte // read by the scenario, by path
	paused  *fleet.Paused     // the run, if another coordinator began it
	done    *fleet.Done       // the fleet's result of the run
}

// remote reports whether clients are, or may be, in agents on other hosts.
func (m *team) remote() bool {
	return m.fleet != nil && m.scenario.Placement.Kind != placement.Split
}

// unreported is the reason why some reports of agents are missing; nil if none are.
func (m *team) unreported() error {
	if m.done == nil {
		return nil
	}
	return m.done.Unreported
}

// do executes the run on the fleet.
func (m *team) do(ctx context.Context, stop <-chan struct{}) (*engine.Raw, error) {
	run := &fleet.Run{
		Config: m.cfg, Scenario: m.scenario.YAML(), Files: m.files, Placement: m.scenario.Placement, Folder: m.dir,
		Agents: m.choose(), StartOn: m.startOn, Length: m.scenario.Length(), Restarts: m.remote(), OnSample: m.meter.sampledThere,
	}
	servers, clients := fault.Apart(m.scenario.Faults)
	if m.servers.there != nil {
		run.Address, run.Options, run.Started = m.servers.there.Address, m.servers.there.Options, m.servers.there.Started
		run.Troubled = len(servers) > 0
		if len(clients) > 0 {
			run.Servers = m.servers.there.Servers
		}
	}
	if m.servers.running != nil {
		run.Address, run.Options = m.servers.running.Address, m.servers.running.Options
		if len(clients) > 0 && m.remote() {
			bind, _, _ := m.link.bind()
			run.Servers = m.servers.subject.reached(bind)
		}
	}
	if m.faults.planned {
		run.OnOpen = m.faults.opened
	}
	var done *fleet.Done
	var err error
	if m.paused != nil {
		run.Scenario, run.Files, run.Address, run.Options = m.paused.Scenario, m.paused.Files, m.paused.Address, m.paused.Options
		done, err = m.fleet.Resume(ctx, stop, run, m.paused)
	} else {
		if m.scenario.Placement.Kind != placement.Split { // the agents of a split end with this process
			m.observer.Note("the run is %[1]s (weir run --resume %[1]s resumes it if this coordinator is killed)", m.id)
		}
		done, err = m.fleet.Do(ctx, stop, run)
	}
	if done == nil {
		return nil, err
	}
	if m.paused != nil {
		m.started = done.Raw.Epoch.Wall
	}
	m.done = done
	return done.Raw, err
}

// start refuses what a participating agent does not allow on its host, and a driver that it lacks.
func (m *team) start(ctx context.Context, _ <-chan struct{}) error {
	if m.fleet == nil || m.paused != nil {
		return nil
	}
	name := m.scenario.System.Definition.Name
	servers, clients := fault.Apart(m.scenario.Faults)
	if !m.remote() {
		clients = nil // this process breaks its children's connections
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

// choose returns the agents of the run. The first call chooses among those that have joined by then.
func (m *team) choose() []string {
	if m.chosen == nil {
		m.chosen = m.fleet.Choose(dealers(m.scenario, m.agents), m.scenario.Placement, m.startOn)
	}
	return m.chosen
}

// bring has an agent start the system on its host. If agents on other hosts cannot reach the system, it
// returns an error besides the system.
func (m *team) bring(ctx context.Context) (*fleet.System, error) {
	name := m.scenario.System.Definition.Name
	run := &fleet.Run{Config: m.scenario.Config(m.id, m.run), Scenario: m.scenario.YAML(), Files: m.files}
	there, err := m.fleet.Bring(ctx, m.startOn, run, func(line string) { m.observer.Note("%s on %s: %s", name, m.startOn, line) })
	if err != nil {
		return nil, err
	}
	there.Started.Agent = m.startOn
	return there, m.reachable(there)
}

// reachable refuses a system that listens on loopback if agents on other hosts must reach it.
func (m *team) reachable(there *fleet.System) error {
	if !slices.ContainsFunc(there.Address, loopbackOnly) {
		return nil
	}
	boot := map[string]string{}
	for _, a := range m.fleet.Agents() {
		boot[a.Name] = a.Boot
	}
	for _, a := range m.choose() {
		if boot[a] != boot[m.startOn] {
			return fmt.Errorf("%w: agent %s has it at %s, where agent %s on another machine does not reach it (weir agent --allow broker --bind IP)",
				protocol.ErrNotAllowed, m.startOn, strings.Join(there.Address, ", "), a)
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
