package view

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// stored reads a stored result and holds it against objectives.
func stored(t *testing.T, path string, objectives ...string) *result.Result {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	r, err := result.Unmarshal(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, x := range objectives {
		o := must.Get(judge.ParseObjective(x))(t)
		r.Verdict.SLO = append(r.Verdict.SLO, o.Judge(r))
	}
	return r
}

// entry is a run of which only the result is known.
func entry(r *result.Result) Entry { return Entry{Entry: result.Entry{Result: r}} }

// run is one of the results of small real runs in testdata/runs.
func run(t *testing.T, name string, objectives ...string) Entry {
	t.Helper()
	dir := filepath.Join("testdata", "runs", name)
	e := Entry{Entry: result.Entry{Dir: "results/" + name, Result: stored(t, filepath.Join(dir, "result.json"), objectives...)}}
	e.Scenario = must.Get(os.ReadFile(filepath.Join(dir, "scenario.yaml")))(t)
	e.Environment.Hosts = []host.Facts{{Hostname: "anvil", Arch: "amd64", Cores: 2, CPUModel: "Xeon", Kernel: "6.18", ClockSource: "tsc"}}
	return e
}

// rendered is what a writer of runs writes.
func rendered[E any](t testing.TB, write func(io.Writer, E, Options) error, of E, o Options) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, write(&b, of, o))
	return b.String()
}

// unwrapped is a text with its lines joined.
func unwrapped(s string) string { return strings.Join(strings.Fields(s), " ") }

// mentions reports each of some texts that got does not have.
// wordButton is a word that a page explains.
var wordButton = regexp.MustCompile(`<button class="word" popovertarget="word-\d+">([^<]*)</button>`)

func mentions(t testing.TB, got string, wanted ...string) {
	t.Helper()
	got = wordButton.ReplaceAllString(got, "$1")
	for _, want := range wanted {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%.5000s", want, got)
		}
	}
}

func same(t *testing.T, name string, write func(io.Writer) error) string {
	t.Helper()
	var got bytes.Buffer
	must.Do(t, write(&got))
	golden.File(t, filepath.Join("testdata", name), got.String())
	return got.String()
}

// fiveRuns are five runs that differ in nearly everything.
func fiveRuns(t *testing.T) []Entry {
	all := []string{"lost == 0", "send.service.p99 <= 50ms"}
	far := run(t, "nats-500", all...)
	far.Environment.Hosts = []host.Facts{{Hostname: "bellows", Arch: "amd64", Cores: 8, CPUModel: "EPYC", Kernel: "6.18", ClockSource: "tsc"}}
	return []Entry{run(t, "jetstream-500", all...), run(t, "jetstream-synced", all...), far, run(t, "chan-closed", all...), run(t, "noop-1000", all...)}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"overview.txt": {}, "overview-80.txt": {Width: 80}, "overview-240.ansi": {Width: 240, Colour: true}, "overview-full.txt": {Full: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := same(t, name, func(w io.Writer) error { return Overview(w, fiveRuns(t), o) })
			if o.Width == 80 {
				tablesWithin(t, got, 80)
			}
		})
	}
	for name, o := range map[string]Options{"overview.md": {}, "overview-full.md": {Full: true}} {
		t.Run(name, func(t *testing.T) {
			same(t, name, func(w io.Writer) error { return OverviewMarkdown(w, fiveRuns(t), o) })
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

func TestRunLabelsTellRunsApart(t *testing.T) {
	t.Parallel()
	entry := func(name, dir string) Entry {
		return Entry{Entry: result.Entry{Dir: dir, Result: &result.Result{Run: result.Run{Name: name}}}}
	}
	for name, tt := range map[string]struct {
		entries []Entry
		want    []string
	}{
		"by their names":                        {[]Entry{entry("a", "x/1"), entry("b", "x/2")}, []string{"a", "b"}},
		"by their folders where names are same": {[]Entry{entry("a", "x/1"), entry("a", "x/2")}, []string{"1", "2"}},
		"by paths where folders are too":        {[]Entry{entry("a", "x/1"), entry("a", "y/1")}, []string{"x/1", "y/1"}},
		"by their place where it is one folder": {[]Entry{entry("a", "x/1"), entry("a", "x/1")}, []string{"1 a", "2 a"}},
	} {
		if diff := cmp.Diff(tt.want, labels(tt.entries)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestIdenticalRunsRaiseNoWarning(t *testing.T) {
	t.Parallel()
	b := rendered(t, Overview, []Entry{run(t, "nats-500"), run(t, "nats-500")}, Options{})
	if !strings.Contains(b, "the recorded settings of these runs are identical\n") || strings.Contains(b, "ranking") {
		t.Errorf("got\n%s", b)
	}
}

func TestDifferingGuaranteesAreNoted(t *testing.T) {
	t.Parallel()
	for name, weaken := range map[string]func(*result.System){
		"another guarantee":  func(s *result.System) { s.Guarantee = "buffered" },
		"fewer copies":       func(s *result.System) { s.Copies = "quorum" },
		"less stable copies": func(s *result.System) { s.Stable = "none" },
	} {
		a, b := run(t, "jetstream-500"), run(t, "jetstream-500")
		weaken(&b.Result.System)
		for form, write := range map[string]func(io.Writer, []Entry, Options) error{"text": Overview, "markdown": OverviewMarkdown} {
			var out strings.Builder
			must.Do(t, write(&out, []Entry{a, b}, Options{}))
			if !strings.Contains(out.String(), "guarantees differ: ") {
				t.Errorf("%s, %s: nothing is said\n%s", name, form, out.String())
			}
		}
	}
}

func TestDifferingServerSettingsAreNamed(t *testing.T) {
	t.Parallel()
	entry := func(settings map[string]string) Entry {
		e := run(t, "jetstream-500")
		e.Environment.System.Settings = settings
		return e
	}
	a := entry(map[string]string{"sync_interval": "2m0s", "max_payload": "1048576"})
	for what, x := range map[string]struct {
		b    Entry
		want string // "": that they differ is not said
	}{
		"the same":    {entry(map[string]string{"sync_interval": "2m0s", "max_payload": "1048576"}), ""},
		"another":     {entry(map[string]string{"sync_interval": "always", "max_payload": "1048576"}), "setting sync_interval  2m0s; always\n"},
		"one is gone": {entry(map[string]string{"max_payload": "1048576"}), "setting sync_interval  2m0s; none\n"},
		"not known":   {Entry{Entry: result.Entry{Result: a.Result, Scenario: a.Scenario}}, ""},
	} {
		b := rendered(t, Overview, []Entry{a, x.b}, Options{})
		got := b
		if x.want == "" && (strings.Contains(got, "settings of the servers") || strings.Contains(got, "setting sync")) {
			t.Errorf("%s: got\n%s", what, got)
		}
		if x.want != "" && (!strings.Contains(got, x.want) || !strings.Contains(got, "settings of the servers differ (sync_interval): ")) {
			t.Errorf("%s: no %q in\n%s", what, x.want, got)
		}
	}
}

func TestUnknownFactIsNotDifference(t *testing.T) {
	t.Parallel()
	known, other := run(t, "nats-500"), run(t, "nats-500")
	other.Scenario, other.Environment.Hosts = nil, nil
	var b strings.Builder
	must.Do(t, Overview(&b, []Entry{known, other}, Options{}))
	if !strings.Contains(b.String(), "the recorded settings of these runs are identical\n") {
		t.Errorf("got\n%s", b.String())
	}
	third := run(t, "nats-500")
	third.Scenario = []byte(strings.Replace(string(third.Scenario), "rate: 500/s", "rate: 600/s", 1))
	b.Reset()
	must.Do(t, Overview(&b, []Entry{known, other, third}, Options{}))
	if !strings.Contains(b.String(), "load.rate  500/s; 600/s (not known of 1)\n") {
		t.Errorf("got\n%s", b.String())
	}
}

func TestManyValuesOfFactAreCounted(t *testing.T) {
	t.Parallel()
	var entries []Entry
	for i := range 12 {
		e := run(t, "nats-500")
		e.Scenario = []byte(strings.Replace(string(e.Scenario), "seed: 1", "seed: 1"+strings.Repeat("0", i), 1))
		entries = append(entries, e)
	}
	b := rendered(t, Overview, entries, Options{})
	if want := "seed  1; 10; 100; 1000; 10000; 100000; 1000000; 10000000; ... (12 in all)\n"; !strings.Contains(b, want) {
		t.Errorf("no %q in\n%s", want, b)
	}
}

func TestABrokenScenarioIsNotCompared(t *testing.T) {
	t.Parallel()
	a, b := run(t, "nats-500"), run(t, "nats-500")
	b.Scenario = []byte("{{{")
	rendered(t, Overview, []Entry{a, b}, Options{})
}
