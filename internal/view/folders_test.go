package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// write makes a folder of files, whose names may hold folders.
func write(t *testing.T, files map[string]string) string {
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

const head = `{"schema": "weir.result/v1", "verdict": {"status": "valid"}, "system": {"driver": "chan"}}`

// killed is the folder of a run that was killed while it wrote.
func killed(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r")
	f := must.Get(result.Create(dir))(t)
	must.Do(t, f.StartIntervals(time.Unix(1_767_323_045, 0), "v0"))
	in := &measure.Interval{From: 1e9, To: 2e9}
	in.Kinds[measure.SendResponse][measure.Measure].Add(1000, 1200)
	in.Kinds[measure.E2EResponse][measure.Measure].Add(1000, 1100)
	for _, err := range []error{
		f.AppendInterval(in), f.AppendEvent(result.Event{Kind: "gc"}), f.WriteScenario([]byte("weir: 1\n")), f.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{result.FileIntervals, result.FileEvents} {
		file := must.Get(os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0))(t)
		must.Get(file.WriteString("{torn"))(t)
		file.Close()
	}
	return dir
}

func TestRemainsOfKilledRun(t *testing.T) {
	t.Parallel()
	dir := killed(t)
	want := []string{
		"intervals.hlog: 2 lines, until 2 s of the run, samples: e2e.response.measure 1,100, send.response.measure 1,200, the last line is torn",
		"events.jsonl: 1 event, the last line is torn",
		"scenario.yaml: weir run " + filepath.Join(dir, "scenario.yaml") + " repeats the run",
	}
	if diff := cmp.Diff(want, Remains(dir)); diff != "" {
		t.Error(diff)
	}
}

func TestRemainsIgnoresOtherFolders(t *testing.T) {
	t.Parallel()
	for _, files := range []map[string]string{{"result.json": head}, {"x": ""}} {
		if got := Remains(write(t, files)); got != nil {
			t.Errorf("got %q", got)
		}
	}
	if got := Remains("none"); got != nil {
		t.Errorf("got %q", got)
	}
}
