package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// The agent with the servers kills the leader, by its own clock, and the clients' agents break their
// connections. No confirmed message may be lost.
func TestHostsKillLeaderOnOneHost(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b", "bk")
	_, home := c.server("bk", "broker,faults", "--wrong-clock", "constant=25ms,drift=200ppm")
	c.agent("a", "--allow", "faults")
	c.agent("b", "--allow", "faults")
	run := c.startedOn("bk", "r", fromAToB, "--nodes", "3", "--replication", "3", "--warmup", "1s", "--measure", "9s", "--drain", "60s",
		"--fault", "kill leader at 1s for 2s", "--fault", "disconnect consumers at 6s")
	r := c.ended(run, OK, Invalid, Refused, Unreachable, Failed) // on a busy host it may find no leader any more
	if len(r.Faults) != 2 {
		t.Fatalf("faults %+v", r.Faults)
	}
	kill, broken := r.Faults[0], r.Faults[1]
	if leaderless(kill) {
		t.Logf("the nodes lost their leader before the fault: %s", kill.Error)
		c.gone(home)
		return
	}
	if kill.Do != "kill" || kill.Error != "" || len(kill.Processes) != 1 || kill.UndoneNS == nil || !slices.Equal(kill.Agents, []string{"bk"}) {
		t.Errorf("the kill: %+v", kill)
	}
	if kill.BoundNS == nil || *kill.BoundNS <= 0 || kill.BeganNS < kill.DueNS-*kill.BoundNS {
		t.Errorf("the kill was due at %d, began at %d, to within %v", kill.DueNS, kill.BeganNS, kill.BoundNS)
	}
	if kill.Effect == nil || kill.Effect.BandNS == nil {
		t.Errorf("what followed the kill: %+v", kill.Effect)
	}
	if broken.Do != "disconnect" || broken.Error != "" || broken.Connections == 0 || !slices.Equal(broken.Agents, []string{"a", "b"}) {
		t.Errorf("the disconnect: %+v", broken)
	}
	events := c.events("injected")
	if len(events) != 4 || !strings.HasPrefix(events[0], "bk: kill server-") || !strings.Contains(events[0], "(leader) (by its clock, within ") ||
		!strings.HasPrefix(events[1], "bk: start server-") {
		t.Errorf("events %q", events)
	}
	for _, want := range []string{"(leader), host of bk", "disconnect consumers ("} {
		if !strings.Contains(strings.Join(strings.Fields(run.stdout.String()), " "), want) {
			t.Errorf("%q is not in\n%s", want, &run.stdout)
		}
	}
	c.gone(home)
}

// The coordinator is killed before a fault begins, and another resumes the run after its end.
func TestHostsFaultsNeedNoCoordinator(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b", "bk")
	_, home := c.server("bk", "broker,faults", "--wrong-clock", "constant=25ms,drift=100ppm")
	c.agent("a")
	c.agent("b")
	run := c.startedOn("bk", "r", fromAToB, "--warmup", "500ms", "--measure", "9s", "--drain", "60s", "--fault", "stop 1 at 2500ms for 500ms")
	run.untilLeft(t, 8)
	again, _ := c.another(run)
	r := c.ended(again, OK, Invalid, Refused)
	if gaps := r.Run.Gaps; len(gaps) != 1 {
		t.Errorf("without a coordinator %+v", gaps)
	}
	if len(r.Faults) != 1 {
		t.Fatalf("faults %+v", r.Faults)
	}
	f := r.Faults[0]
	if f.Error != "" || f.UndoneNS == nil || !slices.Equal(f.Agents, []string{"bk"}) || f.BoundNS == nil || f.BeganNS < f.DueNS-*f.BoundNS || f.Effect == nil {
		t.Errorf("%+v", f)
	}
	if lasted := time.Duration(*f.UndoneNS - f.BeganNS); lasted < 450*time.Millisecond {
		t.Errorf("it lasted %v; want 500 ms", lasted)
	}
	if events := c.events("injected"); len(events) != 2 {
		t.Errorf("events %q", events)
	}
	c.gone(home)
}

// While an agent's servers are stopped and their disks full, the coordinator or the agent is killed, or the
// run stopped. Nothing may be left on the host.
func TestHostsFaultsAreUndone(t *testing.T) {
	slow(t)
	if err := broker.CheckDisks(t.Context()); err != nil {
		needs.Host(t, "loop", err)
	}
	for _, x := range []struct {
		name string
		end  func(t *testing.T, run, bk *proc)
	}{
		{"the coordinator is killed", func(t *testing.T, run, bk *proc) {
			run.signal(t, syscall.SIGKILL)
			bk.until(t, "its coordinator is gone; stopping its servers")
		}},
		{"the agent is killed", func(t *testing.T, _, bk *proc) { bk.signal(t, syscall.SIGKILL) }},
		{"the run is stopped", func(t *testing.T, run, _ *proc) {
			run.signal(t, os.Interrupt)
			if code := run.end(t); code != int(Interrupted) {
				t.Errorf("exit code %d; want %d", code, Interrupted)
			}
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			c := startFleet(t, "a", "b", "bk")
			bk, home := c.server("bk", "broker,faults")
			c.agent("a")
			c.agent("b")
			run := c.startedOn("bk", "r", fromAToB, "--warmup", "500ms", "--measure", "4s", "--drain", "3s", "--fault", "fill 1 at 100ms for 60s", "--fault", "stop 1 at 600ms for 60s")
			run.until(t, "bk: stop server-1")
			if left := leftOf(t, home); len(left) == 0 {
				t.Error("no server and no disk is seen below " + home)
			}
			x.end(t, run, bk)
			c.gone(home)
		})
	}
}

// leftOf are processes, mounts and loop devices of servers below a folder.
func leftOf(t *testing.T, home string) (left []string) {
	t.Helper()
	for pattern, what := range map[string]string{"/proc/[0-9]*/cmdline": "process", "/sys/block/loop*/loop/backing_file": "disk", "/proc/self/mounts": "mount"} {
		all := must.Get(filepath.Glob(pattern))(t)
		for _, path := range all {
			if b, _ := os.ReadFile(path); strings.Contains(string(b), home) { // it may be gone meanwhile
				left = append(left, what+" "+path)
			}
		}
	}
	return left
}

// Before anything starts, naming the agent and what it needs.
func TestHostsRefuseFaults(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b", "bk")
	c.server("bk", "broker")
	c.agent("a", "--allow", "faults")
	c.agent("b")
	for want, fault := range map[string]string{
		"agent bk: not allowed: faults on this host need weir agent --allow faults":                "kill 1 at 1s",
		"agent b: not allowed: faults on this host need weir agent --allow faults":                 "disconnect clients at 1s",
		"not allowed: the fault clock agents on c by 1s: the agents that send or receive are a, b": "clock agents on c by 1s at 1s",
	} {
		run := c.startedOn("bk", "r", fromAToB, "--measure", "3s", "--fault", fault)
		if code := run.end(t); code != int(Usage) || !strings.Contains(run.stderr.String(), want) || strings.Contains(run.stderr.String(), "started jetstream") {
			t.Errorf("%s: exit code %d; want %d and %q\n%s", fault, code, Usage, want, &run.stderr)
		}
	}
}

// The wall clocks of both agents step by an hour during the run. No figure and no clock difference may show
// it, and the step ends with the run.
func TestHostsFiguresSurviveClockStep(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b")
	self := must.Get(os.Executable())(t)
	if err := clockstep.Check(self); err != nil {
		needs.Host(t, "ptrace", err)
	}
	c.agent("a", "--allow", "faults")
	c.agent("b", "--allow", "faults", "--wrong-clock", "constant=25ms,drift=100ppm")
	for i, x := range []struct {
		fault  string
		agents []string
		undone bool
	}{
		{"clock agents by -1h at 500ms for 1s", []string{"a", "b"}, true},
		{"clock agents on b by 1h at 500ms", []string{"b"}, false},
		{"clock agents on b by -1h at 500ms for 500ms", []string{"b"}, true}, // which says by itself that the clock was right before
	} {
		run := c.run(2, "--measure", "3s", "--placement", "{producers: [a], consumers: [b]}", "--fault", x.fault)
		r := c.ended(run, OK, Invalid)
		c.whole(r, 1750)
		if len(r.Faults) != 1 {
			t.Fatalf("%s: faults %+v", x.fault, r.Faults)
		}
		f := r.Faults[0]
		if f.Do != "clock" || f.To != "agents" || f.Error != "" || !slices.Equal(f.Agents, x.agents) || !slices.Equal(f.Processes, x.agents) || (f.UndoneNS != nil) != x.undone || f.Effect == nil {
			t.Errorf("%s: %+v", x.fault, f)
		}
		for _, a := range r.Agents {
			if len(a.Clock.Steps) > 0 || a.Clock.BoundNS == nil {
				t.Errorf("%s: the clock of %s is %+v; want no step", x.fault, a.Name, a.Clock)
			}
		}
		if e2e := r.Latency.E2E.Response; e2e == nil || e2e.MaxNS == nil || *e2e.MaxNS > int64(time.Minute) || r.Clock.WorstNegativeNS > int64(time.Second) {
			t.Errorf("%s: e2e %+v, clock %+v; want nothing of an hour", x.fault, e2e, r.Clock)
		}
		if want := "clock of agent " + strings.Join(x.agents, ", "); !strings.Contains(strings.Join(strings.Fields(run.stdout.String()), " "), want) {
			t.Errorf("%s: %q is not in\n%s", x.fault, want, &run.stdout)
		}
		must.Do(t, os.Rename(filepath.Join(c.dir, "r"), filepath.Join(c.dir, "r"+itoa(i))))
	}
}

// Consumers of two agents close one after another, and some refuse.
func TestHostsTakeTurnsInChurn(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b", "c")
	c.agent("a")
	c.agent("b")
	c.agent("c")
	run := c.run(3, "--measure", "6s", "--placement", "{producers: [a], consumers: [b, c]}", "--churn", "500ms", "--consume.fail", "5%")
	r := c.ended(run, OK, Invalid)
	c.whole(r, 3250)
	if r.Churn == nil || r.Churn.Changes < 8 || r.Churn.Changes > 12 {
		t.Errorf("churn %+v; want 12 changes, or some less", r.Churn)
	}
	if m := r.MessagesAll; m.Refused < 30 || m.Refused > 600 {
		t.Errorf("%d refused; want about a twentieth of %d", m.Refused, m.Delivered)
	}
	of := map[string]int{}
	for _, text := range c.events("churn") {
		name, _, _ := strings.Cut(text, ": ")
		of[name]++
	}
	if of["b"] == 0 || of["c"] == 0 || of["a"] != 0 {
		t.Errorf("changes by agent: %v", of)
	}
}
