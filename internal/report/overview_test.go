package report

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

// stored reads a stored result and holds it against objectives.
func stored(t *testing.T, path string, objectives ...string) *result.Result {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := result.Unmarshal(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, x := range objectives {
		o, err := judge.ParseObjective(x)
		if err != nil {
			t.Fatal(err)
		}
		r.Verdict.SLO = append(r.Verdict.SLO, o.Judge(r))
	}
	return r
}

// run is one of the results of small real runs in testdata/runs.
func run(t *testing.T, name string, objectives ...string) Entry {
	t.Helper()
	dir := filepath.Join("testdata", "runs", name)
	e := Entry{Dir: "results/" + name, Result: stored(t, filepath.Join(dir, "result.json"), objectives...)}
	var err error
	if e.Scenario, err = os.ReadFile(filepath.Join(dir, "scenario.yaml")); err != nil {
		t.Fatal(err)
	}
	e.Hosts = []host.Facts{{Hostname: "anvil", Arch: "amd64", Cores: 2, CPUModel: "Xeon", Kernel: "6.18", ClockSource: "tsc"}}
	return e
}

func golden(t *testing.T, name string, write func(io.Writer) error) string {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
	return got.String()
}

// suite is five runs that differ in nearly everything.
func suite(t *testing.T) []Entry {
	all := []string{"lost == 0", "send.service.p99 <= 50ms"}
	far := run(t, "nats-500", all...)
	far.Hosts = []host.Facts{{Hostname: "bellows", Arch: "amd64", Cores: 8, CPUModel: "EPYC", Kernel: "6.18", ClockSource: "tsc"}}
	return []Entry{run(t, "jetstream-500", all...), run(t, "jetstream-synced", all...), far, run(t, "chan-closed", all...), run(t, "noop-1000", all...)}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"overview.txt": {}, "overview-80.txt": {Width: 80}, "overview-240.ansi": {Width: 240, Colour: true}, "overview-full.txt": {Full: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := golden(t, name, func(w io.Writer) error { return Overview(w, suite(t), o) })
			if o.Width == 80 {
				tablesWithin(t, got, 80)
			}
		})
	}
	for name, o := range map[string]Options{"overview.md": {}, "overview-full.md": {Full: true}} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, func(w io.Writer) error { return OverviewMarkdown(w, suite(t), o) })
		})
	}
}

// tablesWithin checks the lines that begin or end as a row of a table does.
func tablesWithin(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width && strings.Contains(line, "   ") && !strings.HasPrefix(line, "  ") {
			t.Errorf("%d wide: %s", n, line)
		}
	}
}
