//go:build unix

package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/must"
)

// serving returns a Serving for a recipe of the fake driver, in a temporary folder of the test.
func serving(t *testing.T, recipe string, nodes int) Serving {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process of the race detector ends 1 s late
	self := must.Get(os.Executable())(t)
	def := fakeDefinition()
	r := must.Get(RecipeOf(def, recipe))(t)
	return Serving{Self: self, Definition: def, Recipe: r, Nodes: nodes, Cache: cacheOf(t, recipe)}
}

// up starts a system for the duration of the test.
func up(t *testing.T, s Serving) *Running {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	r := must.Get(StartSystem(ctx, s))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := r.Stop(ctx); err != nil {
			t.Error(err)
		}
		folders(t, 0)
		for _, pid := range r.Pids {
			if alive(pid) {
				t.Errorf("process %d is left", pid)
			}
		}
	})
	return r
}

func TestSystemRunsInOwnProcesses(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		s := serving(t, "fake", nodes)
		r := up(t, s)
		if len(r.Address) != nodes || len(r.Pids) != nodes || len(r.Processes) != nodes || r.Version != "1" {
			t.Errorf("%d nodes: %+v", nodes, r)
		}
		if _, ok := r.Options["told"]; !ok {
			t.Errorf("the driver is told %v", r.Options)
		}
		last := r.Processes[nodes-1]
		if last.Name != unitName(&s.Recipe.Processes[0], nodes) || last.Node != nodes {
			t.Errorf("the last process is %+v", last)
		}
		dir := filepath.Join(r.Dir, last.Name)
		golden.Equal(t, []string{filepath.Join(dir, outputFile), filepath.Join(dir, "other.log")}, last.Logs, "logs")
		conf, err := os.ReadFile(filepath.Join(dir, "deep", "er.conf"))
		if want := "at " + r.Address[nodes-1] + "\n"; err != nil || !strings.HasSuffix(string(conf), want) {
			t.Errorf("its file holds %q, %v; want %q at the end", conf, err, want)
		}
		order, _ := os.ReadFile(filepath.Join(dir, "order"))
		if string(order) != "before\nafter\n" {
			t.Errorf("commands ran as %q", order)
		}
		folders(t, 1)
	}
}

func TestFailedSystemStartExplainsAndCleansUp(t *testing.T) {
	for _, c := range []struct {
		name, recipe, want string
		change             func(*Serving)
	}{
		{"a server that ends", "fake", "server-1 ended: exit status 7: no licence for this host", func(s *Serving) { s.Settings = map[string]string{"mode": "die"} }},
		{"a server that never answers", "mute", "does not answer after 4s: the driver says: fake: system unreachable", nil},
		{"a server that has no room", "full", "answers, and was not ready after 5s: the driver says: fake: system takes no messages: no room", nil},
		{"a number of nodes that makes no system", "fake", "fake cannot form a system of 4 nodes (1, 2, 3)", func(s *Serving) { s.Nodes = 4 }},
		{"a setting that there is not", "fake", `fake has no setting "mod", did you mean "mode"? (mode)`, func(s *Serving) { s.Settings = map[string]string{"mod": "x"} }},
		{"what is not installed", "fake", "fake is not installed (weir broker install fake)", func(s *Serving) { s.Cache = t.TempDir() }},
		{"ports that others take again and again", "hopeless", "address already in use", nil},
		{"no binary", "fake", "no such file", func(s *Serving) { s.Self = "/nowhere" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serving(t, c.recipe, 1)
			if c.change != nil {
				c.change(&s)
			}
			_, err := StartSystem(t.Context(), s)
			if !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("StartSystem: %v; want ErrStart with %q", err, c.want)
			}
			folders(t, 0)
		})
	}
}

// TestASystemIsReadyWhenItConfirms: a cluster may answer and create destinations before it has enough
// replicas to confirm.
func TestASystemIsReadyWhenItConfirms(t *testing.T) {
	s := serving(t, "behind", 2)
	r := up(t, s)
	confirms := func() error {
		c := &fakeConn{c: &fakeConfig{Address: r.Address}}
		return confirmed(t.Context(), c, driver.Destination{Name: "d", Partitions: 2, Replicas: 1})
	}
	if err := confirms(); err != nil {
		t.Errorf("when it is ready: %v", err)
	}
	must.Do(t, r.Restart(t.Context()))
	if err := confirms(); err != nil {
		t.Errorf("when it is ready again: %v", err)
	}
	// Without the key it is ready earlier.
	early := serving(t, "fake", 1)
	early.Settings = map[string]string{"mode": "behind"}
	r = up(t, early)
	if err := confirms(); !errors.Is(err, driver.ErrTimeout) || !strings.Contains(err.Error(), "a message is not confirmed: ") {
		t.Errorf("without the key: %v", err)
	}
}

// TestServersStopInReverseStartOrder covers both the end of a run and a restart.
func TestServersStopInReverseStartOrder(t *testing.T) {
	s := serving(t, "kinds", 2)
	log := filepath.Join(t.TempDir(), "log")
	s.Settings = map[string]string{"log": log}
	r, err := StartSystem(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Restart(t.Context())
	again, _ := os.ReadFile(log)
	must.Do(t, errors.Join(err, r.Stop(t.Context())))
	const want = "server\nserver\nbase\n"
	if b, _ := os.ReadFile(log); string(again) != want || string(b) != want+want {
		t.Errorf("servers ended as %q, and in the end %q; want %q each time", again, b, want)
	}
}

func TestPortTakenBeforeBindIsReplaced(t *testing.T) {
	r := up(t, serving(t, "robbed", 2))
	attempts, err := os.ReadFile(filepath.Join(r.Dir, "attempts"))
	if err != nil || len(r.Processes) != 2 || string(attempts) != "x\nx\nx\nx\n" { // both, twice
		t.Errorf("commands before ran as %q, %v; %d servers", attempts, err, len(r.Processes))
	}
	if order, _ := os.ReadFile(filepath.Join(r.Dir, "server-1", "order")); string(order) != "after\n" {
		t.Errorf("what comes after ran as %q", order)
	}
}

// An eventLog records server events.
type eventLog struct {
	mu  sync.Mutex
	all []ServerEvent
}

func (l *eventLog) take(e ServerEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

func (l *eventLog) texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.all {
		out = append(out, e.String())
	}
	return out
}

// want waits until the given events have been reported.
func (l *eventLog) want(t *testing.T, want ...string) {
	t.Helper()
	must.Until(t, "all has been told", func() bool { return len(l.texts()) >= len(want) })
	golden.Equal(t, want, l.texts(), "told")
}

func TestServerEventsAreReported(t *testing.T) {
	var reported eventLog
	s := serving(t, "fake", 2)
	s.OnEvent = reported.take
	before := hostNow()
	r := must.Get(StartSystem(t.Context(), s))(t)
	old := slices.Clone(r.Pids)
	must.Do(t, r.Restart(t.Context()))
	said := func(n int, pids []int, what string) string {
		return fmt.Sprintf("server-%d on node %d (pid %d) %s", n, n, pids[n-1], what)
	}
	restart := []string{
		said(1, old, "ended: stopped for a restart"), said(2, old, "ended: stopped for a restart"),
		said(1, r.Pids, "was started again"), said(2, r.Pids, "was started again"),
	}
	reported.want(t, restart...)
	must.Do(t, syscall.Kill(r.Pids[1], syscall.SIGKILL))
	second := append(restart, said(2, r.Pids, "ended: signal: killed"))
	reported.want(t, second...)
	must.Do(t, syscall.Kill(r.Pids[0], syscall.SIGKILL))
	<-r.Done()
	reported.want(t, append(second, said(1, r.Pids, "ended: signal: killed"))...)
	at := before
	for _, e := range reported.all {
		if e.MonotonicNS < before || e.MonotonicNS > hostNow() || e.Ended == "signal: killed" && e.MonotonicNS < at {
			t.Errorf("%v: at %d, after %d", e, e.MonotonicNS, at)
		}
		at = e.MonotonicNS
	}
}

func TestSystemExitIsReported(t *testing.T) {
	for _, what := range []string{"embedded", "its supervisor"} {
		t.Run(what, func(t *testing.T) {
			var reported eventLog
			var r *Running
			var err error
			if what == "embedded" {
				s := serving(t, "fake", 1)
				r, err = StartEmbedded(t.Context(), Embedded{Self: s.Self, Definition: jetstream.Definition(), OnEvent: reported.take})
			} else {
				s := serving(t, "fake", 1)
				s.OnEvent = reported.take
				r, err = StartSystem(t.Context(), s)
			}
			if err != nil {
				t.Fatal(err)
			}
			pid := r.process.Pid()
			must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
			name := map[string]string{"embedded": "jetstream", "its supervisor": "fake"}[what]
			reported.want(t, fmt.Sprintf("%s on node 1 (pid %d) ended: signal: killed", name, pid))
			<-r.Done()
		})
	}
	var reported eventLog
	s := serving(t, "fake", 1)
	s.OnEvent = reported.take
	r := must.Get(StartSystem(t.Context(), s))(t)
	must.Do(t, r.Stop(t.Context()))
	reported.want(t) // a stopped server reports nothing
}

func TestSystemStartIsBoundedByContext(t *testing.T) {
	s := serving(t, "hanging", 3)
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	_, err := StartSystem(ctx, s)
	if !errors.Is(err, ErrStart) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("StartSystem: %v; want ErrStart and the context's error", err)
	}
	folders(t, 0)
}

func TestServersIgnoringSIGTERMAreKilled(t *testing.T) {
	s := serving(t, "fake", 1)
	s.Settings = map[string]string{"mode": "stubborn"}
	r := *s.Recipe
	s.Recipe = &r
	s.Recipe.Stop.Grace = duration(300 * time.Millisecond)
	running := up(t, s)
	if noProc() {
		return // the process tree is not available here
	}
	if len(running.Pids) != 2 {
		t.Errorf("processes %v; want the server and its child", running.Pids)
	}
}

func TestRestartKeepsServerAddresses(t *testing.T) {
	s := serving(t, "fake", 2)
	s.Settings = map[string]string{"mode": "late"}
	r := up(t, s)
	address, pids := slices.Clone(r.Address), slices.Clone(r.Pids)
	must.Do(t, r.Restart(t.Context()))
	if !slices.Equal(address, r.Address) || slices.Equal(pids, r.Pids) {
		t.Errorf("at %v with %v; were at %v with %v", r.Address, r.Pids, address, pids)
	}
	order, _ := os.ReadFile(filepath.Join(r.Dir, "server-1", "order"))
	if string(order) != "before\nafter\nafter\n" {
		t.Errorf("commands ran as %q", order)
	}
	if e, err := start(t, "nats", nil); err != nil || !errors.Is(e.Restart(t.Context()), ErrNoRestart) {
		t.Errorf("an embedded system is restarted (%v)", err)
	}
}

// TestOneServerIsRestarted checks that the other servers keep running in place.
func TestOneServerIsRestarted(t *testing.T) {
	r := up(t, serving(t, "fake", 2))
	pids := slices.Clone(r.Pids)
	must.Do(t, r.Restart(t.Context(), "server-1"))
	if len(r.Pids) != 2 || r.Pids[0] == pids[0] || r.Pids[1] != pids[1] {
		t.Errorf("server-1 was to be restarted: processes %v were %v", r.Pids, pids)
	}
}

func TestKilledServerCanBeRestarted(t *testing.T) {
	r := up(t, serving(t, "fake", 1))
	for range 2 {
		before := r.Pids[0]
		must.Do(t, syscall.Kill(before, syscall.SIGKILL))
		must.Do(t, r.Restart(t.Context()))
		if r.Pids[0] == before {
			t.Error("the process is the same")
		}
	}
}

// TestFailedRestartSaysWhy has another process take the port of a killed server.
func TestFailedRestartSaysWhy(t *testing.T) {
	r, err := StartSystem(t.Context(), serving(t, "fake", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.Pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var taken net.Listener
	must.Until(t, "the port is free", func() bool {
		taken, err = net.Listen("tcp", r.Address[0])
		return err == nil
	})
	defer func() { _ = taken.Close() }()
	if err := r.Restart(t.Context()); !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("Restart: %v; want that the address is in use", err)
	}
	if err := r.Stop(t.Context()); err == nil {
		t.Error("Stop: the system ended by itself")
	}
	folders(t, 0)
}

func TestSystemEndsWithItsLastServer(t *testing.T) {
	s := serving(t, "fake", 2)
	r := must.Get(StartSystem(t.Context(), s))(t)
	must.Do(t, syscall.Kill(r.Pids[0], syscall.SIGKILL))
	select {
	case <-r.Done():
		t.Error("it ended with the first of two servers")
	case <-time.After(time.Second):
	}
	must.Do(t, syscall.Kill(r.Pids[1], syscall.SIGKILL))
	select {
	case <-r.Done():
	case <-time.After(time.Minute):
		t.Fatal("it did not end with its last server")
	}
	var exit *guard.ExitError
	if !errors.As(r.Err(), &exit) {
		t.Errorf("Err() = %v; want an exit code", r.Err())
	}
	folders(t, 0)
}

// weirThat starts a weir that does one thing.
func weirThat(t *testing.T, what, cache string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), role+"="+what, VariableCache+"="+cache)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// untilGone waits until no file has a name of that pattern.
func untilGone(t *testing.T, pattern string) {
	t.Helper()
	must.Until(t, pattern+" is gone", func() bool {
		left, _ := filepath.Glob(pattern)
		return len(left) == 0
	})
}

// fakes returns the serving descendants of a process.
func fakes(pid int) []int {
	var out []int
	for _, p := range descendants(pid) {
		b, _ := os.ReadFile("/proc/" + itoa(p) + "/cmdline")
		if strings.Contains(string(b), "\x00"+fakeServer+"\x00") {
			out = append(out, p)
		}
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }

func TestKillingWeirRemovesServersAndFolders(t *testing.T) {
	if noProc() {
		return // the list of processes is not available here
	}
	for _, c := range []struct{ what, recipe string }{
		{"hanging", "hanging"}, // in the middle of the start
		{"system", "fake"},
		{"keep", "hanging"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serving(t, c.recipe, 1)
			cmd, said := weirThat(t, c.what, s.Cache)
			if c.what == "system" && (!said.Scan() || !strings.HasPrefix(said.Text(), "true")) {
				t.Fatalf("weir said %q", said.Text())
			}
			var pids []int
			must.Until(t, "a server runs", func() bool { pids = fakes(cmd.Process.Pid); return len(pids) > 0 })
			folders(t, 1)
			_ = cmd.Process.Kill()
			must.Until(t, "the servers are gone", func() bool { return !slices.ContainsFunc(pids, alive) })
			untilGone(t, filepath.Join(os.TempDir(), "weir-*"))
			untilGone(t, filepath.Join(s.Cache, "running", "*"))
		})
	}
}

// TestKillingAllWeirProcessesStopsServers simulates `pkill -9 weir`: weir, the guard and the
// supervisor are one program. The servers, and the processes that they started, must end without any
// of them.
func TestKillingAllWeirProcessesStopsServers(t *testing.T) {
	if noProc() {
		return // the list of processes is not available here
	}
	s := serving(t, "fake", 1)
	cmd, said := weirThat(t, "stubborn", s.Cache)
	if !said.Scan() || !strings.HasPrefix(said.Text(), "true") {
		t.Fatalf("weir said %q", said.Text())
	}
	servers := fakes(cmd.Process.Pid)
	if len(servers) != 2 {
		t.Fatalf("servers %v; want one and its child", servers)
	}
	self := must.Get(os.Executable())(t)
	var weirs []int
	for _, pid := range descendants(cmd.Process.Pid) {
		program, _ := os.Readlink("/proc/" + itoa(pid) + "/exe")
		if program == self && !slices.Contains(servers, pid) {
			weirs = append(weirs, pid)
		}
	}
	if len(weirs) != 3 {
		t.Fatalf("processes of weir %v; want weir, guard and supervisor", weirs)
	}
	for _, pid := range weirs {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	must.Until(t, "the servers are gone", func() bool { return !slices.ContainsFunc(servers, alive) })
	untilGone(t, filepath.Join(os.TempDir(), "weir-*"))
}

func TestKeptSystemStaysUntilDown(t *testing.T) {
	s := serving(t, "fake", 2)
	registry := registry()
	k := must.Get(Keep(t.Context(), s))(t)
	down := func() (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		return Down(ctx, s.Cache, "fake")
	}
	t.Cleanup(func() { _, _ = down() })
	if !k.Up || len(k.Address) != 2 || len(k.Processes) != 2 || k.Keeper == 0 {
		t.Errorf("kept %+v", k)
	}
	if f, err := k.Answers(t.Context(), registry); err != nil || f.Nodes != 2 {
		t.Errorf("it answers %+v, %v", f, err)
	}
	if _, err := Keep(t.Context(), s); !errors.Is(err, ErrKept) {
		t.Errorf("a second one: %v; want ErrKept", err)
	}
	all, err := AllKept(s.Cache)
	if err != nil || len(all) != 1 || !all[0].Up || !slices.Equal(all[0].Address, k.Address) {
		t.Errorf("all that is kept: %+v, %v", all, err)
	}
	if was, err := down(); !was || err != nil {
		t.Errorf("Down: %v, %v", was, err)
	}
	folders(t, 0)
	if alive(k.Processes[0].Pids[0]) {
		t.Error("a server is left")
	}
	must.Until(t, "the keeper has ended", func() bool { return !alive(k.Keeper) }) // released its lock just now
	if was, err := down(); was || err != nil {
		t.Errorf("Down of what is not up: %v, %v", was, err)
	}
	if k, err := KeptNamed(s.Cache, "fake"); k != nil || err != nil {
		t.Errorf("still kept: %+v, %v", k, err)
	}
}

func TestKilledKeeperStopsItsServers(t *testing.T) {
	s := serving(t, "fake", 1)
	k := must.Get(Keep(t.Context(), s))(t)
	_ = syscall.Kill(k.Keeper, syscall.SIGKILL)
	must.Until(t, "the server is gone", func() bool { return !alive(k.Processes[0].Pids[0]) })
	must.Until(t, "the lock is free", func() bool { k, _ := KeptNamed(s.Cache, "fake"); return k != nil && !k.Up })
	if was, err := Down(t.Context(), s.Cache, "fake"); !was || err != nil {
		t.Errorf("Down: %v, %v", was, err)
	}
	folders(t, 0)
	// Leftovers do not block the next start.
	again := must.Get(Keep(t.Context(), s))(t)
	if _, err := Down(t.Context(), s.Cache, again.Name); err != nil {
		t.Error(err)
	}
}

func TestKeptSystemExitIsReported(t *testing.T) {
	s := serving(t, "fake", 1)
	k := must.Get(Keep(t.Context(), s))(t)
	_ = syscall.Kill(k.Processes[0].Pids[0], syscall.SIGKILL)
	must.Until(t, "it says that it ended", func() bool { k, _ := KeptNamed(s.Cache, "fake"); return k != nil && k.Ended != "" && !k.Up })
	folders(t, 0)
	if was, err := Down(t.Context(), s.Cache, "fake"); !was || err != nil {
		t.Errorf("Down: %v, %v", was, err)
	}
}

func TestFailedKeptSystemLeavesNothing(t *testing.T) {
	s := serving(t, "fake", 1)
	s.Settings = map[string]string{"mode": "die"}
	_, err := Keep(t.Context(), s)
	if !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), "no licence for this host") {
		t.Errorf("Keep: %v", err)
	}
	s = serving(t, "hanging", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Keep(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Keep: %v; want the context's error", err)
	}
	folders(t, 0)
	if left, _ := filepath.Glob(filepath.Join(s.Cache, "running", "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestNamedFindsSystem(t *testing.T) {
	r := registry()
	entries := must.Get(Catalog(r))(t)
	if x, err := Named(entries, r, "nats"); err != nil || x.Definition.Name != "jetstream" {
		t.Errorf("nats is asked by %q, %v; want the driver that its recipe names", x.Definition.Name, err)
	}
	if x, err := Named(entries, r, "jetstream"); err != nil || x.Recipe.Name != "nats" || !slices.Contains(x.Drivers, "nats") {
		t.Errorf("a driver's name: %+v, %v", x, err)
	}
	for name, want := range map[string]string{"fak": `did you mean "fake"`, "xyzzyplugh": "no recipe is named", "boxes": `did you mean "boxed"`} {
		if _, err := Named(entries, r, name); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
	odd := fakeDefinition()
	odd.Name, odd.Recipe = "odd", []byte(strings.Replace(string(odd.Recipe), "title: ", "title: Another ", 1))
	two, _ := driver.NewRegistry(fakeDefinition(), odd)
	if _, err := Catalog(two); err == nil || !strings.Contains(err.Error(), "different recipes of one name") {
		t.Errorf("two recipes of one name: %v", err)
	}
	odd.Recipe = []byte("recipe: 2\n")
	bad, _ := driver.NewRegistry(odd)
	if _, err := Catalog(bad); err == nil || !strings.Contains(err.Error(), "recipe of odd:1:9: recipe: is 2 (1)") {
		t.Errorf("a recipe that cannot be read: %v", err)
	}
}

func TestServerExitReasonIsShort(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("all is lost ", 100)
	must.Do(t, os.WriteFile(filepath.Join(dir, outputFile), []byte(long), 0o600))
	for script, want := range map[string]string{"exit 3": "exit status 3: all is lost all", "kill -9 $$": "signal: killed"} {
		v := &server{unit: &unit{dir: dir}, err: exec.Command("sh", "-c", script).Run()}
		got := v.whyShort()
		if !strings.HasPrefix(got, want) || len(got) > mostWhy+3 || want == "signal: killed" && got != want {
			t.Errorf("%s: %q; want %q", script, got, want)
		}
		if full := v.why(); !strings.Contains(full, strings.TrimSpace(long)) {
			t.Errorf("%s: in full it says %q", script, full)
		}
	}
}
