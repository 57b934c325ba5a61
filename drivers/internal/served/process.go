//go:build unix

package served

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/needs"
)

// A Spec is a program of a driver's recipe that a test runs by itself, with
// arguments of its own: passwords, certificates, limits, whatever the recipe has no
// setting for.
type Spec struct {
	Recipe  string   // by its name; "" for the driver's first
	Program string   // by the recipe's name for it
	Args    []string // without the program
	Ready   func() error
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: 10 s
}

// A Process is such a program, for the length of a test. Everything that it says
// and stores is in Dir, its working folder, also when it is started again.
type Process struct {
	Dir string

	spec    Spec
	program string
	env     []string // that the install adds
	running *guard.Process
}

// Start starts a program and returns when it is ready. Where the host lacks what
// its install needs the test is skipped, or fails, as with Up.
func Start(t testing.TB, def driver.Definition, s Spec) *Process {
	t.Helper()
	_, in := install(t, def, s.Recipe, 0)
	program, ok := in.Programs[s.Program]
	if !ok {
		t.Fatalf("the recipe of %s has no program %q", def.Name, s.Program)
	}
	p := &Process{Dir: t.TempDir(), spec: s, program: program, env: in.Env}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// install returns a recipe with its programs, installed where they are not there.
func install(t testing.TB, def driver.Definition, recipe string, nodes int) (*broker.Recipe, *broker.Installation) {
	t.Helper()
	r, err := broker.RecipeOf(def, recipe)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), installLimit)
	defer cancel()
	in, err := broker.Ensure(ctx, broker.Installing{
		Self: self, Driver: def.Name, Recipe: r, Cache: cache(t), Note: func(line string) { t.Log(line) },
	})
	if errors.Is(err, broker.ErrMissing) {
		if nodes > 0 {
			note(t, Line{Recipe: r.Name, Nodes: nodes, Lacks: err.Error()})
		}
		needs.Host(t, "servers", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, in
}

// cache is the folder of installs.
func cache(t testing.TB) string {
	t.Helper()
	dir, err := broker.CacheDir(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// readyPause lies between two looks at whether a program is ready.
const readyPause = 10 * time.Millisecond

// Start starts a program that was stopped, in the same folder, and returns when it
// is ready.
func (p *Process) Start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit)
	defer cancel()
	p.running, err = guard.Start(ctx, self, guard.Spec{
		Args: append([]string{p.program}, p.spec.Args...), Env: slices.Concat(os.Environ(), p.env, []string{"GORACE=atexit_sleep_ms=0"}),
		Dir: p.Dir, Grace: max(p.spec.Grace, 0),
	})
	if err != nil {
		return err
	}
	for {
		if err = p.spec.Ready(); err == nil {
			return nil
		}
		select {
		case <-p.running.Done():
			return fmt.Errorf("%s ended (%w): %s", p.spec.Program, p.running.Err(), p.said())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is not ready after %v: %w: %s", p.spec.Program, readyLimit, err, p.said()), p.Stop())
		case <-time.After(readyPause):
		}
	}
}

// said is what the program printed.
func (p *Process) said() string {
	var all string
	for _, name := range []string{guard.StdoutFile, guard.StderrFile} {
		b, _ := os.ReadFile(filepath.Join(p.Dir, name)) // what there is
		all += string(b)
	}
	return all
}

// Stop asks the program to end, kills it after its grace, and returns when it is
// gone. It is idempotent.
func (p *Process) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err := p.running.Stop(ctx)
	if exit := (*guard.ExitError)(nil); errors.As(err, &exit) {
		return nil // it had ended before
	}
	return err
}

// Kill ends the program at once and returns when it is gone.
func (p *Process) Kill() error {
	if err := syscall.Kill(p.running.Pid(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	select {
	case <-p.running.Done():
		return nil
	case <-time.After(stopLimit):
		return fmt.Errorf("%s is not gone after %v", p.spec.Program, stopLimit)
	}
}

// Restart breaks all connections by ending the program, and starts it again.
func (p *Process) Restart() error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start()
}

// Stall makes the program stop reading until resume is called, as that of a System.
func (p *Process) Stall() (resume func(), err error) { return stall([]int{p.running.Pid()}) }

// FreePorts returns ports on 127.0.0.1 without a listener, each number one more than that
// before it. They are below those from which systems give clients theirs: a server that
// takes seconds to come to its port finds it free.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	const from, to = 20_000, 32_000 // Linux gives clients 32768 and up
	for range 1000 {
		if first := from + rand.IntN(to-from); free(first, n) {
			ports := make([]int, n)
			for i := range ports {
				ports[i] = first + i
			}
			return ports
		}
	}
	t.Fatalf("no %d free ports that follow one another", n)
	return nil
}

// free reports whether n ports from first on have no listener.
func free(first, n int) bool {
	for i := range n {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+i)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
