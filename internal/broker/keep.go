//go:build unix

package broker

import (
	"bufio"
	"cmp"
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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/flock"
)

// keepWord is what Keep sends to the keeper when the system is to stay up.
const keepWord = "keep"

// Keep starts a system like StartSystem, but the system stays up after this process has ended, until
// Down. A separate process, the keeper, holds the system as weir does for a run. Until Keep has
// returned nothing is permanent: if ctx ends or this process is killed, everything is removed. If a
// system of that name is already up, Keep returns ErrKept.
func Keep(ctx context.Context, s Serving) (*Kept, error) {
	if err := cmp.Or(s.Check(), s.Fits()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	if placesOf(s.Cache, s.Recipe.Name).held() {
		return nil, alreadyUp(s.Recipe.Name)
	}
	args := []string{"internal", "keep", s.Definition.Name, s.Recipe.Ref(), "--cache", s.Cache, "--nodes", strconv.Itoa(max(s.Nodes, 1))}
	for _, k := range slices.Sorted(maps.Keys(s.Settings)) {
		args = append(args, "--set", k+"="+s.Settings[k])
	}
	var ends []io.Closer // our ends of the pipes
	defer func() {
		for _, c := range ends {
			_ = c.Close()
		}
	}()
	cmd := exec.Command(s.Self, args...)
	cmd.Dir = "/" // so that it keeps no folder busy
	cmd.Env = environment(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	ends = append(ends, stdin)
	var pipes [2]*os.File
	for i, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStart, err)
		}
		ends = append(ends, r)
		defer func() { _ = w.Close() }()
		pipes[i], *to = r, w
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	_, _ = cmd.Stdout.(*os.File).Close(), cmd.Stderr.(*os.File).Close()
	said := &tail{}
	var readers sync.WaitGroup
	readers.Go(func() { lines(pipes[1], said.add) })
	ready := make(chan string, 1)
	readers.Go(func() {
		defer close(ready)
		b := bufio.NewReaderSize(pipes[0], lineBytes)
		line, _ := b.ReadString('\n')
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), readyWord); ok {
			ready <- rest
		}
	})
	k := &Kept{}
	select {
	case line, ok := <-ready:
		if !ok {
			_ = stdin.Close()
			_ = cmd.Wait()
			readers.Wait()
			return nil, fmt.Errorf("%w: %s: %s", ErrStart, s.Recipe.Name, unprefixed(said.String(), s.Recipe.Name))
		}
		if err = json.Unmarshal([]byte(line), k); err == nil {
			_, err = io.WriteString(stdin, keepWord+"\n")
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		// The keeper ends everything if its input ends without keepWord.
		_ = stdin.Close()
		_ = cmd.Wait()
		readers.Wait()
		return nil, fmt.Errorf("%w: %s: %w", ErrStart, s.Recipe.Name, err)
	}
	k.Up = true
	return k, nil
}

func alreadyUp(name string) error {
	return fmt.Errorf("%s %w (weir broker status; weir broker down %s)", name, ErrKept, name)
}

// KeepMain is the process that Keep starts: `weir internal keep DRIVER RECIPE --cache C --nodes N
// --set NAME=VALUE...`. args are the arguments after keep. It starts the system, announces it on
// stdout, and stays if it then reads keepWord on stdin; if stdin ends without it, it ends the system
// and itself. SIGTERM ends both.
func KeepMain(ctx context.Context, self string, args []string, drivers *driver.Registry, stdin io.Reader, stdout io.Writer) error {
	if len(args) < 2 {
		return errors.New("keep: no driver or recipe")
	}
	def, recipe, err := Find(drivers, args[0], args[1])
	if err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	s := Serving{Self: self, Definition: def, Recipe: recipe, Settings: map[string]string{}}
	flags := flag.NewFlagSet("keep", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.Cache, "cache", "", "folder of installs")
	flags.IntVar(&s.Nodes, "nodes", 1, "servers")
	flags.Func("set", "setting of the servers, NAME=VALUE", func(text string) error {
		name, value, _ := strings.Cut(text, "=")
		s.Settings[name] = value
		return nil
	})
	if err := flags.Parse(args[2:]); err != nil || s.Cache == "" || flags.NArg() > 0 {
		return fmt.Errorf("keep: --cache is needed, and nothing beside flags (%q)", args[2:])
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// A closed pipe or terminal must not end the keeper. The signals are caught rather than ignored,
	// because the servers would inherit ignored ones.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGHUP)
	p := placesOf(s.Cache, recipe.Name)
	lock, err := p.hold()
	if errors.Is(err, flock.ErrHeld) {
		return alreadyUp(recipe.Name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	return keep(ctx, s, p, stdin, stdout)
}

// keep runs the keeper, which holds the lock.
func keep(ctx context.Context, s Serving, p places, stdin io.Reader, stdout io.Writer) (err error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.Log = slog.New(slog.NewTextHandler(log, nil))
	stays := false
	defer func() {
		if !stays {
			err = errors.Join(err, p.clear())
		}
	}()

	// Starting ends with keepWord, end of input, or ctx.
	word := make(chan bool, 1)
	go func() {
		line, _ := bufio.NewReader(stdin).ReadString('\n')
		word <- strings.TrimSpace(line) == keepWord
	}()
	starting, abort := context.WithCancel(ctx)
	defer abort()
	aborted := make(chan struct{})
	go func() {
		select {
		case ok := <-word:
			if word <- ok; !ok {
				close(aborted)
				abort()
			}
		case <-starting.Done():
		}
	}()
	running, err := StartSystem(starting, s)
	if err != nil {
		return err
	}
	k := &Kept{
		Schema: schemaKept, Name: s.Recipe.Name, Driver: s.Definition.Name, Nodes: max(s.Nodes, 1), Settings: s.Settings,
		Address: running.Address, Options: running.Options, Processes: running.Processes, Version: running.Version,
		Dir: running.Dir, Log: p.log, Keeper: os.Getpid(), Since: time.Now().UTC(),
	}
	end := func() error {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Recipe.grace()+waitLimit)
		defer cancel()
		return running.Stop(ending)
	}
	if err := p.write(k); err != nil {
		return errors.Join(err, end())
	}
	b, err := json.Marshal(k)
	if err != nil {
		return errors.Join(err, end())
	}
	if _, err := fmt.Fprintln(stdout, readyWord+string(b)); err != nil {
		return errors.Join(err, end())
	}
	select {
	case ok := <-word:
		if !ok {
			return end()
		}
	case <-aborted:
		return end()
	case <-ctx.Done():
		return end()
	}
	select {
	case <-ctx.Done():
		return end()
	case <-running.Done():
		stays = true // for status, until somebody has seen it
		k.Ended = "it ended by itself"
		if err := running.Err(); err != nil {
			k.Ended = err.Error()
		}
		if said := logEnd(p.log); said != "" {
			k.Ended += ": " + said
		}
		return p.write(k)
	}
}

// Waits of Down.
const (
	downPoll  = 20 * time.Millisecond // how often to check whether the keeper is gone
	goneLimit = 30 * time.Second      // from the end of the keeper to the end of its guard
)

// Down ends a kept system and removes all of it. It returns when nothing is left, or with ctx's error
// while the removal continues. If there is no kept system of that name, it returns false and no error.
func Down(ctx context.Context, cache, name string) (was bool, err error) {
	p := placesOf(cache, name)
	k, err := KeptNamed(cache, name)
	if err != nil || k == nil && !p.held() {
		return false, err
	}
	for asked := false; p.held(); {
		if k == nil { // still starting
			if k, err = KeptNamed(cache, name); err != nil {
				return true, err
			}
		}
		// The process that holds the lock is the keeper in the state file.
		if k != nil && !asked {
			asked = true
			if err := syscall.Kill(k.Keeper, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return true, fmt.Errorf("ending %s: %w", name, err)
			}
		}
		select {
		case <-time.After(downPoll):
		case <-ctx.Done():
			return true, fmt.Errorf("ending %s: %w", name, ctx.Err())
		}
	}
	if k == nil {
		return true, nil // it failed by itself
	}
	// If the keeper was killed, its guard ends the system, unless the host went down with both.
	limit := time.NewTimer(goneLimit)
	defer limit.Stop()
	for {
		if _, err := os.Stat(k.Dir); err != nil {
			return true, p.clear()
		}
		select {
		case <-limit.C:
			if !strings.HasPrefix(filepath.Base(k.Dir), "weir-"+name+"-") {
				return true, fmt.Errorf("ending %s: %s is still there (remove it)", name, k.Dir)
			}
			if err := os.RemoveAll(k.Dir); err != nil {
				return true, fmt.Errorf("ending %s: %w", name, err)
			}
		case <-time.After(downPoll):
		case <-ctx.Done():
			return true, fmt.Errorf("ending %s: %s is still there: %w", name, k.Dir, ctx.Err())
		}
	}
}

// Answers connects to a kept system with its driver and returns the system's own facts.
func (k *Kept) Answers(ctx context.Context, drivers *driver.Registry) (driver.Facts, error) {
	def, err := drivers.Lookup(k.Driver)
	if err != nil {
		return driver.Facts{}, err
	}
	q := &question{def: def, address: k.Address, options: k.Options, nodes: k.Nodes}
	return q.once(ctx)
}
