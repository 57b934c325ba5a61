package series

import (
	"fmt"

	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario"
)

// Executors describe the processes that execute runs.
type Executors struct {
	Agents  bool   // a fleet executes them; else this process, or two of this host
	Count   int    // agents in the fleet
	StartOn string // the agent that starts systems on its host; "": this process starts them
}

// Check refuses scenarios that need what these executors cannot do.
func (d Executors) Check(all []*scenario.Scenario) error {
	if err := d.together(all); err != nil {
		return err
	}
	for _, s := range all {
		if d.StartOn != "" {
			switch s.System.Start {
			case scenario.StartNone:
				return fmt.Errorf("--start-on: %s starts no server (--start process)", s.Name)
			case scenario.StartEmbedded:
				return fmt.Errorf("--start-on: %s has %s embedded, which listens on loopback only (--start process)", s.Name, s.System.Definition.Name)
			}
		}
		if d.Agents && s.Load.Received {
			return fmt.Errorf("%s: load.in_flight_until: received needs producers and consumers in one process, and agents have them (confirmed)", s.Name)
		}
		if key := s.Consume.Alone(); d.Agents && key != "" {
			return fmt.Errorf("%s: %s: needs all of the run in one process, and agents share it (leave it out)", s.Name, key)
		}
		switch p := s.Placement; {
		case !d.Agents && len(p.Producers)+len(p.Consumers) > 0:
			return fmt.Errorf("%s: placement: names agents, and there are none (--fleet N)", s.Name)
		case d.Agents && p.Kind == placement.Split:
			return fmt.Errorf("%s: placement: split makes its own two processes on this host (leave --fleet out, or give lists of agents)", s.Name)
		case (p.Kind == placement.Split) != (all[0].Placement.Kind == placement.Split): // both processes exist for all runs, or for none
			return fmt.Errorf("%s: placement: some of these scenarios are split and others are not (a file for each)", s.Name)
		}
	}
	if d.Agents {
		return d.checkPlacement(all)
	}
	return nil
}

// together refuses, with agents, a network and whatever must be in one process.
func (d Executors) together(all []*scenario.Scenario) error {
	for _, s := range all {
		switch {
		case !d.Agents:
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

// here returns the faults of a scenario that this process executes.
func (d Executors) here(s *scenario.Scenario) []fault.Fault {
	servers, _ := fault.Apart(s.Faults)
	switch {
	case !d.Agents:
		return s.Faults
	case d.StartOn != "":
		return nil
	}
	return servers
}

// checkPlacement refuses what cannot be placed on the agents, as far as that is known before they join.
func (d Executors) checkPlacement(all []*scenario.Scenario) error {
	for _, s := range all {
		agents, err := placement.Expected(s.Placement, dealers(s, d.Count))
		if err == nil && agents != nil {
			err = deals(s, agents)
		}
		if err != nil {
			return fmt.Errorf("--fleet: %s: %w", s.Name, err)
		}
	}
	return nil
}

// dealers is how many of n agents take part in a scenario's runs.
func dealers(s *scenario.Scenario, n int) int {
	if wanted := s.Fleet.Agents; wanted > 0 {
		return min(n, wanted)
	}
	return n
}

// deals refuses what cannot be placed on these agents.
func deals(s *scenario.Scenario, agents []placement.Agent) error {
	cfg := s.Config("", 0)
	_, err := fleet.Assign(s.Placement, &cfg, agents)
	return err
}
