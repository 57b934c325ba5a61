package suite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

func inputs(t *testing.T) scenario.Inputs {
	t.Helper()
	r := must.Get(driver.NewRegistry(all.Definitions()...))(t)
	return scenario.Inputs{
		Drivers: r, Dir: t.TempDir(), Stat: os.Stat, ReadFile: os.ReadFile, ReadDir: os.ReadDir,
		Env: func(string) (string, bool) { return "", false },
	}
}

func TestTheSchemaIsUpToDate(t *testing.T) {
	golden.File(t, filepath.Join("..", "..", "..", "docs", "formats", "suite.schema.json"), string(JSONSchema()))
}

// Each row works with each of its systems, at full length and scaled, and the file fits the schema.
func TestEverySuiteOfWeirCanBePlanned(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	parsed := must.Get(jsonschema.UnmarshalJSON(strings.NewReader(string(JSONSchema()))))(t)
	must.Do(t, compiler.AddResource("suite.json", parsed))
	schema := compiler.MustCompile("suite.json")
	for _, name := range Names() {
		s, err := Named(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Name != name {
			t.Errorf("%s.yaml is named %s", name, s.Name)
		}
		var v any
		must.Do(t, yaml.Unmarshal(s.Text, &v))
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s and the schema: %v", name, err)
		}
		whole, err := s.Plan(inputs(t), Choice{Scale: 1})
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if _, err := s.Plan(inputs(t), Choice{Scale: 0.1}); err != nil {
			t.Errorf("%s, scaled: %v", name, err)
		}
		for _, row := range s.Rows {
			if !slices.ContainsFunc(whole, func(i Item) bool { return i.Row.Name == row.Name }) {
				t.Errorf("%s: no run of row %s", name, row.Name)
			}
		}
	}
}

const small = `weir-suite: 1
name: small
title: A title
source: A source
run: {warmup: 100ms, measure: 1s}
systems:
- {driver: chan, was: channels}
- {name: second, driver: chan, run: {load: {rate: 50/s}}}
rows:
- name: one
  run: {load: {rate: 100/s}}
  figures: [e2e.p50, received.rate, lost, e2e.p97]
  published:
  - {system: chan, figure: e2e.p50, value: 1.5 ms, as: about}
  - {system: chan, figure: received.rate, value: "1,000/s"}
- {name: two, systems: [second], run: {messages: 1000}, figures: [sent]}
`

func planned(t *testing.T, c Choice) (*Suite, []Item) {
	t.Helper()
	s := must.Get(Parse("small.yaml", []byte(small)))(t)
	items := must.Get(s.Plan(inputs(t), c))(t)
	return s, items
}

func TestRowsOverrideSuiteAndSystemsOverrideRows(t *testing.T) {
	_, items := planned(t, Choice{Scale: 1})
	var got []string
	for _, i := range items {
		got = append(got, i.Name())
	}
	if want := []string{"one-chan", "one-second", "two-second"}; !slices.Equal(got, want) {
		t.Fatalf("runs %q; want %q", got, want)
	}
	if r := items[0].Scenario.Load.Rate.PerSecond(); r != 100 {
		t.Errorf("the row's rate is %v; want 100", r)
	}
	if r := items[1].Scenario.Load.Rate.PerSecond(); r != 50 {
		t.Errorf("the system's rate is %v; want 50", r)
	}
	if s := items[2].Scenario; s.Messages != 1000 || s.Measure != 0 {
		t.Errorf("messages %d, measure %v; want the row's 1000 in place of the suite's measure", s.Messages, s.Measure)
	}
	if p := items[0].Percentiles(); !slices.Contains(p, 97) || !slices.Contains(p, 99.9) {
		t.Errorf("percentiles %v; want 97 and the usual ones", p)
	}
	if p := items[2].Percentiles(); p != nil {
		t.Errorf("percentiles %v; want nil", p)
	}
}

func TestAScaleShortensTimesAndCounts(t *testing.T) {
	_, items := planned(t, Choice{Scale: 0.5})
	if x := items[0].Scenario; x.WarmUp != 50*time.Millisecond || x.Measure != 500*time.Millisecond || x.Load.Rate.PerSecond() != 100 {
		t.Errorf("warm-up %v, measure %v, rate %v; want 50 ms, 500 ms and the row's rate", x.WarmUp, x.Measure, x.Load.Rate)
	}
	if n := items[2].Scenario.Messages; n != 500 {
		t.Errorf("%d messages; want 500", n)
	}
}

// A kill in the middle of the article's minute is in the middle of the shortened one, too.
func TestFaultsAreScaledWithTheWindow(t *testing.T) {
	text := strings.NewReplacer(
		"measure: 1s}", "measure: 60s, faults: [kill 1 at 10s for 5s, {restart: all, at: 0s, every: 20s}]}",
		"{driver: chan, ", "{name: chan, driver: nats, run: {system: {start: process}}, ",
		"{name: second, driver: chan, run: {", "{name: second, driver: nats, run: {system: {start: process}, ",
	).Replace(small)
	s := must.Get(Parse("small.yaml", []byte(text)))(t)
	items := must.Get(s.Plan(inputs(t), Choice{Scale: 0.1}))(t)
	var got []string
	for _, f := range items[0].Scenario.Faults {
		got = append(got, f.Text())
	}
	if want := []string{"kill 1 at 1s for 500ms", "restart all at 0s every 2s"}; !slices.Equal(got, want) || items[0].Scenario.Measure != 6*time.Second {
		t.Errorf("%q in %v; want %q in 6s", got, items[0].Scenario.Measure, want)
	}
}

func TestUnlistedDriverRunsCommonRows(t *testing.T) {
	_, items := planned(t, Choice{Drivers: []string{"ring"}, Scale: 1})
	if len(items) != 1 || items[0].Name() != "one-ring" {
		t.Errorf("%d runs; want one-ring alone", len(items))
	}
}

func TestBadSuitesAreRefused(t *testing.T) {
	edit := func(from, to string) string {
		if !strings.Contains(small, from) {
			t.Fatalf("no %q", from)
		}
		return strings.Replace(small, from, to, 1)
	}
	for text, want := range map[string]string{
		"":                                 "a suite begins with weir-suite: 1",
		edit("weir-suite: 1", "weir: 1"):   "small.yaml:1:1: weir: unknown key",
		edit("title: A title\n", ""):       "title: is missing",
		edit("name: small", "name: a/b"):   `"a/b" is not a name`,
		edit("name: second", "name: chan"): `"chan" is given twice`,
		edit("name: two", "name: one"):     `rows[1].name: "one" is given twice`,
		edit("[second]", "[third]"):        `"third" is not a system of the suite (chan, second)`,
		edit("figures: [e2e.p50", "curves: [{of: e2e, as: x}]\n  figures: [e2e.p50"):                 `"e2e" is not a distribution`,
		edit("source: A source\n", "source: A source\nchances: {percentiles: [100], requests: 5}\n"): `chances.percentiles: "100" does not fit`,
		edit("source: A source\n", "source: A source\nchances: {percentiles: [99], requests: 1}\n"):  "chances.requests: does not fit (2 to 10000)",
		edit("value: \"1,000/s\"", "value: \"1,000/s\", scales: yes"):                                "received.rate is not a time",
		edit("e2e.p50, rec", "e2e.what, rec"):                                                        "rows[0].figures: ",
		edit("1.5 ms", "1.5 apples"):                                                                 "rows[0].published[0]: ",
		edit("figure: e2e.p50", "figure: lost"):                                                      "rows[0].published[0]: ",
		edit("{warmup: 100ms,", "{repeat: 2,"):                                                       "run.repeat: does not belong into a suite",
		edit("figures: [sent]", "figure: sent"):                                                      "rows[1].figures: does not fit",
	} {
		if _, err := Parse("small.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	s := must.Get(Parse("small.yaml", []byte(edit("rate: 100/s", "rate: many"))))(t)
	if _, err := s.Plan(inputs(t), Choice{Scale: 1}); err == nil || !strings.Contains(err.Error(), "small.yaml:11:22: load.rate: ") {
		t.Errorf("%v; want the place of the rate", err)
	}
	for want, c := range map[string]Choice{
		"unknown driver":      {Drivers: []string{"nothing"}, Scale: 1},
		"chan is given twice": {Drivers: []string{"chan", "chan"}, Scale: 1},
		`has no row "three"`:  {Rows: []string{"three"}, Scale: 1},
		"no row of small is":  {Drivers: []string{"ring"}, Rows: []string{"two"}, Scale: 1},
		"two is given twice":  {Rows: []string{"two", "two"}, Scale: 1},
		"unknown driver \"\"": {Drivers: []string{""}, Scale: 1},
	} {
		s, _ := Parse("small.yaml", []byte(small))
		if _, err := s.Plan(inputs(t), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q in it", c, err, want)
		}
	}
}

func TestArticleFigureIsShownBesideMeasured(t *testing.T) {
	s, items := planned(t, Choice{Scale: 1})
	lo, hi := int64(1_000), int64(3_000)
	res := &result.Result{}
	res.Verdict.Status = result.Valid
	res.Latency.E2E.Response = &result.Dist{Count: 5000, Percentiles: []result.Percentile{{P: 50, NS: 2_000, LoNS: &lo, HiNS: &hi, Supported: true}}}
	r := s.Begin(Choice{Scale: 1}, len(items))
	r.Add(&items[1], items[1].Failed("nothing answers"))
	r.Add(&items[0], items[0].Measured(res, &result.Environment{}, "one-chan", 1))
	if !r.Done(&items[0]) || r.Done(&items[1]) || r.Done(&items[2]) {
		t.Error("the first run alone is done")
	}
	f := r.Rows[1].Figures[0]
	if f.Value != 2_000 || f.Unit != "ns" || *f.Lo != 1_000 || *f.Hi != 3_000 || f.Published == nil || f.Published.Value != 1_500_000 {
		t.Errorf("%+v", f)
	}
	if p := r.Rows[1].Figures[1].Published; p == nil || p.Value != 1000 || p.Text != "1,000/s" {
		t.Errorf("%+v; want 1000 a second", p)
	}
	if b, err := json.Marshal(r); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v; want no null", b, err)
	}
}

// Times in a driver's options are scaled with the window, and so are the article's times.
func TestShortenedRunScalesItsFreeze(t *testing.T) {
	for _, options := range []string{"{answer: 1ms, freeze: {at: 100s, for: 60s}}", "{answer: 1ms, freeze.at: 100s, freeze.for: 60s}"} {
		text := strings.NewReplacer(
			"{driver: chan, was: channels}", "{name: chan, driver: noop, run: {system: {options: "+options+"}}}",
			"e2e.p50", "send.p50", "value: 1.5 ms, as: about", "value: 50 s, as: truth, scales: yes", "received.rate", "sent.rate", "e2e.p97", "send.p97",
		).Replace(small)
		s := must.Get(Parse("small.yaml", []byte(text)))(t)
		items := must.Get(s.Plan(inputs(t), Choice{Scale: 0.1, Rows: []string{"one"}, Drivers: []string{"noop"}}))(t)
		got := map[string]string{}
		for _, o := range driver.Options(items[0].Scenario.System.Config) {
			got[o.Name] = o.Default
		}
		if got["freeze.at"] != "10s" || got["freeze.for"] != "6s" || got["answer"] != "1ms" {
			t.Errorf("%s: %v; want a freeze at 10s for 6s, and an answer of 1ms", options, got)
		}
		l := items[0].Measured(&result.Result{}, &result.Environment{}, "x", 0.1)
		if p := l.Figures[0].Published; p == nil || p.Value != 5e9 || p.Text != "5.00 s" || p.As != "50 s at full length; truth" {
			t.Errorf("the article's figure is %+v; want 5 s", p)
		}
	}
}

func TestABadChartIsRefused(t *testing.T) {
	const file = `weir-suite: 1
name: sizes
title: A title
source: A source
run: {warmup: 100ms, measure: 1s}
charts:
- {figure: received.rate, over: message.size}
- {figure: e2e.p50, title: the best, rows: [small, large]}
systems:
- {driver: chan}
- {driver: ring}
rows:
- name: small
  run: {message: {size: 64B}}
  figures: [received.rate, e2e.p50]
  published:
  - {system: chan, figure: received.rate, value: "5,000/s"}
- {name: large, run: {message: {size: 32KiB}}, figures: [received.rate, e2e.p50]}
`
	for text, want := range map[string]string{
		strings.Replace(file, "figure: received.rate, over", "figure: sent.rate, over", 1): "charts[0].figure: sent.rate is a figure of none of its rows",
		strings.Replace(file, "rows: [small, large]", "rows: [tiny]", 1):                   `charts[1].rows: "tiny" is not a row`,
		strings.Replace(file, "title: the best", "titel: the best", 1):                     "charts[1].titel: unknown key",
	} {
		if _, err := Parse("sizes.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}
