package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hosts"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

const (
	// hostsToken is how long agents on hosts may join, at most: it ends with the process that started them.
	hostsToken = 30 * 24 * time.Hour
	// hostsWait is how long they may take to come once they run.
	hostsWait = 20 * time.Second
	// dialLimit is how long a host tries to reach this one.
	dialLimit = 3 * time.Second
)

// hostsHelp is shared by the verbs.
const hostsHelp = "It uses the ssh of this machine with your keys and configuration, and asks no questions. A host needs a POSIX shell. " +
	"docs/formats/hosts.md describes the file."

// fleetUp is `weir fleet up`.
type fleetUp struct {
	File    string `arg:"" help:"The hosts, such as hosts.yaml."`
	NoColor bool   `help:"No colour."`
}

// Help is shown below the verb's flags' heading.
func (*fleetUp) Help() string {
	return "Starts an agent on each host of a file by SSH, and shows each host and what there would spoil a run. " + hostsHelp + " " +
		"It sends this program, without its symbols, once to each host. The agents stay until weir fleet down. They end by themselves when their connection does. " +
		"When one host fails, no agent is left on any. Exits with 2 when the file is wrong, and with 3 when a host cannot be reached. " + fleetHelp
}

// run brings the fleet up.
func (c *fleetUp) run(ctx context.Context, e *env) Code {
	f, _, err := e.hostsOf(c.File)
	if err != nil {
		return e.refused(err)
	}
	dir, err := admission.StateDir(e.Env)
	if err != nil {
		return e.refused(err)
	}
	if _, err := hosts.Look(dir); err == nil {
		return e.refused(hosts.ErrUp)
	}
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	file, err := filepath.Abs(e.path(c.File))
	if err != nil {
		return e.failed(err)
	}
	kept, stay, leave, err := hosts.Start(ctx, e.Self, []string{"internal", "hosts", file}, e.noted)
	if err != nil {
		return e.unbrought(ctx, err)
	}
	begun := time.Now()
	sight, err := e.inspect(ctx, kept.Listen, len(f.Hosts))
	if err != nil {
		return e.unbrought(ctx, errors.Join(err, leave()))
	}
	e.say("weir: %d agents joined, and looked at their hosts (%.1f s)", len(f.Hosts), time.Since(begun).Seconds())
	if err := e.show(hostsPage(kept.Hosts, sight), c.NoColor); err != nil {
		return worst(e.printed("the hosts", err), unheard(leave()))
	}
	if err := stay(); err != nil {
		return e.failed(err)
	}
	e.say("measure with: weir run --fleet %d --listen %s FILE", len(f.Hosts), kept.Listen)
	e.say("end them with: weir fleet down")
	return OK
}

// noted reports a step of a host.
func (e *env) noted(host, text string) { e.say("weir: %s: %s", host, text) }

// unbrought reports why there are no agents on hosts.
func (e *env) unbrought(ctx context.Context, err error) Code {
	code := Unreachable
	switch {
	case ctx.Err() != nil:
		return e.because(Interrupted, errors.New("interrupted: no agent is left on the hosts"))
	case errors.Is(err, hosts.ErrFile), errors.Is(err, hosts.ErrUp):
		code = Usage
	}
	e.complainEach(err)
	return code
}

// fleetDown is `weir fleet down`.
type fleetDown struct {
	Purge *string `placeholder:"FILE" help:"Also remove the programs that weir left on the hosts of this file, such as hosts.yaml (they stay, so that the next start sends nothing)."`
}

// Help is shown below the verb's flags' heading.
func (*fleetDown) Help() string {
	return "Ends the agents that weir fleet up started, and their connections. A run that they take part in ends without them. " +
		"Only the program stays on each host, in its folder for caches; --purge removes it. Exits with 3 when a host could not be asked. " + fleetHelp
}

// run ends the fleet.
func (c *fleetDown) run(ctx context.Context, e *env) Code {
	var f *hosts.File
	var ssh string
	if c.Purge != nil {
		var err error
		if f, ssh, err = e.hostsOf(*c.Purge); err != nil {
			return e.refused(err)
		}
	}
	dir, err := admission.StateDir(e.Env)
	if err != nil {
		return e.refused(err)
	}
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	k, err := hosts.Down(ctx, dir)
	switch {
	case errors.Is(err, hosts.ErrDown):
		e.say("%v", err)
	case err != nil:
		return e.because(Unreachable, err)
	default:
		e.say("ended %d agents", len(k.Hosts))
	}
	if f == nil {
		return OK
	}
	sockets, remove, err := hosts.NewDir(ctx, dir)
	if err != nil {
		return e.failed(err)
	}
	defer remove()
	if err := hosts.Purge(ctx, hosts.Options{File: f, SSH: ssh, Dir: sockets}); err != nil {
		return e.unbrought(ctx, err)
	}
	e.say("removed the programs from %d hosts", len(f.Hosts))
	return OK
}

// hostsOf reads a file of hosts, and finds ssh. Its error is the user's.
func (e *env) hostsOf(file string) (f *hosts.File, ssh string, err error) {
	text, err := userfile.Read(e.path(file), tree.MaxFile)
	if err != nil {
		return nil, "", fmt.Errorf("reading the hosts: %w", err)
	}
	below := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(e.path(file)), path)
	}
	if f, err = hosts.Parse(file, text, below); err != nil {
		return nil, "", err
	}
	if ssh, err = exec.LookPath("ssh"); err != nil {
		return nil, "", fmt.Errorf("%s: this machine has no ssh (the package openssh-client, in PATH)", file)
	}
	return f, ssh, nil
}

// bringing returns how agents come to hosts, with a folder for sockets and a token. end removes both, and both end
// with this process.
func (e *env) bringing(ctx context.Context, f *hosts.File, ssh string) (o hosts.Options, end func() error, err error) {
	o = hosts.Options{File: f, SSH: ssh}
	if o.Listen, o.Reach, err = admission.Reachable(f.Listen); err != nil {
		return o, nil, fmt.Errorf("listen: %w", err)
	}
	_, keep, err := hubOf(e, &o.Listen)
	if err != nil {
		return o, nil, err
	}
	dir, err := admission.StateDir(e.Env)
	if err != nil {
		return o, nil, err
	}
	var remove func()
	if o.Dir, remove, err = hosts.NewDir(ctx, dir); err != nil {
		return o, nil, err
	}
	token, err := keep.NewWhile(filepath.Join(o.Dir, hosts.Lock), hostsToken, time.Now())
	if err != nil {
		remove()
		return o, nil, err
	}
	o.Join = func(at string) string {
		return admission.Address{Scheme: admission.SchemeWeir, Host: at, Pin: keep.Pin(), Token: token}.Reveal()
	}
	return o, func() error {
		defer remove()
		return keep.Revoke(token.ID())
	}, nil
}

// inspect waits for the agents of hosts, and has them look at their hosts.
func (e *env) inspect(ctx context.Context, listen string, agents int) (*survey.Sight, error) {
	build, err := buildinfo.Identity()
	if err != nil {
		return nil, err
	}
	s := &survey.Survey{Version: build, Log: e.log, Doctor: true, Wait: hostsWait, Agents: agents}
	if s.Place.Listen, s.Place.Keep, err = hubOf(e, &listen); err != nil {
		return nil, err
	}
	sight, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(sight.Agents); n < agents {
		return nil, fmt.Errorf("%d of %d agents came to %s within %v", n, agents, listen, hostsWait)
	}
	return sight, nil
}

// hostsPage shows hosts and what is wrong with them.
func hostsPage(all []hosts.Reached, sight *survey.Sight) *layout.Page {
	p := new(layout.Page)
	view.ShowHosts(p, all, sight)
	view.ShowFleet(p, sight.Diagnosis(sight.Weir))
	return p
}

// keepHosts is the process of weir fleet up that stays: `weir internal hosts FILE`.
func (e *env) keepHosts(ctx context.Context, args []string) (err error) {
	defer func() {
		if err != nil {
			hosts.Fail(e.Stdout, err)
		}
	}()
	if len(args) != 1 {
		return errors.New("internal hosts: wants a file")
	}
	f, ssh, err := e.hostsOf(args[0])
	if err != nil {
		return err
	}
	dir, err := admission.StateDir(e.Env)
	if err != nil {
		return err
	}
	o, end, err := e.bringing(ctx, f, ssh)
	if err != nil {
		return err
	}
	err = hosts.Keep(ctx, dir, args[0], o, e.Stdin, e.Stdout)
	return errors.Join(err, end())
}

// dial is `weir internal dial ADDRESS`: it says whether this host reaches an address.
func dial(ctx context.Context, e *env, args []string) error {
	if len(args) != 1 {
		return errors.New("internal dial: wants an address")
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	state := "closed"
	if c, err := new(net.Dialer).DialContext(ctx, "tcp", args[0]); err == nil {
		state = "open"
		_ = c.Close()
	}
	_, err := fmt.Fprintln(e.Stdout, hosts.Answer+state)
	return err
}

// byHosts reads --hosts, and sets the flags of the fleet that it stands for.
func (p *gathering) byHosts(e *env) error {
	if p.Hosts == nil {
		return nil
	}
	if p.NATS != nil || p.Listen != nil {
		return errors.New("--hosts: the file says where agents join (leave --listen and --nats out)")
	}
	f, ssh, err := e.hostsOf(*p.Hosts)
	if err != nil {
		return err
	}
	listen, _, err := admission.Reachable(f.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p.file, p.ssh, p.Listen = f, ssh, &listen
	if p.Fleet == nil {
		n := len(f.Hosts) - p.Spare
		if p.On != nil {
			n-- // see StartOn
		}
		p.Fleet = &n
	}
	return nil
}

// bring brings the agents of --hosts up for as long as this process needs them: down ends them. Without the flag it does
// nothing.
func (p *gathering) bring(ctx context.Context, e *env, quiet bool) (down func() Code, code Code) {
	down = func() Code { return OK }
	if p.file == nil {
		return down, OK
	}
	stopping, cancel := e.stoppable(ctx)
	defer cancel()
	begun := time.Now()
	agents, end, err := p.brought(stopping, e, quiet)
	if err != nil {
		return down, e.unbrought(stopping, err)
	}
	var up time.Time // all agents joined
	down = func() Code {
		ran := time.Now()
		if err := errors.Join(agents.Down(), end()); err != nil {
			e.complainEach(err)
			return Unreachable
		}
		if !quiet && !up.IsZero() {
			e.say("weir: %d hosts: up in %.1f s, run in %.1f s, down in %.1f s", len(p.file.Hosts), up.Sub(begun).Seconds(), ran.Sub(up).Seconds(), time.Since(ran).Seconds())
		}
		return OK
	}
	joining := time.Now()
	sight, err := e.inspect(stopping, *p.Listen, len(p.file.Hosts))
	if err != nil {
		return func() Code { return OK }, worst(e.unbrought(stopping, err), down())
	}
	up = time.Now()
	if !quiet {
		e.say("weir: %d agents joined, and looked at their hosts (%.1f s)", len(p.file.Hosts), up.Sub(joining).Seconds())
		_, _ = e.Stderr.Write([]byte(layout.Terminal(e.width(true), e.color(false, true)).Page(hostsPage(agents.Reached(), sight))))
	}
	return down, OK
}

// brought starts the agents. end removes what they need on this host.
func (p *gathering) brought(ctx context.Context, e *env, quiet bool) (agents *hosts.Agents, end func() error, err error) {
	o, end, err := e.bringing(ctx, p.file, p.ssh)
	if err != nil {
		return nil, nil, err
	}
	o.Note = func(host, text string) {
		if !quiet {
			e.noted(host, text)
		}
	}
	o.Lost = func(host string, why error) { e.say("weir: %s: its agent ended: %v", host, why) }
	if agents, err = hosts.Up(ctx, o); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return agents, end, nil
}
