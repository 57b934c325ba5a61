package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/hosts"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
)

// agentCommand is `weir agent`.
type agentCommand struct {
	Join  *string  `placeholder:"URL" help:"Where the fleet meets, as weir fleet token prints it, or weir://127.0.0.1:7622 for a fleet of the same user on this host. WEIR_JOIN keeps it out of the list of processes, and so does -, which is the first line of standard input: the agent then ends with that input, or after 30 s without a line. Required."`
	Name  *string  `placeholder:"NAME" help:"Name of this agent: a-z, 0-9 and -. No other agent of the fleet may have it (the host's name)."`
	Label []string `sep:"none" placeholder:"KEY=VALUE" help:"A label that placement can select this agent by; may be repeated (none)."`
	Allow []string `placeholder:"LIST" help:"What the agent may do on its host, apart from running drivers: broker, to start real servers there (weir run --start-on); faults, to do there what the faults of a scenario say; may be repeated (nothing)."`
	Env   []string `name:"allow-env" placeholder:"NAMES" help:"Variables of this agent's environment that scenarios may refer to as ${env:NAME}; may be repeated (none)."`
	Files []string `name:"allow-file" placeholder:"PATHS" help:"Files of this host that scenarios may refer to as {file: PATH}, or name in an option such as tls.ca; may be repeated (none)."`
	Run   []string `name:"allow-command" sep:"none" placeholder:"WORDS" help:"A command that the driver exec may run here, with all its arguments: its words, with commas between them; may be repeated (none)."`
	Bind  *string  `placeholder:"IP" help:"With --allow broker, the address that such servers listen on and are reached at (127.0.0.1)."`
	FIFO  bool     `name:"fifo" help:"Give the threads that send (pacers) precedence over all else on this host (SCHED_FIFO). Pacers that would keep a core busy most of the time do not get it. Linux; needs root, CAP_SYS_NICE or ulimit -r 10 (off)."`
	Dir   *string  `placeholder:"DIR" help:"Keep the agent's own intervals.hlog and events.jsonl of each run in a folder here (none are kept)."`
	Own   bool     `kong:"-"` // agent of a run of this user's own: its scenario may refer to anything
	Wrong string   `name:"wrong-clock" hidden:"" placeholder:"VALUE" help:"Read a clock that is wrong on purpose: constant=25ms,drift=40ppm,step=10s:3ms,wall=25ms. For tests of the correction."`
}

// Help is shown below the verb's flags' heading.
func (*agentCommand) Help() string {
	return "Joins a fleet and does its part of each run until you end it. It waits while there is no coordinator. " +
		"It runs drivers, which connect to the measured system. It starts nothing on its host unless --allow broker says so, and breaks nothing there unless --allow faults does. " +
		"Scenarios may refer only to the variables and files that --allow-env and --allow-file name, " +
		"and run only the commands that --allow-command names. " +
		"To join a fleet of the same user on the same host, use weir://127.0.0.1:7622, without a token. " + fleetHelp
}

// run joins fleets and serves until a signal.
func (c *agentCommand) run(ctx context.Context, e *env) Code {
	signals := e.Signals
	kept := c.Join != nil && *c.Join == fromStdin
	if kept {
		if e.Stdin == nil {
			return usage(e, errors.New("--join: there is no standard input"))
		}
		in := bufio.NewReader(e.Stdin)
		url, err := joinLine(in)
		if err != nil {
			return usage(e, err)
		}
		c.Join, signals = &url, lifeline(in, signals)
	}
	a, err := c.agent(e)
	if err != nil {
		return usage(e, err)
	}
	if kept {
		if _, err := fmt.Fprintln(e.Stdout, hosts.Answer+"agent"); err != nil {
			return e.failed(err)
		}
	}
	signalled, err := through(ctx, signals, a.Run, func(s os.Signal) {
		again := "a second signal stops it now"
		if s == os.Interrupt {
			again = "press Ctrl-C again to stop now"
		}
		e.say("stopping: sending final results; %s", again)
	})
	switch {
	case signalled:
		return Interrupted
	case err != nil && !errors.Is(err, context.Canceled):
		return e.because(codeOf(err), err)
	}
	return OK
}

// agent creates the agent from the flags.
func (c *agentCommand) agent(e *env) (*agent.Agent, error) {
	where := ""
	if v, ok := e.Env("WEIR_JOIN"); ok {
		where = v
	}
	if c.Join != nil {
		where = *c.Join
	}
	if where == "" {
		return nil, errors.New("--join: where does the fleet meet? (the URL that weir fleet token prints, or WEIR_JOIN)")
	}
	address, err := admission.Meeting(where, e.Env)
	if err != nil {
		return nil, fmt.Errorf("--join: %w", err)
	}
	build := buildinfo.Version() // from the coordinator's own file
	if !c.Own {
		if build, err = buildinfo.Identity(); err != nil {
			return nil, err
		}
	}
	a := &agent.Agent{
		Address: address, Version: build, Drivers: e.registry, Env: e.Env, Log: e.log, Clock: pace.NewClock,
		Note: func(format string, args ...any) { e.say(format, args...) },
	}
	if a.Name, err = c.name(); err != nil {
		return nil, err
	}
	if a.Labels, err = placement.ParseLabels(c.Label, admission.Labels); err != nil {
		return nil, fmt.Errorf("--label: %w", err)
	}
	if err := c.permit(e, a); err != nil {
		return nil, err
	}
	if a.Reach, err = agent.NewReach(c.Env, c.Files, c.Run, e.path); err != nil {
		return nil, err
	}
	a.Reach.All = c.Own
	if err := precedence(c.FIFO); err != nil {
		return nil, err
	}
	a.FIFO = c.FIFO
	if room, limited := host.MemoryRoom(); limited {
		host.KeepWithin(room)
	}
	if c.Dir != nil {
		if a.Dir = e.path(*c.Dir); *c.Dir == "" {
			return nil, errors.New("--dir: is empty (a folder, or leave it out)")
		}
		if err := os.MkdirAll(a.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("--dir: %w", err)
		}
	}
	if c.Wrong != "" {
		clock, err := pace.ParseWrongClock(c.Wrong)
		if err != nil {
			return nil, fmt.Errorf("--wrong-clock: %w", err)
		}
		a.Clock, a.OwnTime = func() *pace.Clock { return clock }, true
	}
	return a, nil
}

// permit sets what the agent may do besides running drivers.
func (c *agentCommand) permit(e *env, a *agent.Agent) error {
	for _, what := range c.Allow {
		switch {
		case what != agent.AllowBroker && what != agent.AllowFaults:
			return fmt.Errorf("--allow: %q is not known (broker, faults)", what)
		case !slices.Contains(a.Allow, what):
			a.Allow = append(a.Allow, what)
		}
	}
	bind := ""
	if c.Bind != nil {
		if !slices.Contains(a.Allow, agent.AllowBroker) {
			return errors.New("--bind: is where servers listen, and this agent may start none (--allow broker)")
		}
		bind = *c.Bind
		if err := broker.CheckBind(bind); err != nil {
			return fmt.Errorf("--bind: %w", err)
		}
		l, err := net.Listen("tcp", net.JoinHostPort(bind, "0"))
		if err != nil {
			return fmt.Errorf("--bind: nothing can listen there: %w", err)
		}
		_ = l.Close()
	}
	if slices.Contains(a.Allow, agent.AllowFaults) {
		a.Self = e.Self
		a.Able = func(ctx context.Context, verbs []string) error { return series.Able(ctx, e.Self, verbs) }
	}
	if slices.Contains(a.Allow, agent.AllowBroker) {
		here := e.host()
		a.Start = func(ctx context.Context, s *scenario.Scenario, doing func(string), happened func(agent.Happening)) (*agent.System, error) {
			return here.Start(ctx, s, bind, doing, happened)
		}
	}
	return nil
}

// name returns the agent's name.
func (c *agentCommand) name() (string, error) {
	if c.Name != nil {
		if err := placement.CheckName(*c.Name); err != nil {
			return "", fmt.Errorf("--name: %w", err)
		}
		return *c.Name, nil
	}
	hostname, err := placement.NameOfHost()
	if err != nil {
		return "", errors.New("--name: the host has no name that an agent can have (a-z, 0-9 and -)")
	}
	return hostname, nil
}

// parties are the flags of a run by a fleet.
type parties struct {
	gathering `embed:""`
	Resume    *string `placeholder:"DIR" help:"Do the runs that a series in this folder has left: those that were interrupted, not begun or without figures (default: none). With the ID of a fleet's run, weir takes up that run here after its coordinator was killed."`
}

// gathering has the flags for the agents of a run and their meeting place.
type gathering struct {
	Fleet  *int    `placeholder:"N" group:"Fleet" help:"Run on N agents that join (none: this process does it)."`
	Spare  int     `placeholder:"N" group:"Fleet" help:"Wait for N more agents. One takes the place of an agent that is lost between runs or before the measured window (0)."`
	Hosts  *string `placeholder:"FILE" group:"Fleet" help:"Start an agent on each host of this file by SSH, run on all of them, and end them: weir fleet up, run and down in one (none)."`
	Listen *string `placeholder:"HOST:PORT" group:"Fleet" help:"Where agents join, with TLS and a token. Agents of this user on this host find the token by themselves (127.0.0.1:7622, for agents of this host)."`
	NATS   *string `name:"nats" placeholder:"URL" group:"Fleet" help:"Meet at this NATS server, which needs JetStream, instead of starting one."`
	On     *string `name:"start-on" placeholder:"AGENT" group:"Fleet" help:"Start the system (--start process) on the host of this agent, which must allow it. It is not one of the N, unless a list of placement names it (default: here)."`
	Wait   *string `name:"fleet-wait" placeholder:"DURATION" group:"Fleet" help:"How long to wait for agents (2m)."`

	file *hosts.File // of Hosts; nil: none
	ssh  string
}

// given names the flags that were given.
func (p *gathering) given() []string {
	var all []string
	for _, f := range []struct {
		name  string
		given bool
	}{{"--listen", p.Listen != nil}, {"--nats", p.NATS != nil}, {"--fleet-wait", p.Wait != nil}, {"--spare", p.Spare != 0}, {"--start-on", p.On != nil}} {
		if f.given {
			all = append(all, f.name)
		}
	}
	slices.Sort(all)
	return all
}
