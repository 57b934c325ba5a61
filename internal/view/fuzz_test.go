package view

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// FuzzShow shows arbitrary result.json files: an untrusted file must not crash the reader, nor write
// control sequences to the terminal.
func FuzzShow(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(inputs) == 0 {
		f.Fatalf("no inputs: %v", err)
	}
	for _, in := range inputs {
		b := must.Get(os.ReadFile(in))(f)
		f.Add(b, []byte("weir: 1\nload: {rate: 1/s}\n"), uint8(80))
	}
	f.Add([]byte(`{"schema": "weir.result/v1", "run": {"name": "\u001b[31m\n| x"}, "verdict": {"slo": [{"expr": "e2e.p99 <= 1s"}]}}`), []byte("a: [1, {b: c}]"), uint8(0))
	f.Add([]byte(`{"schema": "weir.result/v1", "run": {"measure_s": 1e300}, "intervals": [{"t_s": -1e300, "phase": "warmup", "sent": 18446744073709551615, "send": {"p50_ns": -5, "max_ns": 9223372036854775807}},
		{"t_s": 1e300, "phase": "<b>", "backlog": 3, "e2e": {"p99_ns": 1}, "rtt": {"max_ns": 7}}, {"t_s": 0, "sent": 1}], "throughput": {"offered_per_s": 1e308},
		"latency": {"send": {"response": {"count": 18446744073709551615, "percentiles": [{"p": -3, "ns": 1}, {"p": 1e-300, "ns": 0, "supported": true}, {"p": 99.99999999999999, "ns": -9, "lo_ns": -9, "supported": true}, {"p": 101, "ns": 5}]}}}}`),
		[]byte("weir: 1\nx: </pre>\n"), uint8(9))
	f.Fuzz(func(t *testing.T, b, scenario []byte, width uint8) { shown(t, b, scenario, int(width)) })
}

// shown shows a result.json in each format if package result accepts it, and returns whether it does.
func shown(t *testing.T, b, scenario []byte, width int) bool {
	t.Helper()
	r, err := result.Unmarshal(b)
	if err != nil {
		return false
	}
	o := Options{Dir: "x", Width: width, Full: true}
	course := newCourse(0, []result.Interval{{}}, nil, 0)
	if len(r.Intervals) > 0 {
		course = newCourse(0, r.Intervals, nil, r.Run.MeasureS)
	}
	for _, c := range r.Verdict.Checks { // as good as a stranger's events
		if err := course.happened(eachEvent([]result.Event{{TNS: int64(len(c.Why)) * 1e8, Kind: c.Name, Text: c.Value}})); err != nil {
			t.Error(err)
		}
	}
	review := judge.Again(r)
	drawn := Entry{Entry: result.Entry{Dir: "x", Result: r, Scenario: scenario}, Review: &review, Course: course}
	drawn.Environment.System.Settings = map[string]string{r.Run.Name: r.System.Client}
	entries := []Entry{drawn, {Entry: result.Entry{Dir: "y", Result: r}}}
	for name, write := range map[string]func(io.Writer) error{
		"text": func(w io.Writer) error { return Text(w, Entry{Entry: result.Entry{Result: r}, Review: &review}, o) }, "markdown": func(w io.Writer) error { return Markdown(w, entry(r), o) },
		"overview": func(w io.Writer) error { return Overview(w, entries, o) }, "overview in markdown": func(w io.Writer) error { return OverviewMarkdown(w, entries, o) },
		"html": func(w io.Writer) error { return HTML(w, drawn, o) }, "overview in html": func(w io.Writer) error { return OverviewHTML(w, entries, o) },
	} {
		var out strings.Builder
		if err := write(&out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if i := strings.IndexFunc(out.String(), func(c rune) bool { return c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 }); i >= 0 {
			t.Errorf("%s: a control character: %q", name, out.String()[max(0, i-10):i+1])
		}
		if strings.HasSuffix(name, "html") {
			if _, err := look(out.String()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !utf8.ValidString(out.String()) {
			t.Errorf("%s: no UTF-8", name)
		}
	}
	return true
}

// Changes one value after the other of a complete result.json. The seeds of FuzzShow change few, and a
// fuzzer seldom keeps a file of this size valid JSON.
func TestNoChangedResultPanics(t *testing.T) {
	var root any
	tried, taken := 0, 0
	try := func() {
		b := must.Get(json.Marshal(root))(t)
		// One after the other: under the race detector some are enough.
		if tried++; tried%10 != 0 && needs.Less() {
			return
		}
		if shown(t, b, nil, 80) {
			taken++
		}
	}
	hostile := []any{nil, -1.0, 1e308, "\x1b[2J\u202e", []any{}, map[string]any{}, 0.0}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				good := v[key]
				v[key] = hostile[tried%len(hostile)]
				try()
				v[key] = good
				walk(good)
			}
		case []any:
			for i := range v[:min(len(v), 2)] { // the rest is of the same form
				good := v[i]
				v[i] = hostile[tried%len(hostile)]
				try()
				v[i] = good
				walk(good)
			}
		}
	}
	for _, name := range []string{"fleet", "request"} {
		whole := must.Get(os.ReadFile("testdata/" + name + ".json"))(t)
		root = nil
		must.Do(t, json.Unmarshal(whole, &root))
		walk(root)
	}
	t.Logf("%d results, %d were shown", tried, taken)
	if tried < 530 || taken < tried/100 {
		t.Errorf("%d results were tried and %d of them shown; want 530, and one of 100 shown at least", tried, taken)
	}
}
