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

// A Spec is a program of a driver's recipe that a test runs with its own arguments: passwords,
// certificates, limits, and anything else that the recipe has no setting for.
type Spec struct {
	Recipe  string   // name; "": the driver's first
	Program string   // name in the recipe
	Args    []string // without the program name
	Ready   func() error
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: 10 s
}

// A Process is such a program, for the duration of a test. Its output and data are in Dir, its
// working directory, also after a restart.
type Process struct {
	Dir string

	spec    Spec
	program string
	env     []string // added by the installation
	running *guard.Process
}

// Start starts a program and waits until it is ready. If the host lacks what its installation
// needs, the test is skipped or fails, as with Up.
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

// install returns a recipe with its programs, which it installs if necessary.
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

// cache returns the folder for installations.
func cache(t testing.TB) string {
	t.Helper()
	dir, err := broker.CacheDir(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// readyPause is the time between two readiness checks.
const readyPause = 10 * time.Millisecond

// Start restarts a stopped program in the same folder, and waits until it is ready.
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

// said returns the program's output.
func (p *Process) said() string {
	var all string
	for _, name := range []string{guard.StdoutFile, guard.StderrFile} {
		b, _ := os.ReadFile(filepath.Join(p.Dir, name)) // as much as there is
		all += string(b)
	}
	return all
}

// Stop asks the program to exit, kills it after its grace period, and waits for it. It is
// idempotent.
func (p *Process) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err := p.running.Stop(ctx)
	if exit := (*guard.ExitError)(nil); errors.As(err, &exit) {
		return nil // already exited
	}
	return err
}

// Kill kills the program and waits for it.
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

// Restart breaks all connections by stopping the program, and starts it again.
func (p *Process) Restart() error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start()
}

// Stall stops the program from reading until resume is called, like System.Stall.
func (p *Process) Stall() (resume func(), err error) { return Stall(p.running.Pid()) }

// FreePorts returns consecutive free ports on 127.0.0.1. They are below the range for client ports,
// so that they are still free when a server takes seconds to open its port.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	const from, to = 20_000, 32_000 // Linux uses 32768 and up for clients
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

// free reports whether n ports starting at first have no listener.
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
