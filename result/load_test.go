package result

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// nested creates a folder of files, whose names may contain folders.
func nested(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "/") {
			must.Do(t, os.MkdirAll(path, 0o755))
			continue
		}
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

const shortest = `{"schema": "weir.result/v1", "verdict": {"status": "valid"}, "system": {"driver": "chan"}}`

func TestFindTakesFolderOrSubfolders(t *testing.T) {
	t.Parallel()
	dir := nested(t, map[string]string{
		"one/result.json":              shortest,
		"suite/02-b/result.json":       shortest,
		"suite/01-a/result.json":       shortest,
		"suite/03-killed/events.jsonl": "{}\n",
		"suite/notes/why.txt":          "because",
		"all/x/suite/deep/result.json": shortest, // four levels below the top
	})
	for from, want := range map[string][]string{
		"one":   {"one"},
		"suite": {"suite/01-a", "suite/02-b", "suite/03-killed"},
		"all":   {"all/x/suite/deep"},
		".":     {"one", "suite/01-a", "suite/02-b", "suite/03-killed"},
	} {
		got, err := Find(filepath.Join(dir, from))
		if err != nil {
			t.Error(err)
		}
		for i := range got {
			rel, _ := filepath.Rel(dir, got[i])
			got[i] = filepath.ToSlash(rel)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", from, diff)
		}
	}
}

func TestFindExplainsNonResults(t *testing.T) {
	t.Parallel()
	dir := nested(t, map[string]string{"file": "x", "hollow/": "", "run/result.json": shortest})
	const allowed = " (a folder that weir run wrote, or one that holds such folders)"
	for name, want := range map[string]string{
		"none":            "none: there is no such folder" + allowed,
		"file":            "file: no result of weir: it is not a folder" + allowed,
		"run/result.json": "run/result.json: no result of weir: it is not a folder (its folder, DIR/run)",
		"hollow":          "hollow: no result of weir: it has no result.json, and neither has a folder in it" + allowed,
	} {
		_, err := Find(filepath.Join(dir, name))
		if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != "DIR/"+want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range mostRuns + 1 {
		files[strconv.Itoa(i)+"/events.jsonl"] = ""
	}
	if _, err := Find(nested(t, files)); err == nil || !strings.Contains(err.Error(), "holds more than 1000 runs (name some of them)") {
		t.Errorf("got %v", err)
	}
}

func TestLoadRejectsIncompleteResult(t *testing.T) {
	t.Parallel()
	const asLeft = " (the folder as the run left it)"
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
		is    error
	}{
		"a result of the future": {
			map[string]string{"result.json": `{"schema": "weir.result/v2"}`},
			`DIR/result.json: written by a newer weir: its schema is "weir.result/v2", this one reads up to "weir.result/v1" (a weir at least as new as the one that wrote it)`, ErrNewer,
		},
		"a result cut short": {
			map[string]string{"result.json": "{\"schema\": \"weir.result/v1\",\n \"run\": {"},
			"DIR/result.json:2:10: cut short: it ends within its JSON" + asLeft, ErrTorn,
		},
		"an empty result": {map[string]string{"result.json": ""}, "DIR/result.json: cut short: it is empty" + asLeft, ErrTorn},
		"another's result": {
			map[string]string{"result.json": `{"schema": "else/v1"}`},
			`DIR/result.json: no result of weir: its schema is "else/v1", not "weir.result/v1" (a folder that weir run wrote, or one that holds such folders)`, ErrNotResult,
		},
		"a result of wrong types": {
			map[string]string{"result.json": "{\"schema\": \"weir.result/v1\",\n \"events\": \"many\"}"},
			"DIR/result.json:2:17: malformed: events is a string, not int" + asLeft, ErrMalformed,
		},
		"a run that was killed": {
			map[string]string{"intervals.hlog": ""},
			"DIR: no result of weir: it has no result.json, which weir writes when a run ends; this one was killed, or still runs (the folder of a run that ended)", ErrNotResult,
		},
		"a torn log of events": {
			map[string]string{"result.json": shortest, "events.jsonl": "{\"schema\": \"weir.events/v1\"}\n{\"t_ns\": 4"},
			"DIR/events.jsonl:2: cut short: the last line is not whole" + asLeft, ErrTorn,
		},
		"fewer events than counted": {
			map[string]string{"result.json": `{"schema": "weir.result/v1", "events": 2}`, "events.jsonl": "{\"schema\": \"weir.events/v1\"}\n{\"t_ns\": 4}\n"},
			"DIR/events.jsonl: malformed: it holds another number of events, 1, than result.json counts, 2" + asLeft, ErrMalformed,
		},
		"an environment that is none": {
			map[string]string{"result.json": shortest, "environment.json": "[]"},
			`DIR/environment.json: no result of weir: it is a JSON array, not an object of schema "weir.environment/v1" (a folder that weir run wrote, or one that holds such folders)`, ErrNotResult,
		},
		"a scenario too long": {
			map[string]string{"result.json": shortest, "scenario.yaml": strings.Repeat("# long\n", 1<<20)},
			"DIR/scenario.yaml: no result of weir: it is not a regular file of at most 4 MiB" + asLeft, ErrNotResult,
		},
	} {
		dir := nested(t, tt.files)
		_, _, err := Load(dir, "x", Loading{})
		if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != tt.want || !errors.Is(err, tt.is) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, tt.want)
		}
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v is about a file that is not there", name, err)
		}
	}
}

func TestLoadNamesMissingFiles(t *testing.T) {
	t.Parallel()
	dir := nested(t, map[string]string{"result.json": shortest, "scenario.yaml": "weir: 1\n"})
	e, missing := must.Two(Load(dir, "x", Loading{}))(t)
	golden.Equal(t, []string{"intervals.hlog", "environment.json", "events.jsonl"}, missing, "")
	if e.Dir != "x" || e.Result.System.Driver != "chan" || string(e.Scenario) != "weir: 1\n" {
		t.Errorf("got %+v", e)
	}
}

func TestLoadedFolderHasWindowStart(t *testing.T) {
	all := []Interval{{TS: 0, Phase: "warmup"}, {TS: 2, Phase: "measure"}, {TS: 3, Phase: "measure"}}
	r := &Result{Intervals: MeasuredFirst(all)}
	if len(r.Intervals) != 1 || r.WindowFrom() != 2e9 {
		t.Errorf("%+v", r.Intervals)
	}
	r.Run.WarmUpS = new(1.5)
	if got := r.WindowFrom(); got != 15e8 {
		t.Errorf("with a warm-up of 1.5 s the window began at %d", got)
	}
	if MeasuredFirst(all[:1]) != nil {
		t.Error("without a measured second there is one")
	}
}
