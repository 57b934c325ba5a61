package series

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

const fourRuns = `weir: 1
system: {driver: noop}
mode: produce
load: {rate: 1000/s}
warmup: 0s
measure: 100ms
repeat: 2
scenarios: [{name: a, message: {size: 64B}}, {name: b, message: {size: 128B}}]
`

// Of four runs one is done, the next was interrupted, and a killed process left the folder of the third.
// The resumed series executes the other three, each as the scenario and the repeat planned.
func TestSeriesResumesWhereItStopped(t *testing.T) {
	dir := t.TempDir()
	p := Repeat("", resolved(t, fourRuns)...)
	s := must.Get(New(Options{Dir: dir, Out: "s"}, p))(t)
	for out := range s.All(t.Context(), nil) {
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		if out.Number == 2 {
			file := filepath.Join(dir, out.Dir, result.FileResult)
			b := must.Get(os.ReadFile(file))(t)
			must.Do(t, os.WriteFile(file, []byte(strings.Replace(string(b), `"interrupted": false`, `"interrupted": true`, 1)), 0o600))
			break
		}
	}
	if p.Rest() != 2 || s.Close() != nil {
		t.Errorf("%d runs are left; want 2", p.Rest())
	}
	var planned []PlannedRun
	for i, x := range p.tasks {
		planned = append(planned, PlannedRun{x.folder, x.scenario.Name, x.place, x.repeat})
		if i == 2 {
			must.Do(t, os.Mkdir(filepath.Join(dir, "s", x.folder), 0o755))
		}
	}
	p = must.Get(Resume(filepath.Join(dir, "s"), "s"))(t)
	golden.Equal(t, planned, p.planned.Runs, "the stored plan")
	must.Do(t, p.Resolve(inputs(t, dir, ""), scenario.Override{}))
	s = must.Get(New(Options{Dir: dir}, p))(t)
	var did []PlannedRun
	for out := range s.All(t.Context(), nil) {
		if out.Result == nil || out.Err != nil {
			t.Fatal(out.Err)
		}
		r := out.Result.Run
		if r.Series != planned[len(did)+1].Name[:1] {
			t.Errorf("%s is of the series %q", out.Dir, r.Series)
		}
		did = append(did, PlannedRun{filepath.Base(out.Dir), r.Name, r.Place, r.Repeat})
	}
	want := []PlannedRun{planned[1], planned[2], planned[3]}
	want[0].Dir += "-2" // beside what is there
	want[1].Dir += "-2"
	golden.Equal(t, want, did, "what was done")
	if p.Rest() != 0 || s.Close() != nil {
		t.Errorf("%d runs are left; want none", p.Rest())
	}
	p = must.Get(Resume(filepath.Join(dir, "s"), "s"))(t)
	if err := p.Resolve(inputs(t, dir, ""), scenario.Override{}); len(p.Scenarios()) > 0 || err != nil {
		t.Errorf("what is left of a whole series: %d scenarios, %v", len(p.Scenarios()), err)
	}
}

func TestASeriesWithoutFiguresLeavesNoFolder(t *testing.T) {
	dir := t.TempDir()
	s := must.Get(New(Options{Dir: dir, Out: "s"}, Repeat("", resolved(t, fourRuns)...)))(t)
	if _, err := ReadRunList(filepath.Join(dir, "s"), "s"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "s")); !os.IsNotExist(err) {
		t.Errorf("the folder of no run: %v", err)
	}
}

func TestMalformedSeriesPlanIsRejected(t *testing.T) {
	const scenarios = `"scenarios": [{"name": "a", "scenario": "weir: 1"}]`
	for name, c := range map[string]struct{ text, want string }{
		"none":               {"", "x has no series.json (the folder of several runs with a plan; weir run --append adds runs to others)"},
		"torn":               {`{"schema": "weir.ser`, "reading x/series.json: cut short: it ends within its JSON (copy the file again from where weir wrote it)"},
		"of a newer weir":    {`{"schema": "weir.series/v2"}`, `reading x/series.json: schema "weir.series/v2" is not known (weir.series/v1)`},
		"a folder elsewhere": {`{"schema": "weir.series/v1", ` + scenarios + `, "runs": [{"dir": "../a", "name": "a", "place": 1}]}`, "reading x/series.json: runs[0] is malformed (dir, name, place and repeat of a run)"},
		"a folder below":     {`{"schema": "weir.series/v1", ` + scenarios + `, "runs": [{"dir": "a/b", "name": "a", "place": 1}]}`, "runs[0] is malformed"},
		"no scenario":        {`{"schema": "weir.series/v1", ` + scenarios + `, "runs": [{"dir": "a", "name": "a", "place": 1}, {"dir": "b", "name": "b", "place": 2}]}`, "runs[1] is malformed"},
	} {
		dir := t.TempDir()
		if c.text != "" {
			must.Do(t, os.WriteFile(filepath.Join(dir, result.FileSeries), []byte(c.text), 0o600))
		}
		_, err := ReadRunList(dir, "x")
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrNoPlan) != (c.text == "") {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// Two would disturb each other.
func TestFolderAllowsOneProcess(t *testing.T) {
	dir := t.TempDir()
	first := must.Get(New(Options{Dir: dir, Out: "s"}, Repeat("", resolved(t, fourRuns)...)))(t)
	rest := must.Get(Resume(filepath.Join(dir, "s"), "s"))(t)
	var folder *FolderError
	if _, err := New(Options{Dir: dir}, rest); !errors.As(err, &folder) || err.Error() != "s: another weir does its runs now (wait for its end)" {
		t.Errorf("a second at the same time: %v; want it refused", err)
	}
	for out := range first.All(t.Context(), nil) {
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		break
	}
	must.Do(t, first.Close())
	second, err := New(Options{Dir: dir}, rest)
	if err != nil {
		t.Fatalf("when the first has ended: %v", err)
	}
	must.Do(t, second.Close())
}

// A complete run of the scenario and repeat counts.
func TestRerunScenarioIsNotRemaining(t *testing.T) {
	p := &RunList{
		Scenarios: []PlannedScenario{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Runs:      []PlannedRun{{Name: "a-r1", Place: 1, Repeat: 1}, {Name: "b", Place: 2}, {Name: "a-r2", Place: 1, Repeat: 2}, {Name: "c", Place: 3}},
	}
	entry := func(name, series string, place, repeat int, interrupted bool) result.Entry {
		return result.Entry{Result: &result.Result{Run: result.Run{Name: name, Series: series, Place: place, Repeat: repeat, Interrupted: interrupted}}}
	}
	got := p.Left([]result.Entry{
		entry("a-r1", "a", 1, 1, true), entry("b", "", 2, 0, true), entry("a-r1", "a", 1, 1, false), entry("a-r3", "a", 1, 3, false),
		entry("c-r2", "c", 2, 2, false), entry("c", "", 2, 0, false), // --append did not know of b, and gave its place to c
	})
	golden.Equal(t, p.Runs[1:3], got, "left")
}
