package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/deal"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/join"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/scenario"
)

// Bounds of a fleet.
const (
	mostAgents = 512
	fleetWait  = 2 * time.Minute
	mostFiles  = 6 << 20 // bytes of all files that a scenario reads, which travel to every agent
)

// flagFIFO has lanes take precedence on the host where it is given.
const flagFIFO = "--fifo"

var errFleetFIFO = errors.New("--fifo: is given to each agent, as it is a matter of its host (weir agent --fifo)")

// fleetOptions reads the flags, and refuses what does not go together.
func (p *parties) options(e *env) (o fleet.Options, wait time.Duration, err error) {
	o = fleet.Options{Version: weirVersion(), Log: e.log, Note: func(format string, args ...any) { e.say("weir: "+format, args...) }}
	wait = fleetWait
	if p.Wait != nil {
		if wait, err = time.ParseDuration(*p.Wait); err != nil || wait <= 0 || wait > 24*time.Hour {
			return o, 0, fmt.Errorf("--fleet-wait: %q is not a duration above 0 (such as 2m, at most 24h)", *p.Wait)
		}
	}
	if *p.Fleet < 1 || *p.Fleet > mostAgents {
		return o, 0, fmt.Errorf("--fleet: %d agents (1 to %d)", *p.Fleet, mostAgents)
	}
	if o.Dir, err = join.Dir(e.Env); err != nil {
		return o, 0, err
	}
	if p.NATS != nil {
		if p.Listen != nil {
			return o, 0, errors.New("--listen and --nats are two places to meet (one of them)")
		}
		if o.Server, err = join.Parse(*p.NATS); err != nil {
			return o, 0, fmt.Errorf("--nats: %w", err)
		}
		if o.Server.Scheme == join.SchemeWeir {
			return o, 0, errors.New("--nats: weir:// is where agents join a weir (nats:// or tls:// of a NATS server)")
		}
		return o, wait, nil
	}
	o.Listen = net.JoinHostPort("127.0.0.1", fmt.Sprint(join.Port))
	if p.Listen != nil {
		o.Listen = *p.Listen
	}
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return o, 0, fmt.Errorf("--listen: %q is not an address (HOST:PORT)", o.Listen)
	}
	if o.Keep, err = join.Open(o.Dir, time.Now()); err != nil {
		return o, 0, err
	}
	return o, wait, nil
}

// onLoopback reports whether an address is one that only this host reaches.
func onLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && join.IsLoopback(host)
}

// muster opens the series' fleet, where it has one, and waits for its agents.
func (s *series) muster(ctx context.Context) error {
	p := &s.command.parties
	if p.Fleet == nil && !s.split() && s.paused == nil {
		return nil
	}
	signalled, stop := s.env.stoppable(ctx)
	defer stop()
	switch {
	case s.paused != nil:
		return s.takeUp(signalled)
	case p.Fleet == nil:
		return s.pair(signalled)
	}
	o, wait, err := p.options(s.env)
	if err != nil {
		return err
	}
	if s.fleet, err = fleet.Open(signalled, o); err != nil {
		return err
	}
	return s.fleet.Await(signalled, s.wanted(), wait)
}

// wanted is whom the series waits for.
func (s *series) wanted() fleet.Want {
	w := fleet.Want{Agents: s.agents()}
	if on := s.command.On; on != nil {
		w.StartOn = *on
	}
	for _, t := range s.tasks {
		w.Placements = append(w.Placements, t.scenario.Placement)
	}
	return w
}

// agents is how many do a run of the series.
func (s *series) agents() int {
	if n := s.command.Fleet; n != nil {
		return *n
	}
	return 2 // of a split
}

// split reports whether the runs are done by two processes of this host.
func (s *series) split() bool {
	return len(s.tasks) > 0 && s.tasks[0].scenario.Placement.Kind == deal.Split
}

// pair starts two agents on this host, for producers and for consumers.
func (s *series) pair(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "weir-split-")
	if err != nil {
		return fmt.Errorf("making a folder for the two processes: %w", err)
	}
	s.leftover = dir
	// A keep of their own: nobody else finds the way in, nor do they to another fleet.
	secrets := filepath.Join(dir, "keep")
	keep, err := join.Open(secrets, time.Now())
	if err != nil {
		return err
	}
	s.fleet, err = fleet.Open(ctx, fleet.Options{Listen: "127.0.0.1:0", Keep: keep, Dir: dir, Version: weirVersion(), Log: s.env.log})
	if err != nil {
		return err
	}
	for _, name := range []string{deal.SplitProducers, deal.SplitConsumers} {
		home := filepath.Join(dir, name)
		if err := os.Mkdir(home, 0o700); err != nil {
			return fmt.Errorf("making a folder for the process of the %s: %w", name, err)
		}
		args := []string{s.env.Self, "internal", "agent", s.fleet.JoinURL(), name}
		if s.command.FIFO {
			args = append(args, flagFIFO)
		}
		child, err := guard.Start(ctx, s.env.Self, guard.Spec{Args: args, Dir: home, Env: append(os.Environ(), join.VariableDir+"="+secrets)})
		if err != nil {
			return fmt.Errorf("starting the process of the %s: %w", name, err)
		}
		s.pairOf = append(s.pairOf, child)
	}
	return s.fleet.Await(ctx, fleet.Want{Agents: 2}, 30*time.Second)
}

// disband ends the series' fleet.
func (s *series) disband() {
	for _, child := range s.pairOf {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := child.Stop(ctx); err != nil {
			s.env.complain(fmt.Errorf("ending a process of the run: %w", err))
		}
		cancel()
	}
	if s.fleet != nil {
		s.fleet.Close()
	}
	if s.leftover != "" {
		_ = os.RemoveAll(s.leftover)
	}
}

// checkFleet refuses what the flags and the scenarios ask for and cannot be had.
func (c *runCommand) checkFleet(e *env, runs []*scenario.Scenario) error {
	p := &c.parties
	if p.On != nil {
		if err := deal.CheckName(*p.On); err != nil {
			return fmt.Errorf("--start-on: %w", err)
		}
	}
	if p.Fleet != nil {
		if _, _, err := p.options(e); err != nil {
			return err
		}
	}
	if p.Fleet != nil && c.FIFO {
		return errFleetFIFO
	}
	if given := p.given(); p.Fleet == nil && len(given) > 0 {
		return fmt.Errorf("%s: of a run by a fleet (--fleet N)", strings.Join(given, ", "))
	}
	for _, s := range runs {
		pl := s.Placement
		if p.On != nil {
			switch s.System.Start {
			case scenario.StartNone:
				return fmt.Errorf("--start-on: %s has nothing started (--start process)", s.Name)
			case scenario.StartEmbedded:
				return fmt.Errorf("--start-on: %s has %s embedded, which listens on loopback only (--start process)", s.Name, s.System.Definition.Name)
			}
		}
		lists := len(pl.Producers) > 0 || len(pl.Consumers) > 0
		switch {
		case p.Fleet == nil && lists:
			return fmt.Errorf("%s: placement: names agents, and there are none (--fleet N)", s.Name)
		case p.Fleet != nil && pl.Kind == deal.Split:
			return fmt.Errorf("%s: placement: split makes its own two processes on this host (leave --fleet out, or give lists of agents)", s.Name)
		case (pl.Kind == deal.Split) != (runs[0].Placement.Kind == deal.Split): // the two processes are there for all
			return fmt.Errorf("%s: placement: some of these scenarios are split and others are not (a file for each)", s.Name)
		}
	}
	return nil
}

// far does the run by the fleet.
func (m *measurement) far(ctx context.Context, stop <-chan struct{}, cfg engine.Config) (*engine.Raw, error) {
	run := &fleet.Run{
		Config: cfg, Scenario: m.scenario.YAML(), Files: m.files, Placement: m.scenario.Placement, Folder: m.env.path(m.dir),
		Agents: m.choose(), StartOn: m.startOn, Length: m.scenario.Length(),
	}
	if m.there != nil {
		run.Address, run.Options, run.Started = m.there.Address, m.there.Options, m.there.Started
	}
	if m.running != nil {
		run.Address, run.Options = m.running.Address, m.running.Options
	}
	var done *fleet.Done
	var err error
	if m.paused != nil {
		run.Scenario, run.Files, run.Address, run.Options = m.paused.Scenario, m.paused.Files, m.paused.Address, m.paused.Options
		done, err = m.fleet.Resume(ctx, stop, run, m.paused)
	} else {
		if m.scenario.Placement.Kind != deal.Split { // whose agents end with this process
			m.view.Note("the run is %s (weir run --resume %[1]s takes it up again, should this coordinator be killed)", m.id)
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

// codeOfFleet is the exit code of what kept a fleet from beginning.
func codeOfFleet(err error) Code {
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, fleet.ErrTooFew):
		return Unreachable
	case errors.Is(err, hub.ErrInsecure), errors.Is(err, hub.ErrPortTaken), errors.Is(err, hub.ErrInUse):
		return Usage
	}
	return codeOf(err)
}
