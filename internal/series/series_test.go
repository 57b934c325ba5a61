package series

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A notebook is an observer that keeps all complaints, a line each.
type notebook struct {
	silent
	mu    sync.Mutex
	lines []string
}

func (n *notebook) Complain(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, err.Error()+"\n")
}

func (n *notebook) wrong() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "")
}

// inputs are those of a scenario file in a folder.
func inputs(t *testing.T, dir, text string) scenario.Inputs {
	t.Helper()
	registry := must.Get(driver.NewRegistry(channel.Definition(), noop.Definition()))(t)
	return scenario.Inputs{File: "f.yaml", Text: []byte(text), Drivers: registry, Dir: dir, Env: func(string) (string, bool) { return "", false }}
}

// resolved reads a scenario, or several, that names no file.
func resolved(t *testing.T, text string) []*scenario.Scenario {
	t.Helper()
	return must.Get(scenario.Resolve(inputs(t, "/", text)))(t)
}

func TestUnnamedFolderIsAlwaysNew(t *testing.T) {
	s := &Series{o: Options{Dir: t.TempDir()}, started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var got []string
	for range 3 {
		dir, _ := must.Two(s.create("x"))(t)
		got = append(got, dir)
	}
	golden.Equal(t, []string{"results/20260102T030405Z-x", "results/20260102T030405Z-x-2", "results/20260102T030405Z-x-3"}, got, "folders")
	s.o.Out = got[0]
	if _, _, err := s.create("x"); !errors.Is(err, result.ErrExists) {
		t.Errorf("a folder that was asked for and exists: %v; want it refused", err)
	}
}

func TestFirstFolderErrorIsReportedImmediately(t *testing.T) {
	said := &notebook{}
	m := &measurement{observer: said}
	m.keep(nil)
	m.keep(errors.New("append to x: no space"))
	m.keep(errors.New("append to x: no space"))
	if got, want := said.wrong(), "append to x: no space; the run continues\n"; got != want {
		t.Errorf("said %q; want %q", got, want)
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
		runs = append(runs, resolved(t, "weir: 1\nname: a\nsystem: {driver: noop}\nrepeat: 3\n")...)
	}
	p := Repeat("nightly.yaml", runs...)
	s := must.Get(New(Options{Dir: t.TempDir()}, p))(t)
	var got []string
	for _, i := range []int{0, 1, 3, 101} {
		got = append(got, p.tasks[i].folder)
	}
	if diff := cmp.Diff([]string{"001-a-r1", "002-a-r1", "004-a-r1", "102-a-r3"}, got); diff != "" || len(p.tasks) != 102 {
		t.Errorf("%d tasks, folders (-want +got):\n%s", len(p.tasks), diff)
	}
	for _, task := range p.tasks {
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

// Further rounds continue after the earlier runs, each with every scenario once. A stop ends them, and what
// was measured stays.
func TestRoundsContinueUntilSufficient(t *testing.T) {
	t.Parallel()
	const text = "weir: 1\nsystem: {driver: noop}\nmode: produce\nload: {rate: max}\nmessages: 10\nwarmup: 0s\nscenarios:\n- {name: a}\n- {name: b}\n"
	dir := t.TempDir()
	names := func(p *Repeats, more func([]result.Entry) bool, stop chan struct{}) (got []string) {
		p.More = more
		s := must.Get(New(Options{Dir: dir, Out: "m"}, p))(t)
		defer func() { _ = s.Close() }()
		for o := range s.All(t.Context(), stop) {
			if o.Result == nil || o.Err != nil {
				t.Fatalf("%s: %v", o.Dir, o.Err)
			}
			got = append(got, fmt.Sprintf("%s %d", filepath.Base(o.Dir)[:4], o.Result.Run.Repeat))
			if len(got) == 5 {
				close(stop)
			}
		}
		return got
	}
	got := names(Repeat("", resolved(t, text)...), func(all []result.Entry) bool { return len(all) < 4 }, nil)
	slices.Sort(got[2:])
	if want := []string{"01-a 0", "02-b 0", "03-" + got[2][3:4] + " 2", "04-" + got[3][3:4] + " 2"}; !slices.Equal(got, want) || got[2][3] == got[3][3] {
		t.Errorf("%v; want two rounds, %v", got, want)
	}
	appended := func() *Repeats {
		p := must.Get(Append(filepath.Join(dir, "m"), "m"))(t)
		must.Do(t, p.Resolve(inputs(t, dir, ""), scenario.Override{Path: "repeat", Value: "1"}))
		return p
	}
	if got := names(appended(), func([]result.Entry) bool { return false }, nil); len(got) > 0 {
		t.Errorf("%v were run although what there was is enough", got)
	}
	got = names(appended(), func([]result.Entry) bool { return true }, make(chan struct{}))
	if len(got) != 5 || !strings.HasPrefix(got[0], "05-") || !strings.HasSuffix(got[0], " 3") || !strings.HasPrefix(got[4], "09-") || !strings.HasSuffix(got[4], " 5") {
		t.Errorf("%v; want five runs from 05 on, and then a stop", got)
	}
}

// Otherwise it could not say that hosts differ.
func TestOverviewHasHosts(t *testing.T) {
	dir := t.TempDir()
	p := Repeat("", resolved(t, "weir: 1\nsystem: {driver: chan}\nload: {rate: max}\nmessages: 10\nwarmup: 0s\nrepeat: 2\n")...)
	s := must.Get(New(Options{Dir: dir}, p))(t)
	defer func() { _ = s.Close() }()
	for o := range s.All(t.Context(), nil) {
		if o.Result == nil || o.Err != nil || o.Written != nil {
			t.Fatalf("%s: %v, %v", o.Dir, o.Err, o.Written)
		}
	}
	if len(p.Entries()) != 2 {
		t.Fatalf("%d entries; want 2", len(p.Entries()))
	}
	for _, x := range p.Entries() {
		loaded, _ := must.Two(result.Load(filepath.Join(dir, x.Dir), x.Dir, result.Loading{}))(t)
		if diff := cmp.Diff(loaded.Environment.Hosts, x.Environment.Hosts); diff != "" || len(x.Environment.Hosts) != 1 {
			t.Errorf("%s: hosts differ from those that weir report reads (-read +known):\n%s", x.Dir, diff)
		}
	}
}

func TestRepeatsAreInterleavedAtRandom(t *testing.T) {
	t.Parallel()
	var runs []*scenario.Scenario
	for _, n := range []int{5, 1, 5} {
		runs = append(runs, &scenario.Scenario{Repeat: n, Seed: 7})
	}
	got := order(runs, 0)
	if again := order(runs, 0); !slices.Equal(got, again) {
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
		orders[fmt.Sprint(order(runs, 0))] = true
	}
	if len(orders) < 10 {
		t.Errorf("20 seeds give %d orders", len(orders))
	}
	for i := range runs {
		runs[i].Repeat = 1
	}
	if got := order(runs, 0); !slices.Equal(got, []turn{{0, 1}, {1, 1}, {2, 1}}) {
		t.Errorf("without repeats the file's order is not kept: %v", got)
	}
}
