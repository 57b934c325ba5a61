package series

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario"
)

// A Fleet executes runs on several hosts.
type Fleet struct {
	fleet.Options               // of the coordinator, which this process becomes
	Agents        int           // number that execute a run
	Spares        int           // further ones that the first run waits for
	StartOn       string        // the agent that starts the system on its host; "": here, or nowhere
	Wait          time.Duration // for agents
	Paused        *fleet.Paused // a run to resume from another coordinator; nil: none
}

// await waits for n agents to execute runs of scenarios, and refuses what cannot be placed on them.
func (f *Fleet) await(ctx context.Context, opened *fleet.Fleet, n int, scenarios []*scenario.Scenario) error {
	w := fleet.Want{Agents: n, StartOn: f.StartOn}
	for _, x := range scenarios {
		w.Placements = append(w.Placements, x.Placement)
	}
	if err := opened.Await(ctx, w, f.Wait); err != nil {
		return err
	}
	for _, x := range scenarios {
		chosen := opened.Choose(dealers(x, f.Agents), x.Placement, f.StartOn)
		var agents []placement.Agent
		for _, a := range opened.Agents() {
			if slices.Contains(chosen, a.Name) {
				agents = append(agents, placement.Agent{Name: a.Name, Labels: a.Labels})
			}
		}
		if err := deals(x, agents); err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
	}
	return nil
}

// split reports whether a scenario is run by two processes of this host.
func split(s *scenario.Scenario) bool { return s.Placement.Kind == placement.Split }

// split reports whether two processes of this host execute the runs.
func (s *Series) split() bool {
	return s.o.Fleet == nil && slices.ContainsFunc(s.plan.Scenarios(), split)
}

// Gathers reports whether agents execute the runs, so that Gather has to wait for them.
func (s *Series) Gathers() bool { return s.o.Fleet != nil || s.split() }

// Gather opens the fleet that executes the runs, and waits for its agents until ctx ends: those of
// Options.Fleet, or the two processes of placement split, which it starts. It returns at once if this
// process executes the runs. Its errors are those of fleet.Open and Fleet.Await.
func (s *Series) Gather(ctx context.Context) error {
	f := s.o.Fleet
	switch {
	case f == nil && !s.split():
		return nil
	case f == nil:
		return s.pair(ctx)
	}
	var err error
	if s.fleet, err = fleet.Open(ctx, f.Options); err != nil || f.Paused != nil {
		return err
	}
	return f.await(ctx, s.fleet, f.Agents+f.Spares, s.plan.Scenarios())
}

// ensureAgents makes sure that a run has its agents: others take the places of those that have left.
func (s *Series) ensureAgents(ctx context.Context, stop <-chan struct{}) error {
	f := s.o.Fleet
	if f == nil || f.Paused != nil {
		return nil
	}
	for _, name := range s.fleet.RollCall() {
		s.o.Note("agent %s is gone", name)
	}
	ctx, cancel := abortable(ctx, stop)
	defer cancel()
	return f.await(ctx, s.fleet, f.Agents, s.plan.Scenarios())
}

// agents is how many agents execute a run of the series.
func (s *Series) agents() int {
	if f := s.o.Fleet; f != nil && f.Paused == nil {
		return f.Agents
	}
	return 2 // of a split
}

// pair starts two agents on this host, for producers and for consumers.
func (s *Series) pair(ctx context.Context) error {
	if s.o.Host.AgentArgs == nil {
		return errors.New("this program starts no agents of its own (placement: split)")
	}
	dir, err := os.MkdirTemp("", "weir-split-")
	if err != nil {
		return fmt.Errorf("making a folder for the two processes: %w", err)
	}
	s.leftover = dir
	// A private keep: no other process can join this fleet, nor these agents another one.
	secrets := filepath.Join(dir, "keep")
	keep, err := admission.Open(secrets, time.Now())
	if err != nil {
		return err
	}
	s.fleet, err = fleet.Open(ctx, fleet.Options{Listen: "127.0.0.1:0", Keep: keep, Dir: dir, Version: buildinfo.Version(), Log: s.o.Host.Log})
	if err != nil {
		return err
	}
	self := s.o.Host.Self
	for _, name := range []string{placement.SplitProducers, placement.SplitConsumers} {
		home := filepath.Join(dir, name)
		if err := os.Mkdir(home, 0o700); err != nil {
			return fmt.Errorf("making a folder for the process of the %s: %w", name, err)
		}
		args := append([]string{self}, s.o.Host.AgentArgs(s.fleet.JoinURL(), name, s.o.FIFO)...)
		child, err := guard.Start(ctx, self, guard.Spec{Args: args, Dir: home, Env: append(os.Environ(), admission.VariableDir+"="+secrets)})
		if err != nil {
			return fmt.Errorf("starting the process of the %s: %w", name, err)
		}
		s.pairOf = append(s.pairOf, child)
	}
	return s.fleet.Await(ctx, fleet.Want{Agents: 2}, 30*time.Second)
}

// disband ends the series' fleet.
func (s *Series) disband() error {
	var errs []error
	for _, child := range s.pairOf {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := child.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("ending a process of the run: %w", err))
		}
		cancel()
	}
	if s.fleet != nil {
		s.fleet.Close()
	}
	if s.leftover != "" {
		_ = os.RemoveAll(s.leftover)
	}
	return errors.Join(errs...)
}

// enough refuses, with driver.ErrUnsupported, scenarios that need more agents than a fleet has, or any if
// the fleet is nil.
func enough(f *Fleet, scenarios []*scenario.Scenario) error {
	for _, s := range scenarios {
		switch n := s.Fleet.Agents; {
		case n == 0 || f != nil && f.Paused != nil: // its agents have joined
		case f == nil:
			return fmt.Errorf("%s: fleet.agents: %w: there are no agents (--fleet %d)", s.Name, driver.ErrUnsupported, n)
		case n > f.Agents:
			return fmt.Errorf("%s: fleet.agents: %w: is %d, and the fleet has %d (--fleet %[3]d)", s.Name, driver.ErrUnsupported, n, f.Agents)
		}
	}
	return nil
}
