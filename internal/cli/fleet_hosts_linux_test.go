package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// The normal case: producers, consumers and the broker on three hosts. Agents that may not join come before
// and during the run, and disturb nothing.
func TestHostsRunTogether(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b", "expired", "token", "pin", "plain", "version")
	expired := c.token("--ttl", "1s")
	at := strings.Index(c.url, "sha256:") + len("sha256:")
	pin := c.url[:at] + strings.Repeat("12", 32) + c.url[at+64:]
	token := c.url[:len(c.url)-8] + "AAAAAAAA"
	c.agent("a")
	run := c.run(2, "--measure", "3s", "--placement", "{producers: [a], consumers: [b]}")
	run.until(t, "1 of 2 agents have joined")
	time.Sleep(time.Second) // until the token has ended
	refused := map[string]*proc{
		"token expired":     c.agentOf(expired, "expired"),
		"wrong token":       c.agentOf(token, "token"),
		"wrong certificate": c.agentOf(pin, "pin"),
	}
	// A client without TLS is told only that it needs TLS; an agent of another version waits for another
	// coordinator.
	plain := c.agentOf("nats://"+c.meeting(), "plain")
	other := c.start("version", "agent of another version", []string{c.other("otherweir"), "version"}, "WEIR_JOIN="+c.url)
	for why, p := range refused {
		if code := p.end(t); code != int(Unreachable) {
			t.Errorf("%s: exit code %d; want %d", why, code, Unreachable)
		}
	}
	if out := refused["token expired"].stderr.String(); !strings.Contains(out, "the token expired at") {
		t.Errorf("with an expired token: %s", out)
	}
	if out := refused["wrong token"].stderr.String(); !strings.Contains(out, "credentials refused") {
		t.Errorf("with a wrong token: %s", out)
	}
	if out := refused["wrong certificate"].stderr.String(); !strings.Contains(out, "wrong certificate") {
		t.Errorf("with a wrong pin: %s", out)
	}
	if code := plain.end(t); code != int(Usage) || !strings.Contains(plain.stderr.String(), "the server there speaks TLS from its first byte") {
		t.Errorf("without TLS: exit code %d\n%s", code, &plain.stderr)
	}
	other.until(t, "v0.0.1-other")
	c.agent("b")
	r := c.ended(run, OK, Invalid)
	c.whole(r, 1750)
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
		if a.Missing || a.Clock.BoundNS == nil || len(a.Absences) > 0 {
			t.Errorf("agent %+v", a)
		}
	}
	if strings.Join(names, " ") != "a b" || r.Agents[0].Producers != 4 || r.Agents[0].Consumers != 0 || r.Agents[1].Producers != 0 || r.Agents[1].Consumers != 4 {
		t.Errorf("agents %+v", r.Agents)
	}
	if x := c.check(r, "agents"); x.Status != result.Valid {
		t.Errorf("agents: %+v", x)
	}
	for _, why := range []string{"wrong token", "expired at"} {
		if !strings.Contains(run.stderr.String(), why) {
			t.Errorf("the coordinator does not say %q", why)
		}
	}
	for _, secret := range []string{c.url[strings.Index(c.url, "token=")+len("token="):], token[strings.Index(token, "token=")+len("token="):]} {
		for _, p := range c.all {
			if strings.Contains(p.stderr.String(), secret) {
				t.Errorf("%s tells a token", p.name)
			}
		}
	}
}

// Kills one agent during the run; its user ends another.
func TestHostsLost(t *testing.T) {
	slow(t)
	for _, how := range []struct {
		name   string
		signal syscall.Signal
		drain  string
		event  string
	}{
		{"killed", syscall.SIGKILL, "12s", "agent-silent"}, // which it is after 10 s
		{"ended by its user", syscall.SIGINT, "2s", "agent-ended"},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			c := startFleet(t, "a", "b", "c")
			c.agent("a")
			b := c.agent("b")
			c.agent("c")
			run := c.run(3, "--measure", "4s", "--drain", how.drain)
			run.untilLeft(t, 2)
			b.signal(t, how.signal)
			r := c.ended(run, Invalid)
			if m := r.MessagesAll; m.Scheduled != 2250 || m.Unsent == 0 || m.Delivered == 0 {
				t.Errorf("%+v; want 2250 scheduled, some unsent", m)
			}
			if x := c.check(r, "agents"); x.Status != result.Invalid || !strings.Contains(x.Value, "b vanished at") {
				t.Errorf("agents: %+v", x)
			}
			if x := c.check(r, "offered rate"); x.Status != result.Invalid {
				t.Errorf("offered rate: %+v", x)
			}
			if events := c.events(how.event); len(events) != 1 || !strings.HasPrefix(events[0], "b: ") {
				t.Errorf("events %q: %q", how.event, events)
			}
			if how.signal == syscall.SIGINT {
				if code := b.end(t); code != int(Interrupted) {
					t.Errorf("the agent's exit code is %d; want %d", code, Interrupted)
				}
			}
		})
	}
}

// Disconnects a host for a while: it reports afterwards what it did meanwhile, and nothing is missing.
func TestHostsCutOffReconnect(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b", "c")
	c.agent("a")
	c.agent("b")
	c.agent("c")
	run := c.run(3, "--measure", "16s", "--placement", "{producers: [a, b], consumers: [c]}")
	run.untilLeft(t, 14)
	c.hosts.Cut("b")
	run.until(t, "agent silent: b")
	c.hosts.Mend("b")
	r := c.ended(run, OK, Invalid)
	c.whole(r, 8250)
	if x := c.check(r, "agents"); x.Status != result.Suspect || !strings.Contains(x.Value, "b was silent from") {
		t.Errorf("agents: %+v", x)
	}
	if events := c.events("agent-back"); len(events) != 1 || !strings.HasPrefix(events[0], "b: answers again after") {
		t.Errorf("it came back: %q", events)
	}
}

// Kills and restarts an existing NATS server during the run.
func TestHostsSurviveNATSServerRestart(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b")
	store := t.TempDir()
	server := c.nats("hub", store)
	url := "nats://" + c.hosts.Addr("hub") + ":4222"
	c.agentOf(url, "a")
	c.agentOf(url, "b")
	run := c.runAt(2, "--measure", "6s", "--nats", url)
	run.untilLeft(t, 4)
	server.signal(t, syscall.SIGKILL)
	server.end(t)
	time.Sleep(time.Second)
	c.nats("hub", store)
	c.whole(c.ended(run, OK, Invalid), 3250)
	if left, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "*")); err != nil || len(left) > 0 {
		t.Errorf("the run left on the server where it met: %v, %v", left, err)
	}
}

// Interrupts the coordinator, once and twice; the agents remain for the next run.
func TestHostsStopWithTheCoordinator(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b")
	c.agent("a")
	c.agent("b")
	for _, signals := range []int{1, 2} {
		run := c.run(2, "--measure", "60s")
		run.untilLeft(t, 58)
		run.signal(t, os.Interrupt)
		if signals == 2 {
			run.until(t, "press Ctrl-C again to stop now")
			_ = run.cmd.Process.Signal(os.Interrupt) // it may have ended
		}
		r := c.ended(run, Interrupted)
		if !r.Run.Interrupted || r.MessagesAll.Sent < 500 {
			t.Errorf("after %d signals: interrupted %v, %+v", signals, r.Run.Interrupted, r.MessagesAll)
		}
		must.Do(t, os.RemoveAll(filepath.Join(c.dir, "r")))
	}
}

// Real servers on an agent's host, reached by others at its address. They end with the run, and if the
// coordinator is killed.
func TestHostsStartSystemOnOneHost(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b")
	at := c.hosts.Addr("b")
	b, home := c.server("b", "broker")
	c.agent("a")
	first := c.startedOn("b", "r", fromAToB, "--warmup", "500ms", "--measure", "2s", "--drain", "30s")
	c.whole(c.ended(first, OK, Invalid), 1250)
	if want := "started jetstream on the host of agent b at nats://" + at + ":"; !strings.Contains(first.stderr.String(), want) {
		t.Errorf("the coordinator does not say %q", want)
	}
	if left, err := filepath.Glob(filepath.Join(home, "weir-nats-*")); err != nil || len(left) > 0 {
		t.Errorf("left when the run has ended: %v (%v)", left, err)
	}
	saved := must.Get(result.Read(filepath.Join(c.dir, "r")))(t)
	if env, err := saved.Environment(); err != nil || env.System.Started == nil || env.System.Started.Agent != "b" || env.System.Started.Recipe != "nats" {
		t.Errorf("environment %+v (%v)", env, err)
	}

	killed := c.startedOn("b", "killed", fromAToB, "--warmup", "500ms", "--measure", "3s", "--drain", "2s") // the agent keeps its servers for as long as the run may drain
	killed.untilLeft(t, 2)
	killed.signal(t, syscall.SIGKILL)
	b.until(t, "its coordinator is gone; stopping its servers")
	c.gone(home)
}

func TestHostsServersEndWithTheirAgent(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b")
	b, home := c.server("b", "broker")
	c.agent("a")
	run := c.startedOn("b", "r", fromAToB, "--warmup", "500ms", "--measure", "30s", "--drain", "2s")
	run.until(t, "measuring, ")
	b.signal(t, syscall.SIGKILL)
	c.gone(home)
	run.signal(t, syscall.SIGINT)
	run.end(t)
}

// startedOn starts the coordinator of a run of two agents, with servers on the host of a third or of one of them.
func (c *testFleet) startedOn(host, out string, args ...string) *proc {
	c.t.Helper()
	return c.start("hub", "coordinator", append([]string{
		c.weir, "run", "--full", "--fleet", "2", "--fleet-wait", "90s", "--listen", c.meeting(), "--driver", "jetstream", "--start", "process", "--start-on", host,
		"--rate", "500/s", "--producers", "4", "--consumers", "4", "--out", out,
	}, args...))
}

// fromAToB places producers and consumers.
const fromAToB = "--placement={producers: [a], consumers: [b]}"

// server starts an agent on the host of its name that may do what allow names, whose servers' folders are
// below home.
func (c *testFleet) server(name, allow string, args ...string) (agent *proc, home string) {
	c.t.Helper()
	cache := must.Get(broker.CacheDir(os.LookupEnv))(c.t)
	if out, err := exec.Command(c.weir, "broker", "install", "nats").CombinedOutput(); err != nil {
		c.t.Fatalf("installing: %v\n%s", err, out)
	}
	home = c.t.TempDir()
	args = append([]string{c.weir, "agent", "--name", name, "--allow", allow, "--bind", c.hosts.Addr(name)}, args...)
	return c.start(name, "agent "+name, args, "WEIR_JOIN="+c.url, "WEIR_CACHE="+cache, "TMPDIR="+home), home
}

// gone waits until nothing is left of servers below home, nor of their control groups.
func (c *testFleet) gone(home string, groups ...string) {
	c.t.Helper()
	var left []string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		folders := must.Get(filepath.Glob(filepath.Join(home, "weir-nats-*")))(c.t) // which go after the servers
		left = append(leftOf(c.t, home), folders...)
		for _, g := range groups {
			if _, err := os.Stat(filepath.Dir(g)); err == nil {
				left = append(left, "control group "+filepath.Dir(g))
			}
		}
		if len(left) == 0 {
			return
		}
	}
	c.t.Fatalf("left on the agent's host: %q", left)
}

// Producers, consumers and servers on three hosts, the last without a part in the run. The coordinator is
// killed, and another resumes the run.
func TestHostsWithSystemOnSeparateHost(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b", "bk")
	bk, home := c.server("bk", "broker")
	c.agent("b")
	run := c.startedOn("bk", "r", "--warmup", "500ms", "--measure", "8s", "--drain", "60s")
	run.until(t, "1 of 2 agents have joined, and bk to start the system there (b on ")
	c.agent("a")
	run.untilLeft(t, 6)
	again, _ := c.another(run)
	r := c.ended(again, OK, Invalid)
	c.whole(r, 4250)
	if x := r.System.StartedOn; x == nil || x.Agent != "bk" || x.Part || len(x.Absences) > 0 {
		t.Errorf("started on %+v", x)
	}
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
	}
	if strings.Join(names, " ") != "a b" {
		t.Errorf("agents %v", names)
	}
	if text := bk.stderr.String(); strings.Contains(text, "part ") || !strings.Contains(text, "nats has ended") {
		t.Errorf("agent bk:\n%s", text)
	}
	c.gone(home)
}

// Kills the coordinator during the run; another resumes it, and nothing is missing.
func TestHostsFindAnotherCoordinator(t *testing.T) {
	slow(t)
	c := startFleet(t, "a", "b")
	c.agent("a")
	c.agent("b")
	run := c.run(2, "--measure", "6s", "--placement", "{producers: [a], consumers: [b]}")
	run.untilLeft(t, 4)
	again, id := c.another(run)
	r := c.ended(again, OK, Invalid)
	c.whole(r, 3250)
	if gaps := r.Run.Gaps; len(gaps) != 1 || gaps[0].ToNS == nil || gaps[0].FromNS < int64(time.Second) || *gaps[0].ToNS-gaps[0].FromNS < int64(time.Second) {
		t.Errorf("without a coordinator %+v", gaps)
	}
	if events := c.events("coordinator-back"); len(events) != 1 || !strings.HasPrefix(events[0], "the run had no coordinator for ") {
		t.Errorf("told %q", events)
	}
	if want := "resumed     no coordinator "; !strings.Contains(again.stdout.String(), want) {
		t.Errorf("%q is not in\n%s", want, &again.stdout)
	}
	if !r.Clock.Crosses {
		t.Error("the second coordinator does not know that messages go from host to host")
	}
	third := c.start("hub", "third coordinator", []string{c.weir, "run", "--resume", id})
	if code := third.end(t); code != int(Usage) || !strings.Contains(third.stderr.String(), "no such run to resume") {
		t.Errorf("once more: exit code %d\n%s", code, &third.stderr)
	}
}
