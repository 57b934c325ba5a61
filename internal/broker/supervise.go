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
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirmq/weir/driver"
)

// SystemMain is the process that StartSystem starts below a guard: `weir internal
// system DRIVER RECIPE --dir D --cache C --nodes N --set NAME=VALUE...`, of which
// args are what follows system. It starts the servers, prints one line on stdout
// when they answer (and again after each restart, asked for by a signal), its log
// on stderr as JSON, and runs until ctx ends or SIGTERM comes; it returns nil
// then. A system that does not start, or of which no process is left, is ErrStart.
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
	// The guard asks by SIGTERM, which the servers get at the same time.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	restarts := make(chan os.Signal, 1)
	signal.Notify(restarts, restartSignal)
	defer signal.Stop(restarts)
	s := &supervisor{
		host: thisHost(), plan: p, def: def, ended: make(chan *server, maxNodes),
		log: slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if err := s.run(ctx, cache, restarts, stdout); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	return nil
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
	log       *slog.Logger
}

// A server is one process that runs.
type server struct {
	unit *unit
	cmd  *exec.Cmd
	done chan struct{}
	err  error // after done
}

// gone reports whether the process has ended.
func (v *server) gone() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// run is the life of the system.
func (s *supervisor) run(ctx context.Context, cache string, restarts <-chan os.Signal, stdout io.Writer) error {
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
	if err := s.plan.choosePorts(); err != nil {
		return fmt.Errorf("choosing ports: %w", err)
	}
	if s.layout, err = s.plan.layout(); err != nil {
		return err
	}
	defer s.leave(ctx)
	if err := s.start(ctx, true, stdout); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-restarts:
			s.stop(ctx)
			if err := s.start(ctx, false, stdout); err != nil {
				return err
			}
		case v := <-s.ended:
			if err := s.lost(ctx, v); err != nil {
				return err
			}
		}
	}
}

// lost tells of a server that ended by itself. It fails when none is left.
func (s *supervisor) lost(ctx context.Context, v *server) error {
	// What ends everything may have reached the server first.
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(200 * time.Millisecond):
	}
	if !slices.Contains(s.servers, v) {
		return nil // of before a restart
	}
	if slices.ContainsFunc(s.servers, func(v *server) bool { return !v.gone() }) {
		s.log.Warn("a server ended", "process", v.unit.name, "why", v.why())
		return nil
	}
	return fmt.Errorf("%s ended: %s", v.unit.name, v.why())
}

// why says how a server ended, with the last it said.
func (v *server) why() string {
	text := "exit code 0"
	if v.err != nil {
		text = v.err.Error()
	}
	if said := logEnd(filepath.Join(v.unit.dir, outputFile)); said != "" {
		text += ": " + said
	}
	return text
}

// logEnd returns the last lines of a log.
func logEnd(file string) string {
	b, _ := logTail(file, saidBytes) // what there is
	return lastLines(b)
}

// LogEnd returns the last lines of a log.
func LogEnd(file string, n int) ([]string, error) {
	b, err := logTail(file, maxLogEnd)
	if err != nil {
		return nil, err
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return all[max(0, len(all)-n):], nil
}

// maxLogEnd bounds what is read of a log.
const maxLogEnd = 4 << 20

// logTail returns the last bytes of a log.
func logTail(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err == nil && st.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// start starts every process in its turn, waits until the system answers, and
// says so. The first time it also makes the folders and runs what comes before.
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
	q := &question{
		def: s.def, address: s.layout.address, options: s.layout.options[s.def.Name],
		nodes: s.plan.nodes, declare: s.plan.recipe.Ready.Declare,
	}
	if _, err := q.ask(limited, s.failed); err != nil {
		if gone := s.failed(); gone != nil {
			return gone
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("does not answer after %v: %w", s.plan.recipe.within(), err)
		}
		return err
	}
	return s.announce(stdout, q.options)
}

// announce says that the system answers.
func (s *supervisor) announce(stdout io.Writer, options map[string][]string) error {
	a := announcement{Address: s.layout.address, Options: options, Version: s.installed.Version}
	for _, v := range s.servers {
		a.Processes = append(a.Processes, Process{v.unit.name, v.unit.node, descendants(v.cmd.Process.Pid), v.unit.logs})
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, readyWord+string(b))
	return err
}

// failed returns why the system cannot come up any more: a server that ended.
func (s *supervisor) failed() error {
	for _, v := range s.servers {
		if v.gone() {
			return fmt.Errorf("%s ended: %s", v.unit.name, v.why())
		}
	}
	return nil
}

// prepare makes the folder of a process, with its files, and runs what comes
// before it.
func (s *supervisor) prepare(ctx context.Context, u *unit) error {
	if err := os.MkdirAll(filepath.Join(u.dir, dataFolder), 0o755); err != nil {
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

// owner returns the user that a process becomes, nil where it stays what weir is.
func (s *supervisor) owner(u *unit) (*syscall.Credential, error) {
	if u.part.As == "" || !s.host.root {
		return nil, nil
	}
	who, err := user.Lookup(u.part.As)
	if err != nil {
		return nil, fmt.Errorf("%s does not run as root, and there is no user for it: %w", u.part.Name, err)
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("user %s: %w", u.part.As, err)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	ids, err := who.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.part.As, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	return c, nil
}

// hand gives a process's folder to the user that it becomes.
func (s *supervisor) hand(u *unit) error {
	c, err := s.owner(u)
	if err != nil || c == nil {
		return err
	}
	// The folder above is ours alone otherwise.
	if err := os.Chmod(s.plan.root, 0o711); err != nil {
		return err
	}
	for dir := filepath.Dir(s.plan.root); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err != nil || st.Mode()&0o001 == 0 {
			return fmt.Errorf("%s does not run as root, and the user %s cannot enter %s (set TMPDIR to a folder that everybody can)", u.part.Name, u.part.As, dir)
		}
	}
	return filepath.WalkDir(u.dir, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(c.Uid), int(c.Gid))
	})
}

// prepared returns a command with everything but its context's end.
func (s *supervisor) prepared(ctx context.Context, u *unit, args []string) (*exec.Cmd, error) {
	program := args[0]
	if !filepath.IsAbs(program) {
		found, err := s.host.look(program)
		if err != nil {
			return nil, err
		}
		program = found
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...)
	cmd.Dir = u.dir
	c, err := s.owner(u)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), s.installed.Env...)
	if c != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c}
		cmd.Env = append(cmd.Env, "HOME="+u.dir, "USER="+u.part.As, "LOGNAME="+u.part.As)
	}
	cmd.Env = append(cmd.Env, u.env...)
	out, err := os.OpenFile(filepath.Join(u.dir, outputFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out // the caller closes it
	return cmd, nil
}

// commandPause lies between two attempts of a command that is tried again.
const commandPause = 250 * time.Millisecond

// command runs a command to its end.
func (s *supervisor) command(ctx context.Context, u *unit, c Command) error {
	for {
		cmd, err := s.prepared(ctx, u, c.Run)
		if err != nil {
			return err
		}
		err = cmd.Run()
		_ = cmd.Stdout.(*os.File).Close()
		if err == nil {
			return nil
		}
		if gone := s.failed(); gone != nil {
			return gone
		}
		if !c.Retry || ctx.Err() != nil {
			said := logEnd(filepath.Join(u.dir, outputFile))
			return fmt.Errorf("%s: %s: %w: %s", u.name, filepath.Base(c.Run[0]), errors.Join(err, ctx.Err()), said)
		}
		select {
		case <-time.After(commandPause):
		case <-ctx.Done():
		}
	}
}

// spawn starts a server. It stays in this process's group, by which a guard finds
// it where there is no subreaper.
func (s *supervisor) spawn(u *unit) error {
	// Not bound to a context: how a server ends is its own matter and the guard's.
	cmd, err := s.prepared(context.Background(), u, u.start)
	if err != nil {
		return err
	}
	defer func() { _ = cmd.Stdout.(*os.File).Close() }()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", u.name, err)
	}
	v := &server{unit: u, cmd: cmd, done: make(chan struct{})}
	s.servers = append(s.servers, v)
	go func() {
		v.err = cmd.Wait()
		close(v.done)
		select {
		case s.ended <- v:
		default: // so many that nobody needs to be told
		}
	}()
	return nil
}

// stop ends the servers all together, and forgets them.
func (s *supervisor) stop(ctx context.Context) {
	for _, v := range s.servers {
		if !v.gone() {
			_ = v.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	limit := time.NewTimer(s.plan.recipe.grace())
	defer limit.Stop()
	expired := false
	for _, v := range s.servers {
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
	for _, v := range s.servers {
		<-v.done
	}
	s.servers = nil
}

// leave returns when no server is left. Where ctx has ended the guard has asked
// them already, and a second time means "at once" to some.
func (s *supervisor) leave(ctx context.Context) {
	if ctx.Err() != nil {
		limit := time.NewTimer(s.plan.recipe.grace())
		defer limit.Stop()
		for _, v := range s.servers {
			select {
			case <-v.done:
			case <-limit.C:
			}
		}
	}
	s.stop(context.WithoutCancel(ctx))
}
