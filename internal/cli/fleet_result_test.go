package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/result/resulttest"
)

// meeting starts a NATS server, at which a fleet meets and which it measures, and
// returns its address.
func meeting(t *testing.T) string {
	t.Helper()
	needs.Time(t)
	return natsdtest.Start(t, func(o *natsserver.Options) { o.JetStream, o.StoreDir = true, t.TempDir() }).ClientURL()
}

// agents starts agents with those names at a NATS server, each with the clock error in wrong, or the host's
// clock.
func agents(t *testing.T, where string, wrong map[string]string) {
	t.Helper()
	for name, how := range wrong {
		oneAgent(t, where, name, how)
	}
}

// oneAgent starts an agent, as agents does, and returns what ends it as its host would.
func oneAgent(t *testing.T, where, name, how string) (end func()) {
	t.Helper()
	needs.Time(t)
	address := must.Get(admission.Parse(where))(t)
	drivers := must.Get(driver.NewRegistry(all.Definitions()...))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	build := must.Get(buildinfo.Identity())(t)
	a := &agent.Agent{
		Address: address, Name: name, Labels: map[string]string{"zone": name}, Version: build, Drivers: drivers,
		Env: func(string) (string, bool) { return "", false }, Log: slog.New(slog.DiscardHandler), Clock: pace.NewClock,
	}
	if how != "" {
		w := must.Get(pace.ParseWrong(how))(t)
		clock := must.Get(pace.NewWrongClock(w))(t)
		a.Clock, a.OwnTime = func() *pace.Clock { return clock }, true
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("agent %s: %v", name, err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return cancel
}

// Two agents, one with a clock 25 ms ahead, execute a run in which all messages cross between them; the
// folder has each one's part and the clock difference.
func TestFleetRunIsWrittenCompletely(t *testing.T) {
	server := meeting(t)
	where := "nats://" + strings.TrimPrefix(server, "nats://")
	agents(t, where, map[string]string{"a": "", "b": "constant=25ms"})
	dir := t.TempDir()
	stdout, stderr := &watch{}, &watch{}
	code := Main(t.Context(), World{
		Args: []string{
			"run", "--full", "--fleet", "2", "--nats", where, "--driver", "jetstream", "--address", server, "--placement", "{producers: [a], consumers: [zone=b]}",
			"--rate", "500/s", "--producers", "3", "--consumers", "2", "--warmup", "500ms", "--measure", "2s", "--drain", "60s", "--out", "r", "--quiet",
		},
		Env:    func(name string) (string, bool) { return filepath.Join(dir, "fleet"), name == admission.VariableDir },
		Stdout: stdout, Stderr: stderr, Dir: dir, Drivers: all.Definitions(),
	})
	// A busy host may make the figures invalid, but not the counts.
	if code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if err := errors.Join(resulttest.Check(filepath.Join(dir, "r")), judgedAgain(filepath.Join(dir, "r"))); err != nil {
		t.Error(err)
	}
	saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
	r := saved.Result
	if m := r.MessagesAll; m.Scheduled != 1250 || m.Sent != 1250 || m.Confirmed != 1250 || m.Delivered != 1250 {
		t.Errorf("%+v", m)
	}
	if len(r.Agents) != 2 || r.Clock == nil {
		t.Fatalf("agents %+v, clock %+v", r.Agents, r.Clock)
	}
	a, b := r.Agents[0], r.Agents[1]
	if a.Name != "a" || a.Producers != 3 || a.Consumers != 0 || a.StartsNS == nil || !a.Clock.Same || a.Labels["zone"] != "a" {
		t.Errorf("a is %+v", a)
	}
	if b.Name != "b" || b.Producers != 0 || b.Consumers != 2 || b.StartsNS != nil || b.Clock.Same || b.Missing || len(b.Absences) > 0 || b.LostReports > 0 {
		t.Errorf("b is %+v", b)
	}
	// The truth lies within the bound, which is no wider than exchanges on a host.
	if bound := b.Clock.BoundNS; bound == nil || *bound > int64(20*time.Millisecond) || max(b.Clock.OffsetNS+25e6, -b.Clock.OffsetNS-25e6) > *bound {
		t.Errorf("its clock is %+v; want -25 ms within a bound", b.Clock)
	}
	if c := b.Clock.Course; len(c) == 0 || c[0].FromNS > 0 || c[len(c)-1].ToNS < int64(2*time.Second) || c[0].BoundNS <= 0 || len(a.Clock.Course) > 0 {
		t.Errorf("the courses of the clocks are %+v and %+v; want one of b over the run", a.Clock.Course, c)
	}
	if k := r.Clock; !k.Crosses || k.Same || k.BoundNS == nil || k.WorstNegativeNS > *k.BoundNS {
		t.Errorf("clock %+v", k)
	}
	if d := r.Latency.E2E.Response; d.ClockBoundNS == nil || *d.ClockBoundNS != *r.Clock.BoundNS {
		t.Errorf("e2e is of %v", d.ClockBoundNS)
	}
	if r.Latency.Send.Response.ClockBoundNS != nil || r.Host.Usage != nil || r.Host.Pacers != a.Host.Pacers+b.Host.Pacers || a.Host.Usage == nil || a.Host.Hiccups == nil {
		t.Errorf("hosts %+v; %+v, %+v", r.Host, a.Host, b.Host)
	}
	env := must.Get(saved.Environment())(t)
	if len(env.Hosts) != 2 || env.Hosts[0].Agent != "a" || env.Hosts[1].Agent != "b" || env.Hosts[1].Hostname == "" {
		t.Errorf("hosts %+v", env.Hosts)
	}
	names := map[string]int{}
	for _, c := range r.Verdict.Checks {
		names[c.Name]++
		switch c.Name {
		case "agents":
			if c.Status != result.Valid || c.Value != "all 2" {
				t.Errorf("%+v", c)
			}
		case "clock":
			if c.Status == result.NotRun || !strings.Contains(c.Value, "±") {
				t.Errorf("%+v", c)
			}
		case "cpu":
			if !strings.HasPrefix(c.Value, "agent a: ") && !strings.HasPrefix(c.Value, "agent b: ") {
				t.Errorf("%+v", c)
			}
		}
	}
	if names["agents"] != 1 || names["start"] != 1 || names["clock"] != 1 {
		t.Errorf("checks %v", names)
	}
	for _, want := range []string{" clock", "agent  host", "the coordinator's", quantity.Time(b.Clock.OffsetNS) + " ±", "\nnext        "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "r", result.FileReport))
	if err != nil || !strings.Contains(string(page), quantity.Time(b.Clock.OffsetNS)+" ±") || !strings.Contains(string(page), "agents&#39; clocks over time") {
		t.Errorf("the page lacks the clock of b, or its picture (%v)", err)
	}
}

func TestAFleetSearchesForTheCapacity(t *testing.T) {
	t.Parallel()
	server := meeting(t)
	where := "nats://" + strings.TrimPrefix(server, "nats://")
	agents(t, where, map[string]string{"a": "", "b": ""})
	dir := t.TempDir()
	stdout, stderr := &watch{}, &watch{}
	code := Main(t.Context(), World{
		Args: []string{
			"capacity", "--fleet", "2", "--nats", where, "--driver", "nats", "--address", server, "--slo", "lost == 0", "--rate", "100/s", "--most", "200/s",
			"--retests", "0", "--probes", "3", "--producers", "2", "--consumers", "2", "--warmup", "200ms", "--measure", "500ms", "--out", "range", "--quiet",
		},
		Env:    func(name string) (string, bool) { return filepath.Join(dir, "fleet"), name == admission.VariableDir },
		Stdout: stdout, Stderr: stderr, Dir: dir, Drivers: all.Definitions(),
	})
	// On a busy host a probe may be spoiled: the search then ends without an answer.
	if code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, probe := range []string{"001-100", "002-*"} {
		found, err := filepath.Glob(filepath.Join(dir, "range", probe))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v\n%s%s", probe, found, err, stdout, stderr)
		}
		saved := must.Get(result.Read(found[0]))(t)
		if len(saved.Result.Agents) != 2 {
			t.Errorf("%s: %d agents; want 2", probe, len(saved.Result.Agents))
		}
	}
}
