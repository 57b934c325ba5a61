package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/layout"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/runs"
	"github.com/weirmq/weir/internal/scenario"
)

// enter has this process begin again at the clients' end of a network, where a scenario
// wants one and it is not there yet. Servers are installed before, since nothing outside is
// reached from there. stdin is what of it was read; nil: nothing was. by says which agents do the
// runs. It returns OK where the process goes on as it is.
func (e *env) enter(ctx context.Context, all []*scenario.Scenario, stdin []byte, by gathering) Code {
	agents := by.Fleet != nil
	wanted, err := runs.CheckNetwork(all, agents)
	if err == nil && !agents {
		err = agentless(all)
	}
	if err == nil {
		err = runs.CheckFaults(ctx, e.Self, all, agents, by.spared)
	}
	if err != nil {
		return e.refused(err)
	}
	if !wanted || network.Inside() {
		return OK
	}
	if e.Enter == nil {
		return e.failed(errors.New("network: this program cannot begin again at the other end of one"))
	}
	signalled, stop := e.stoppable(ctx)
	err = runs.Install(signalled, e.host(), all, func(line string) { e.say("weir: %s", line) })
	stop()
	if err != nil {
		e.complain(err)
		return codeOf(err)
	}
	if err := e.Enter(stdin); err != nil {
		e.complain(err)
	}
	return Failed
}

// spared returns the faults of a scenario that agents leave to this process.
func (p *gathering) spared(s *scenario.Scenario) []fault.Fault {
	servers, _ := fault.Apart(s.Faults)
	switch {
	case p.Fleet == nil:
		return s.Faults
	case p.On != nil:
		return nil
	}
	return servers
}

// agentless refuses faults of agents where there are none.
func agentless(all []*scenario.Scenario) error {
	for _, s := range all {
		for _, f := range s.Faults {
			if f.OfAgents() {
				return fmt.Errorf("%s: the fault %s: needs a run by a fleet (--fleet N)", s.Name, f)
			}
		}
	}
	return nil
}

// refuseFleet refuses, where agents do the run, a network and what is only in one.
func refuseFleet(fleet bool, all []*scenario.Scenario) error {
	for _, s := range all {
		switch {
		case !fleet:
		case s.Networked(true):
			return fmt.Errorf("--fleet: %s has a network, which weir makes on one host (leave --fleet or network out)", s.Name)
		default:
			if err := s.CheckTogether(); err != nil {
				return fmt.Errorf("--fleet: %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

// networkCommand is `weir network`.
type networkCommand struct {
	NoColor bool `help:"No colour."`
}

// run lists the profiles with their sources, and says whether this host lends a network.
func (c *networkCommand) run(_ context.Context, e *env) Code {
	p := new(layout.Page)
	network.Show(p)
	return e.printed("the profiles", e.show(p, c.NoColor))
}
