//go:build unix

// Package served gives the tests of a driver a real server from the driver's own recipe, started as
// weir starts it: several if requested, which can be stalled and restarted. A test binary that uses
// it calls Main from its TestMain.
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

// Time limits. An installation may build a server from source. A recipe limits its own start, to 10
// minutes at most, and then reports what was wrong.
const (
	installLimit = 8 * time.Minute
	startLimit   = 11 * time.Minute
	readyLimit   = 3 * time.Minute // of a single program
	stopLimit    = 2 * time.Minute
)

// Main turns this process into one that installs, starts or guards servers if it was started as
// one; otherwise it returns at once. drivers lists all drivers whose servers the tests start.
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
			// The tests check what these servers do, not how fast: a JVM limited to its quick
			// compiler needs a third less of a host, and starts with a quarter less if it does not
			// verify classes. A killed JVM leaves its unpacked libraries, so they go to the system's
			// own folder.
			java := "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
			if i := slices.Index(rest, "--dir"); i >= 0 && i+1 < len(rest) {
				java += " -Djava.io.tmpdir=" + rest[i+1]
			}
			if err = os.Setenv("JAVA_TOOL_OPTIONS", java); err != nil {
				break
			}
			// The suite kills servers and starts them only when the driver has noticed, which takes as long
			// as the driver's time limits.
			rest = append(rest, "--linger", "2m")
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

// With overrides the recipe's defaults.
type With struct {
	Recipe   string            // name; "": the driver's first
	Settings map[string]string // recipe settings
}

// A System is a real server, or several, for the duration of a test.
type System struct {
	Address []string
	Options map[string][]string // for a Config: the address, and other options that the recipe sets
	Pids    []int               // of the servers, as of their start
	At      []string            // host:port of each port

	recipe  string
	running *broker.Running
}

// Up starts a system from the driver's recipe. If the host lacks what it needs, the test is skipped
// with the list; with CI set, it fails.
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

// endPause is how long unused servers have to exit by themselves. Some take 6 s, others their
// recipe's grace period. Restart waits for that.
const endPause = time.Second

// stop stops the servers and removes their data: first as weir does, and after endPause with
// SIGKILL.
func (s *System) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	kill := time.AfterFunc(endPause, s.kill)
	defer kill.Stop()
	return s.running.Stop(ctx)
}

// kill kills all processes of the servers.
func (s *System) kill() {
	guard, supervisor := s.running.Guard()
	for _, pid := range proctree.Below(proctree.All(proctree.Host()), guard) {
		if pid != supervisor {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have exited
		}
	}
}

// take copies what is known about the running system.
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

// Restart stops the servers and starts them again, with the same folders, ports and settings, and
// waits until they answer. A Harness uses it as Cut.
func (s *System) Restart() error { return s.RestartOnly() }

// KillAndRestart is Restart with SIGKILL: the servers neither close connections properly nor clean
// up.
func (s *System) KillAndRestart() error {
	s.kill()
	return s.Restart()
}

// Kill kills every server; start starts them again. A Harness uses it as Kill.
func (s *System) Kill() (start func() error) {
	s.kill()
	return s.Restart
}

// RestartOnly is Restart for only the servers with these names ("broker-2"): those that clients
// connect to, if the others take long to start. The others keep running.
func (s *System) RestartOnly(names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := s.running.Restart(ctx, names...); err != nil {
		return err
	}
	s.take()
	return nil
}

// Stall stops every server from reading until resume is called, including its current child
// processes: some servers have a process per connection.
func (s *System) Stall() (resume func(), err error) { return Stall(s.Pids...) }

// Stall stops processes and their descendants until resume is called. It returns when every thread
// has stopped, as far as the host reports it: sending the signal does not wait for that.
func Stall(pids ...int) (resume func(), err error) {
	all := map[int]bool{}
	resume = func() {
		for pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have exited
		}
	}
	// Repeat until no new process is found: a process that has not stopped yet may start another.
	for again := true; again; {
		again = false
		host := proctree.All(proctree.Host())
		for _, root := range pids {
			for _, pid := range append([]int{root}, proctree.Below(host, root)...) {
				if all[pid] {
					continue
				}
				// A short-lived child of a server may have exited.
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

// running reports whether a thread of the process runs according to /proc; false without /proc.
func running(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, t := range threads {
		b, err := os.ReadFile(t)
		// The state follows the name, which is in parentheses and may contain any character.
		if i := bytes.LastIndexByte(b, ')'); err == nil && (i+2 >= len(b) || !strings.ContainsRune("TtZX", rune(b[i+2]))) {
			return true
		}
	}
	return false
}
