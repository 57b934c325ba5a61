//go:build systems

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/proctree"
	"github.com/weirmq/weir/internal/tcpreset"
)

// traces are the possible leftovers of faults on the host: devices, and disks and mounts in a folder.
func traces(t *testing.T, dir string) string {
	t.Helper()
	found := []string{devices(t)}
	for _, path := range []string{"/proc/self/mounts", "/proc/net/route", "/proc/net/fib_trie"} {
		b := must.Get(os.ReadFile(path))(t)
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, dir) || strings.HasPrefix(path, "/proc/net/") {
				found = append(found, line)
			}
		}
	}
	loops := must.Get(filepath.Glob("/sys/block/loop*/loop/backing_file"))(t)
	for _, x := range loops {
		if b, _ := os.ReadFile(x); strings.HasPrefix(string(b), dir) { // it may be gone meanwhile
			found = append(found, string(b))
		}
	}
	return strings.Join(found, "\n")
}

// Kills runs in the middle of each kind of fault.
func TestNothingOfAFaultIsLeft(t *testing.T) {
	const each = 3 // 20 runs of each were done by hand; see docs/faults.md
	networked(t)
	self := must.Get(os.Executable())(t)
	for _, check := range []func() error{tcpreset.Check, func() error { return broker.CheckDisks(t.Context()) }, broker.CheckSlowDisks, func() error { return clockstep.Check(self) }} {
		must.Do(t, check())
	}
	cache := must.Get(broker.CacheDir(os.LookupEnv))(t)
	type killed struct {
		name   string
		fault  string
		system []string
		times  int
	}
	var cases []killed
	for _, fault := range []string{
		"kill 1 at 100ms for 9s", "stop 1 at 100ms for 9s", "restart 1 at 0s every 300ms", "disconnect clients at 100ms for 9s",
		"cut 1 at 100ms for 9s", "fill 1 at 100ms for 9s", "slow 1 by 50ms at 100ms for 9s", "clock 1 by -5s at 100ms for 9s",
	} {
		cases = append(cases, killed{strings.Fields(fault)[0], fault, []string{"--driver", "jetstream"}, each})
	}
	// A server with a helper beside it. Three nodes take a minute, and were killed by hand.
	cases = append(cases, killed{"cut of RabbitMQ", "cut 1 at 100ms for 9s", []string{"--driver", "rabbitmq"}, 1})
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			for range x.times {
				before := traces(t, os.TempDir())
				var all []int
				f := &flight{
					args: append(append([]string{"run"}, x.system...), "--start", "process", "--rate", "200/s", "--warmup", "100ms", "--measure", "10s", "--fault", x.fault, "--out", "r"),
					env:  map[string]string{"WEIR_CACHE": cache},
					on:   "fault: ",
				}
				f.then = func(p *os.Process) {
					all = proctree.Below(proctree.All(proctree.Host()), p.Pid)
					_ = p.Signal(syscall.SIGKILL)
				}
				if code := f.fly(t); code != -1 {
					t.Fatalf("exit code %d; want it killed\n%s", code, &f.stderr)
				}
				if len(all) < 2 { // a guard and a supervisor
					t.Errorf("%d processes of the run were seen", len(all))
				}
				// Servers have the grace of their recipe, of RabbitMQ 30 s, before they are killed, too.
				allGone(t, all)
				if left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.dir), "temp", "weir-*")); len(left) > 0 {
					t.Errorf("%v are left", left)
				}
				// The kernel gives a loop device back a moment after its last process.
				after := traces(t, os.TempDir())
				for deadline := time.Now().Add(10 * time.Second); after != before && time.Now().Before(deadline); after = traces(t, os.TempDir()) {
					time.Sleep(50 * time.Millisecond)
				}
				golden.Equal(t, before, after, "of the host, before and after")
			}
		})
	}
}
