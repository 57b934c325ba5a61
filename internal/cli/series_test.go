package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

func TestASignalEndsSeveralRunsAfterTheOneThatIsOn(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	const suite = "weir: 1\nseed: 2\nsystem: {driver: chan}\nwarmup: 0s\nscenarios:\n" +
		"  - {name: short, load: {rate: max}, messages: 10}\n  - {name: long, measure: 60s, repeat: 3}\n"
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 2)
	stderr := &watch{on: "run 2 of 4, long-r1: measuring", then: func() { signals <- os.Interrupt }}
	code, stdout, _ := do(t, World{Dir: dir, Signals: signals, Stderr: stderr}, "run", "s.yaml", "--out", "r")
	if code != int(Interrupted) {
		t.Fatalf("exit code %d; want 130\n%s", code, stderr)
	}
	for name, interrupted := range map[string]bool{"01-short": false, "02-long-r1": true} {
		saved, err := result.Read(filepath.Join(dir, "r", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := saved.Result.Run.Interrupted; got != interrupted {
			t.Errorf("%s: interrupted = %v; want %v", name, got, interrupted)
		}
		if !strings.Contains(stdout.String(), "\n"+name[3:]+" ") {
			t.Errorf("%s is not in the overview:\n%s", name, stdout)
		}
	}
	if want := "weir: not done: 03-long-r2, 04-long-r3\n"; !strings.Contains(stderr.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, stderr)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "r")); len(left) != 3 {
		t.Errorf("%d things in the folder; want two runs and their page", len(left))
	}
}

func TestASignalBetweenTwoRunsEndsThem(t *testing.T) {
	signals := make(chan os.Signal, 2)
	stderr := &watch{on: ", written to ", then: func() { signals <- os.Interrupt }}
	code, _, _ := do(t, World{Signals: signals, Stderr: stderr},
		"run", "--driver", "chan", "--name", "x", "--rate", "max", "--messages", "10", "--warmup", "0s", "--repeat", "3", "--out", "r")
	if code != int(Interrupted) || !strings.Contains(stderr.String(), "weir: not done: 02-x-r2, 03-x-r3\n") {
		t.Errorf("exit code %d; want 130, and what was not done named\n%s", code, stderr)
	}
}

func TestASignalBeforeTheFirstMessageLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, repeat := range []string{"1", "3"} {
		dir := t.TempDir()
		signals := make(chan os.Signal, 2)
		signals <- os.Interrupt
		code, stdout, stderr := do(t, World{Dir: dir, Self: self, Signals: signals, Drivers: all.Definitions()}, "run", "--name", "x", "--repeat", repeat)
		if code != int(Interrupted) || !strings.Contains(stderr.String(), "interrupted before the first message: nothing was measured\n") {
			t.Errorf("exit code %d; want 130, and that nothing was measured\n%s", code, stderr)
		}
		if got := strings.Contains(stderr.String(), "weir: not done: 02-x-r2, 03-x-r3\n"); got != (repeat == "3") {
			t.Errorf("%s runs: names what was not done = %v\n%s", repeat, got, stderr)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 || stdout.String() != "" {
			t.Errorf("%v is left behind, and said: %s", left, stdout)
		}
	}
}

func TestTheNamesOfSeveralRuns(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100)
	for _, tt := range []struct {
		name string
		n    int
		want string
	}{{"x", 1, "x-r1"}, {"x", 12, "x-r12"}, {long, 7, long[:97] + "-r7"}} {
		if got := numbered(tt.name, tt.n); got != tt.want {
			t.Errorf("numbered(%q, %d) = %q; want %q", tt.name, tt.n, got, tt.want)
		}
	}
	for file, want := range map[string]string{
		"suite.yaml": "suite", "a/b c.yml": "b-c", "": "runs", "..yaml": "runs", "/x/é.yaml": "runs", "nightly": "nightly", "v1.2.yaml": "v1.2",
	} {
		if got := suiteName(file); got != want {
			t.Errorf("suiteName(%q) = %q; want %q", file, got, want)
		}
	}
}

func TestRunsAreLaidOutInOrder(t *testing.T) {
	t.Parallel()
	var runs []*scenario.Scenario
	for range 34 {
		runs = append(runs, &scenario.Scenario{Name: "a", Repeat: 3})
	}
	c := &runCommand{File: "nightly.yaml"}
	s, err := c.plan(&env{World: World{Dir: t.TempDir()}}, runs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range []int{0, 1, 3, 101} {
		got = append(got, s.tasks[i].folder)
	}
	if diff := cmp.Diff([]string{"001-a-r1", "002-a-r1", "004-a-r1", "102-a-r3"}, got); diff != "" || len(s.tasks) != 102 {
		t.Errorf("%d tasks, folders (-want +got):\n%s", len(s.tasks), diff)
	}
	for _, task := range s.tasks {
		if task.scenario.Repeat != 1 {
			t.Fatalf("%s would be repeated %d times when it is run again; want once", task.folder, task.scenario.Repeat)
		}
	}
	if runs[0].Repeat != 3 || runs[0].Name != "a" {
		t.Error("the scenario that was given has changed")
	}
	if !strings.HasSuffix(s.parent, "-nightly") {
		t.Errorf("the folder is %s; want it named like the file", s.parent)
	}
}

// TestTheOverviewKnowsTheHosts: without them it would not say that hosts differ.
func TestTheOverviewKnowsTheHosts(t *testing.T) {
	dir := t.TempDir()
	registry, err := driver.NewRegistry(all.Definitions()...)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{out: io.Discard}
	e := &env{World: World{Dir: dir, Stdout: io.Discard, Stderr: c}, console: c, registry: registry, log: slog.New(slog.DiscardHandler)}
	e.Env = func(string) (string, bool) { return "", false }
	const file = "weir: 1\nsystem: {driver: chan}\nload: {rate: max}\nmessages: 10\nwarmup: 0s\nrepeat: 2\n"
	if err := os.WriteFile(filepath.Join(dir, "f.yaml"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := (&runCommand{}).plan(e, []*scenario.Scenario{resolved(t, dir, "f.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if code := s.run(t.Context()); code != OK || len(s.entries) != 2 {
		t.Fatalf("exit code %d, %d entries; want 0 and 2", code, len(s.entries))
	}
	for _, x := range s.entries {
		loaded, _, err := report.Load(filepath.Join(dir, x.Dir), x.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(loaded.Hosts, x.Hosts); diff != "" || len(x.Hosts) != 1 {
			t.Errorf("%s: hosts differ from those that weir report reads (-read +known):\n%s", x.Dir, diff)
		}
	}
}

func TestRepeatsOfSeveralScenariosTakeTurnsAtRandom(t *testing.T) {
	t.Parallel()
	var runs []*scenario.Scenario
	for _, n := range []int{5, 1, 5} {
		runs = append(runs, &scenario.Scenario{Repeat: n, Seed: 7})
	}
	got := order(runs)
	if again := order(runs); !slices.Equal(got, again) {
		t.Errorf("the order differs between two readings of one file: %v, %v", got, again)
	}
	seen := map[turn]bool{}
	last := 0
	for _, x := range got {
		if seen[x] {
			t.Errorf("%+v comes twice", x)
		}
		seen[x] = true
		if x.repeat < last {
			t.Errorf("round %d is not over when round %d begins: %v", x.repeat, last, got)
		}
		last = x.repeat
	}
	if len(got) != 11 {
		t.Errorf("%d runs; want 5 + 1 + 5", len(got))
	}
	orders := map[string]bool{}
	for seed := range uint64(20) {
		runs[0].Seed = seed
		orders[fmt.Sprint(order(runs))] = true
	}
	if len(orders) < 10 {
		t.Errorf("20 seeds give %d orders", len(orders))
	}
	for i := range runs {
		runs[i].Repeat = 1
	}
	if got := order(runs); !slices.Equal(got, []turn{{0, 1}, {1, 1}, {2, 1}}) {
		t.Errorf("without repeats the file's order is not kept: %v", got)
	}
}
