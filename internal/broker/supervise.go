//go:build unix

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/netpartition"
	"github.com/weirmq/weir/internal/slowdisk"
)

// SystemMain is the process that StartSystem starts below a guard: `weir internal system DRIVER RECIPE
// --dir D --cache C --nodes N --bind IP --groups PATH --place IP=PATH... --set NAME=VALUE...`. args
// are the arguments after system. It starts the servers and prints one line on stdout when they answer
// (and again after each ordered restart) and one whenever a server ends or gets a new process. Its log
// goes to stderr as JSON. It runs until ctx ends or SIGTERM arrives, and then returns nil. A system
// that does not start returns ErrStart; a system whose last process has ended is an error, too.
func SystemMain(ctx context.Context, args []string, drivers *driver.Registry, stdout, stderr io.Writer) error {
	if len(args) < 2 {
		return errors.New("system: no driver or recipe")
	}
	def, recipe, err := Find(drivers, args[0], args[1])
	if err != nil {
		return fmt.Errorf("system: %w", err)
	}
	p := &plan{recipe: recipe, settings: recipe.defaults()}
	var cache string
	flags := flag.NewFlagSet("system", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&p.root, "dir", "", "folder")
	flags.StringVar(&cache, "cache", "", "folder of installs")
	flags.IntVar(&p.nodes, "nodes", 1, "servers")
	flags.Func("bind", "address to listen at", func(text string) error {
		p.bind = text
		return CheckBind(text)
	})
	flags.DurationVar(&p.linger, "linger", linger, "how long a system whose last server has ended may still be restarted")
	flags.BoolVar(&p.disks, "disks", false, "each process has a disk of its own for its data")
	flags.BoolVar(&p.slow, "slow", false, "the data of each process lie on a file system that can be slow")
	flags.StringVar(&p.groups, "groups", "", "control group to make, with one in it for the processes of each node")
	flags.Func("place", "of a node, in their order: its address and the path of its network namespace, IP=PATH", func(text string) error {
		address, space, _ := strings.Cut(text, "=")
		p.places = append(p.places, Place{address, space})
		return CheckBind(address)
	})
	flags.Func("set", "setting of the servers, NAME=VALUE", func(text string) error {
		name, value, _ := strings.Cut(text, "=")
		p.settings[name] = value
		return recipe.CheckSetting(name, value)
	})
	if err := flags.Parse(args[2:]); err != nil {
		return fmt.Errorf("system: %w", err)
	}
	if p.root == "" || cache == "" || flags.NArg() > 0 {
		return fmt.Errorf("system: --dir and --cache are needed, and nothing beside flags (%q)", flags.Args())
	}
	if p.disks || p.slow {
		if err := apartMounts(); err != nil {
			return fmt.Errorf("%w: %w", ErrStart, err)
		}
	}
	if p.groups != "" {
		if err := netpartition.Make(p.groups, p.nodes); err != nil {
			return fmt.Errorf("%w: %w", ErrStart, err)
		}
	}
	// The guard sends SIGTERM; the servers get theirs from here (guard.Spec.Orderly).
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	s := &supervisor{
		host: thisHost(), plan: p, def: def, ended: make(chan *server, maxNodes), full: map[*unit]*filler{}, slow: map[string]*slowdisk.Disk{},
		log: slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	err = s.run(ctx, cache, stdout)
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case s.up:
		return err
	}
	return fmt.Errorf("%w: %w", ErrStart, err)
}

// A supervisor starts the servers of a system and watches them.
type supervisor struct {
	host      *host
	plan      *plan
	def       driver.Definition
	installed *Installation
	layout    *layout
	servers   []*server
	ended     chan *server
	full      map[*unit]*filler         // disks filled by an order
	slow      map[string]*slowdisk.Disk // slowable disks, by process name
	clocks    clocks                    // clocks stepped by an order
	up        bool                      // has answered at least once
	reaper    *reaper
	log       *slog.Logger
}

// run runs the system from start to end.
func (s *supervisor) run(ctx context.Context, cache string, stdout io.Writer) error {
	var err error
	if s.installed, err = s.host.installed(ctx, s.plan.recipe, cache); err != nil {
		return err
	}
	if s.installed == nil {
		return fmt.Errorf("%s is not installed (weir broker install %s)", s.plan.recipe.Name, s.plan.recipe.Name)
	}
	s.plan.install, s.plan.programs = s.installed.Dir, maps.Clone(s.installed.Programs)
	for _, n := range s.plan.recipe.Needs {
		if s.plan.programs[n.Program], err = s.host.look(n.Program); err != nil {
			return err
		}
	}
	if s.reaper, err = newReaper(s.plan.root, s.plan.groups); err != nil {
		return err
	}
	defer s.reaper.close()
	orders, end, err := takeOrders(s.plan.root)
	if err != nil {
		return err
	}
	defer end()
	defer s.endDisks() // after the servers, which still write while they end
	defer s.stop(context.WithoutCancel(ctx))
	defer s.clocks.close()
	if err := s.begin(ctx, stdout); err != nil {
		return err
	}
	s.up = true
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-orders:
			if err := s.obey(ctx, o, stdout); err != nil {
				return err
			}
		case <-s.clocks.due():
			s.keepSteps()
		case v := <-s.ended:
			if err := s.lost(ctx, v, orders, stdout); err != nil {
				return err
			}
		}
	}
}

// startAttempts is how often a system is started with new ports when a port that was free when chosen
// was taken before the server bound it.
const startAttempts = 3

// begin starts the system for the first time.
func (s *supervisor) begin(ctx context.Context, stdout io.Writer) error {
	for attempt := 1; ; attempt++ {
		if err := s.plan.choosePorts(); err != nil {
			return fmt.Errorf("choosing ports: %w", err)
		}
		var err error
		if s.layout, err = s.plan.layout(); err != nil {
			return err
		}
		if err = s.start(ctx, true, stdout); err == nil {
			return nil
		}
		if !errors.Is(err, errEnded) || attempt == startAttempts || ctx.Err() != nil {
			return err
		}
		s.stop(ctx)
		if !s.portTaken() {
			return err
		}
		s.log.Info("another process took a port: starting again with other ports", "attempt", attempt, "why", err)
		for _, u := range s.layout.units {
			if err := s.clear(&u); err != nil {
				return err
			}
		}
	}
}

// taken matches the messages with which servers report that a port is in use.
var taken = regexp.MustCompile(`(?i)address (is )?already in use|address in use|eaddrinuse|port is already (allocated|in use)`)

// portTaken reports whether a server that ended may have found its port taken: something listens there
// now, or its last output says so.
func (s *supervisor) portTaken() bool {
	for node, ports := range s.plan.ports {
		if s.plan.apart() {
			break // a node's namespace has no other processes
		}
		for _, number := range ports {
			l, err := net.Listen("tcp", net.JoinHostPort(s.plan.reach(node+1), strconv.Itoa(number)))
			if err != nil {
				return true
			}
			_ = l.Close()
		}
	}
	for i := range s.layout.units {
		for _, log := range s.layout.units[i].logs {
			if end, err := logTail(log, saidBytes); err == nil && taken.Match(end) {
				return true
			}
		}
	}
	return false
}

// restart stops the named servers, or all if there are no names, and starts them again. It announces
// each, and returns when the system answers.
func (s *supervisor) restart(ctx context.Context, names []string, stdout io.Writer) error {
	if len(names) > 0 {
		if err := s.end(ctx, names, stdout); err != nil {
			return err
		}
		if err := s.revive(ctx, names, stdout); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, s.plan.recipe.within())
		defer cancel()
		return s.answers(ctx, limited, stdout)
	}
	before := s.servers
	s.stop(ctx)
	for _, v := range before {
		if err := v.tell(stdout, "stopped for a restart"); err != nil {
			return err
		}
	}
	// A clustered server may end because it came back before its neighbours. Start it again with them, as
	// a service manager would.
	for attempt := 1; ; attempt++ {
		err := s.start(ctx, false, stdout)
		if err == nil {
			break
		}
		if !errors.Is(err, errEnded) || attempt == startAttempts || ctx.Err() != nil {
			return err
		}
		s.log.Warn("a server ended while it started: starting again", "attempt", attempt, "why", err)
		s.stop(ctx)
	}
	for _, v := range s.servers {
		if err := v.tell(stdout, ""); err != nil {
			return err
		}
	}
	return nil
}

// linger is how long a system whose last server has ended may still be restarted, unless the flag says
// otherwise.
const linger = 5 * time.Second

// lost reports a server that ended by itself. It returns an error if none is left, unless a restart is
// ordered in time.
func (s *supervisor) lost(ctx context.Context, v *server, orders <-chan order, stdout io.Writer) error {
	// Whatever is ending the whole system may have reached the server first.
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(200 * time.Millisecond):
	}
	if !slices.Contains(s.servers, v) || v.meant {
		return nil // from before a restart or a fault
	}
	if err := v.tell(stdout, v.whyShort()); err != nil {
		return err
	}
	if s.left() {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case o := <-orders:
		if err := s.obey(ctx, o, stdout); err != nil || s.left() {
			return err
		}
	case <-time.After(s.plan.linger):
	}
	return errors.New("no server is left")
}

// left reports whether a server still runs. A server that a fault ended counts: it comes back, or the
// run continues without it.
func (s *supervisor) left() bool {
	return slices.ContainsFunc(s.servers, func(v *server) bool { return v.meant || !v.gone() })
}

// start starts all processes in order, waits until the system answers, and announces it. The first
// time it also creates the folders and runs the preparatory commands.
func (s *supervisor) start(ctx context.Context, first bool, stdout io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, s.plan.recipe.within())
	defer cancel()
	for i := range s.plan.recipe.Processes {
		part := &s.plan.recipe.Processes[i]
		var units []*unit
		for k := range s.layout.units {
			if u := &s.layout.units[k]; u.part == part {
				units = append(units, u)
			}
		}
		for _, u := range units {
			if first {
				if err := s.prepare(limited, u); err != nil {
					return err
				}
			}
			if err := s.spawn(u); err != nil {
				return err
			}
		}
		for _, u := range units {
			for _, c := range u.after {
				if err := s.command(limited, u, c); err != nil {
					return err
				}
			}
		}
	}
	return s.answers(ctx, limited, stdout)
}

// answers waits until the system answers or limited ends, and announces it.
func (s *supervisor) answers(ctx, limited context.Context, stdout io.Writer) error {
	q := &question{
		def: s.def, address: s.layout.address, options: s.layout.options[s.def.Name],
		nodes: s.plan.nodes, declare: s.plan.recipe.Ready.Declare, confirm: s.plan.recipe.Ready.Confirm,
	}
	if _, err := q.ask(limited, s.failed); err != nil {
		if gone := s.failed(); gone != nil {
			return gone
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			what := "does not answer after"
			if errors.Is(err, driver.ErrBlocked) {
				what = "answers, and was not ready after"
			}
			err = fmt.Errorf("%s %v: %w", what, s.plan.recipe.within(), err)
		}
		return err
	}
	return s.announce(stdout, q.options)
}

// announce prints that the system answers.
func (s *supervisor) announce(stdout io.Writer, options map[string][]string) error {
	a := announcement{Address: s.layout.address, Options: options, Version: s.installed.Version, Disks: s.diskPids()}
	for k := range s.layout.units { // a restarted server keeps its position
		if i := slices.IndexFunc(s.servers, func(v *server) bool { return v.unit == &s.layout.units[k] }); i >= 0 {
			v := s.servers[i]
			a.Processes = append(a.Processes, Process{v.unit.name, v.unit.node, descendants(v.cmd.Process.Pid), v.unit.logs, s.plan.at(v.unit.part, v.unit.node)})
		}
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, readyWord+string(b))
	return err
}

// errEnded is returned when a server ended before the system answered.
var errEnded = errors.New("ended")

// failed returns an error if a server ended, so that the system cannot come up any more.
func (s *supervisor) failed() error {
	for _, v := range s.servers {
		if v.gone() && !v.meant {
			return fmt.Errorf("%s %w: %s", v.unit.name, errEnded, v.why())
		}
	}
	return nil
}

// prepare creates a process's folder and files, and runs the commands that come before it.
func (s *supervisor) prepare(ctx context.Context, u *unit) error {
	if err := s.makeDisk(ctx, u); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		file := filepath.Join(u.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(u.files[name]), 0o600); err != nil {
			return err
		}
	}
	if err := s.hand(u); err != nil {
		return err
	}
	for _, c := range u.before {
		if err := s.command(ctx, u, c); err != nil {
			return err
		}
	}
	return nil
}

// clear removes the folder of a process before it is prepared again.
func (s *supervisor) clear(u *unit) error {
	if err := s.clearDisk(u); err != nil {
		return err
	}
	return os.RemoveAll(u.dir)
}

// stop ends the servers and forgets them. Servers of one kind end together, since some need a quorum
// to shut down. Kinds end in reverse start order, since a server may need an earlier one to shut down.
// In total this takes no longer than the recipe's grace.
func (s *supervisor) stop(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, s.plan.recipe.grace())
	defer cancel()
	for i := range slices.Backward(s.plan.recipe.Processes) {
		var kind []*server
		for _, v := range s.servers {
			if v.unit.part == &s.plan.recipe.Processes[i] {
				kind = append(kind, v)
			}
		}
		s.askToEnd(limited, kind)
	}
	for _, v := range s.servers {
		<-v.done
	}
	s.servers = nil
}

// askToEnd sends servers SIGTERM, and kills those that have not ended within the recipe's grace or
// when ctx ends. It does not wait for killed servers.
func (s *supervisor) askToEnd(ctx context.Context, those []*server) {
	for _, v := range those {
		if v.gone() {
			continue
		}
		_ = v.cmd.Process.Signal(syscall.SIGTERM)
		for _, pid := range descendants(v.cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGCONT) // a stopped process handles no signals
		}
	}
	limit := time.NewTimer(s.plan.recipe.grace())
	defer limit.Stop()
	expired := false
	for _, v := range those {
		for !expired && !v.gone() {
			select {
			case <-v.done:
			case <-limit.C:
				expired = true
			case <-ctx.Done():
				expired = true
			}
		}
		if v.gone() {
			continue
		}
		for _, pid := range descendants(v.cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
