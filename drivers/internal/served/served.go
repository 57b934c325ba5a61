//go:build unix

// Package served gives the tests of a driver a real server by the driver's own
// recipe, as weir starts it: several where asked, which can be stalled and
// restarted. A test binary that uses it calls Main from its TestMain.
package served

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/proctree"
)

// Bounds of waits. An install may build a server from source. A recipe bounds its
// start itself, at 10 minutes at most, and then says what was wrong.
const (
	installLimit = 8 * time.Minute
	startLimit   = 11 * time.Minute
	readyLimit   = 3 * time.Minute // of a program by itself
	stopLimit    = 2 * time.Minute
)

// Main makes this process one of those that install, start and guard servers
// where it was started as one, and returns at once where it was not. drivers are
// all that the binary's tests start servers for.
func Main(drivers ...driver.Definition) {
	if code, ok := guard.Main(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) < 3 || os.Args[1] != "internal" {
		return
	}
	registry, err := driver.NewRegistry(drivers...)
	if err == nil {
		switch rest := os.Args[3:]; os.Args[2] {
		case "install":
			err = broker.InstallMain(context.Background(), rest, registry, os.Stdout)
		case "system":
			// What these servers do matters here and how fast they do it does not: a JVM
			// that stays with its quick compiler needs a third less of a host.
			// One that is killed leaves the libraries that it unpacked: in the system's folder.
			java := "-XX:TieredStopAtLevel=1"
			if i := slices.Index(rest, "--dir"); i >= 0 && i+1 < len(rest) {
				java += " -Djava.io.tmpdir=" + rest[i+1]
			}
			if err = os.Setenv("JAVA_TOOL_OPTIONS", java); err != nil {
				break
			}
			err = broker.SystemMain(context.Background(), rest, registry, os.Stdout, os.Stderr)
		case "clock":
			err = clockstep.Main(os.Stdin, os.Stdout)
		default:
			err = fmt.Errorf("no such process: %q", os.Args[2])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// With chooses what is not the recipe's default.
type With struct {
	Recipe   string            // by its name; "" for the driver's first
	Settings map[string]string // embeds the recipe
}

// A System is a real server, or several, for the length of a test.
type System struct {
	Address []string
	Options map[string][]string // for a Config: the address, and what else the recipe has the driver told
	Pids    []int               // of the servers, as they were when they had started
	At      []string            // host:port of each of their ports

	recipe  string
	running *broker.Running
}

// Up starts a system of the driver's recipe. Where the host lacks what that
// needs the test is skipped, and lists it; where the environment has CI set it
// fails then.
func Up(t testing.TB, def driver.Definition, nodes int, with ...With) *System {
	t.Helper()
	var w With
	if len(with) > 0 {
		w = with[0]
	}
	s := start(t, def, nodes, w)
	t.Setenv(tested.VariableRecipe, s.recipe) // for drivertest.Run, which may record what it ran against
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stopping %s: %v", s.recipe, err)
		}
	})
	return s
}

// endPause is how long servers have to end by themselves when no test needs them any
// more. Some take 6 s for it, others the grace of their recipe. Restart waits for that.
const endPause = time.Second

// stop ends the servers and removes what they stored: first as weir does, and after
// endPause by SIGKILL.
func (s *System) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	kill := time.AfterFunc(endPause, s.kill)
	defer kill.Stop()
	return s.running.Stop(ctx)
}

// kill ends every process of the servers at once.
func (s *System) kill() {
	guard, supervisor := s.running.Guard()
	for _, pid := range proctree.Below(proctree.All(proctree.Host()), guard) {
		if pid != supervisor {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
	}
}

// take takes over what is known of the running system.
func (s *System) take() {
	s.Address, s.Pids = s.running.Address, slices.Clone(s.running.Pids)
	s.At = nil
	for _, p := range s.running.Processes {
		s.At = append(s.At, p.At...)
	}
	s.Options = maps.Clone(s.running.Options)
	if s.Options == nil {
		s.Options = map[string][]string{}
	}
	s.Options["address"] = s.Address
}

// Restart ends the servers and starts them again, with the same folders, ports
// and settings, and returns when they answer. It is what a Harness calls Cut.
func (s *System) Restart() error { return s.RestartOnly() }

// KillAndRestart is Restart for servers that are killed: no connection is closed as the
// protocol has it, and nothing is put in order first.
func (s *System) KillAndRestart() error {
	s.kill()
	return s.Restart()
}

// Kill kills every server; start starts them again. It is what a Harness calls Kill.
func (s *System) Kill() (start func() error) {
	s.kill()
	return s.Restart
}

// RestartOnly is Restart for the servers of these names ("broker-2") alone: those that
// clients connect to, where the others take long to start. The others go on.
func (s *System) RestartOnly(names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := s.running.Restart(ctx, names...); err != nil {
		return err
	}
	s.take()
	return nil
}

// Stall makes every server stop reading until resume is called, with all that stem
// from it by then: some have a process for each connection. It returns when every
// thread of theirs has stopped, as far as the host tells: the signal is only on its
// way when the call that sends it returns.
func (s *System) Stall() (resume func(), err error) { return stall(s.Pids) }

// stall stops processes and those below them.
func stall(pids []int) (resume func(), err error) {
	all := map[int]bool{}
	resume = func() {
		for pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may be gone
		}
	}
	// Until no new one is found: one that has not stopped yet may start another.
	for again := true; again; {
		again = false
		host := proctree.All(proctree.Host())
		for _, root := range pids {
			for _, pid := range append([]int{root}, proctree.Below(host, root)...) {
				if all[pid] {
					continue
				}
				// What a server had only just started may be gone, and what it began with.
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
					resume()
					return nil, fmt.Errorf("stopping process %d: %w", pid, err)
				}
				all[pid], again = true, true
			}
		}
		for range 10_000 {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), running) {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return resume, nil
}

// running reports whether a thread of the process runs, as /proc has it; false
// where there is no /proc to ask.
func running(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, t := range threads {
		b, err := os.ReadFile(t)
		// The state follows the name, which is in parentheses and may hold any.
		if i := bytes.LastIndexByte(b, ')'); err == nil && (i+2 >= len(b) || !strings.ContainsRune("TtZX", rune(b[i+2]))) {
			return true
		}
	}
	return false
}
