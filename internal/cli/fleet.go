package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hosts"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// fleetCommand is `weir fleet`.
type fleetCommand struct {
	Up     fleetUp     `cmd:"" help:"Start agents on hosts by SSH, and show what there would spoil a run."`
	Down   fleetDown   `cmd:"" help:"End the agents that weir fleet up started."`
	Token  fleetToken  `cmd:"" help:"Make a token and print the URL that agents join with; list tokens, or revoke one."`
	Status fleetStatus `cmd:"" help:"Show the agents: their hosts, their clocks and what they do."`
	Doctor fleetDoctor `cmd:"" help:"Look for what would make a run by these agents invalid, and say what to do."`
}

// fleetHelp is shared by the verbs.
const fleetHelp = "A fleet is several weir agents, each on a host of its own. They do one run together with the weir that runs the scenario. " +
	"Its certificate and tokens are in the folder weir/fleet in the user's folder for state, or in WEIR_FLEET_DIR."

// lookHelp says how agents are found.
const lookHelp = "With --nats weir asks the agents at that server. Without it, weir asks at the address where agents of this host join. If a coordinator runs there, it asks them. " +
	"If none does, weir itself listens there for some seconds, so that waiting agents connect. It starts no run with them."

// A lookout has the flags by which agents are found.
type lookout struct {
	NATS   *string `name:"nats" placeholder:"URL" help:"Ask at this NATS server, or at the coordinator of a weir:// URL that agents join with."`
	Listen *string `placeholder:"HOST:PORT" help:"Where agents join, as for weir run --listen (where those of weir fleet up do; else 127.0.0.1:7622, for agents of this host)."`
	Wait   *string `placeholder:"DURATION" help:"How long to wait for agents (5s; 1s where one was there already)."`

	kept *hosts.Kept // that weir fleet up started, and that is asked; nil: none
}

// look performs a survey until a signal.
func (l *lookout) look(ctx context.Context, e *env, doctor bool) (*survey.Sight, Code) {
	s, err := l.survey(e)
	if err != nil {
		return nil, usage(e, err)
	}
	s.Doctor = doctor
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	sight, err := s.Look(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, e.because(Interrupted, errors.New("interrupted"))
	case err != nil:
		return nil, e.because(codeOfFleet(err), err)
	}
	return sight, OK
}

// survey parses the flags.
func (l *lookout) survey(e *env) (*survey.Survey, error) {
	build, err := buildinfo.Identity()
	if err != nil {
		return nil, err
	}
	s := &survey.Survey{Version: build, Log: e.log}
	if l.Wait != nil {
		if s.Wait, err = quantity.Duration(*l.Wait); err != nil || s.Wait <= 0 || s.Wait > time.Hour {
			return nil, fmt.Errorf("--wait: %q is not a duration above 0 (such as 5s, at most 1h)", *l.Wait)
		}
	}
	if l.NATS != nil {
		if l.Listen != nil {
			return nil, errors.New("--listen and --nats are two meeting places (use one of them)")
		}
		if s.Place.Server, err = admission.Meeting(*l.NATS, e.Env); err != nil {
			return nil, fmt.Errorf("--nats: %w", err)
		}
		return s, nil
	}
	if l.Listen == nil {
		if l.kept = e.keptHosts(); l.kept != nil {
			l.Listen = &l.kept.Listen
		}
	}
	s.Place.Listen, s.Place.Keep, err = hubOf(e, l.Listen)
	return s, err
}

// keptHosts returns the fleet that weir fleet up started; nil if there is none.
func (e *env) keptHosts() *hosts.Kept {
	dir, err := admission.StateDir(e.Env)
	if err != nil {
		return nil
	}
	k, err := hosts.Look(dir)
	if err != nil {
		return nil
	}
	return k
}

// hubOf parses --listen: where agents join, and with which keep.
func hubOf(e *env, listen *string) (at string, keep *admission.Keep, err error) {
	at = net.JoinHostPort("127.0.0.1", fmt.Sprint(admission.Port))
	if listen != nil {
		at = *listen
	}
	if _, _, err := net.SplitHostPort(at); err != nil {
		return "", nil, fmt.Errorf("--listen: %q is not an address (HOST:PORT)", at)
	}
	dir, err := admission.Dir(e.Env)
	if err != nil {
		return "", nil, err
	}
	keep, err = admission.Open(dir, time.Now())
	return at, keep, err
}

// noAgent reports that a verb found no agent, and returns its code.
func (l *lookout) noAgent(e *env, s *survey.Sight) Code {
	why := "no agent answered there"
	if s.StoodIn {
		why = "no agent came, and no coordinator runs there"
	}
	e.complain(fmt.Errorf("%s: %s; agents join with: weir agent --join URL (weir fleet token prints the URL)", s.Where(), why))
	if s.StoodIn && l.Listen == nil {
		e.say("agents of other hosts wait elsewhere: --listen HOST:PORT as for weir run, or --nats URL")
	}
	return Unreachable
}

// fleetStatus is `weir fleet status`.
type fleetStatus struct {
	lookout `embed:""`
	JSON    bool `name:"json" help:"Print a JSON object on stdout."`
}

// Help is shown below the verb's flags' heading.
func (*fleetStatus) Help() string {
	return lookHelp + " weir compares each agent's clock with this host's. The offset is what to add to the agent's readings. It is certain to within the bound. " +
		"Exits with 3 when no agent is there. " + fleetHelp
}

// run shows the agents.
func (c *fleetStatus) run(ctx context.Context, e *env) Code {
	sight, code := c.look(ctx, e, false)
	if sight == nil {
		return code
	}
	status := sight.Status(sight.Weir)
	if c.kept != nil {
		status.Hosts = c.kept.Hosts
	}
	if code := e.printed("the agents", e.answer(c.JSON, status, true, func(p *layout.Page) {
		view.ShowHosts(p, status.Hosts, sight)
		view.ShowAgents(p, sight, sight.Weir)
	})); code != OK {
		return code
	}
	if len(sight.Agents) == 0 {
		return c.noAgent(e, sight)
	}
	return OK
}

// fleetDoctor is `weir fleet doctor`.
type fleetDoctor struct {
	lookout `embed:""`
	Strict  bool `help:"Exit with 5 when something is bad; without it, always with 0."`
	JSON    bool `name:"json" help:"Print a JSON object on stdout."`
	NoColor bool `help:"No colour."`
}

// Help is shown below the verb's flags' heading.
func (*fleetDoctor) Help() string {
	return lookHelp + " Each idle agent watches its host for half a second as weir doctor does, and changes nothing. The list shows its warnings and what is bad. " +
		"The exit code is 0 whatever it finds; with --strict it is 5 when something is bad. It is 3 when no agent is there. " + fleetHelp
}

// run diagnoses the fleet.
func (c *fleetDoctor) run(ctx context.Context, e *env) Code {
	sight, code := c.look(ctx, e, true)
	if sight == nil {
		return code
	}
	d := sight.Diagnosis(sight.Weir)
	show := func(p *layout.Page) { view.ShowFleet(p, d) }
	if len(sight.Agents) == 0 {
		show = func(*layout.Page) {}
	}
	if code := e.printed("the findings", e.answer(c.JSON, d, c.NoColor, show)); code != OK {
		return code
	}
	switch {
	case len(sight.Agents) == 0:
		return c.noAgent(e, sight)
	case c.Strict && d.Health == host.Bad:
		return Invalid
	}
	return OK
}
