package suite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func inputs(t *testing.T) scenario.Inputs {
	t.Helper()
	r, err := driver.NewRegistry(all.Definitions()...)
	if err != nil {
		t.Fatal(err)
	}
	return scenario.Inputs{
		Drivers: r, Dir: t.TempDir(), Stat: os.Stat, ReadFile: os.ReadFile, ReadDir: os.ReadDir,
		Env: func(string) (string, bool) { return "", false },
	}
}

func TestTheSchemaIsUpToDate(t *testing.T) {
	golden.File(t, filepath.Join("..", "..", "docs", "formats", "suite.schema.json"), string(JSONSchema()))
}

// TestEverySuiteOfWeirCanBePlanned: each row of each goes together with each of its
// systems, at full length and scaled, and the file fits the schema.
func TestEverySuiteOfWeirCanBePlanned(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(JSONSchema())))
	if err == nil {
		err = compiler.AddResource("suite.json", parsed)
	}
	if err != nil {
		t.Fatal(err)
	}
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
		if err := yaml.Unmarshal(s.Text, &v); err != nil {
			t.Fatal(err)
		}
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
	s, err := Parse("small.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.Plan(inputs(t), c)
	if err != nil {
		t.Fatal(err)
	}
	return s, items
}

func TestRowsAreLaidOverTheSuiteAndSystemsOverRows(t *testing.T) {
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
	s, items := planned(t, Choice{Scale: 0.5})
	if x := items[0].Scenario; x.WarmUp != 50*time.Millisecond || x.Measure != 500*time.Millisecond || x.Load.Rate.PerSecond() != 100 {
		t.Errorf("warm-up %v, measure %v, rate %v; want 50 ms, 500 ms and the row's rate", x.WarmUp, x.Measure, x.Load.Rate)
	}
	if n := items[2].Scenario.Messages; n != 500 {
		t.Errorf("%d messages; want 500", n)
	}
	if text := layout.Terminal(100, false).Page(s.Begin(Choice{Scale: 0.5}, 3).Page()); !strings.Contains(text, "scaled by 0.5") || !strings.Contains(text, "these are not the article's runs") {
		t.Errorf("the page does not say that it is scaled:\n%s", text)
	}
}

// TestFaultsAreScaledWithTheWindow: a kill in the middle of the article's minute is in the
// middle of the shortened one, too.
func TestFaultsAreScaledWithTheWindow(t *testing.T) {
	text := strings.NewReplacer(
		"measure: 1s}", "measure: 60s, faults: [kill 1 at 10s for 5s, {restart: all, at: 0s, every: 20s}]}",
		"{driver: chan, ", "{name: chan, driver: nats, run: {system: {start: process}}, ",
		"{name: second, driver: chan, run: {", "{name: second, driver: nats, run: {system: {start: process}, ",
	).Replace(small)
	s, err := Parse("small.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.Plan(inputs(t), Choice{Scale: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range items[0].Scenario.Faults {
		got = append(got, f.Text())
	}
	if want := []string{"kill 1 at 1s for 500ms", "restart all at 0s every 2s"}; !slices.Equal(got, want) || items[0].Scenario.Measure != 6*time.Second {
		t.Errorf("%q in %v; want %q in 6s", got, items[0].Scenario.Measure, want)
	}
}

func TestADriverThatTheSuiteDoesNotHaveRunsTheRowsOfAllSystems(t *testing.T) {
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
	s, err := Parse("small.yaml", []byte(edit("rate: 100/s", "rate: many")))
	if err != nil {
		t.Fatal(err)
	}
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

func TestTheArticlesFigureStandsBesideOurs(t *testing.T) {
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
	text := layout.Terminal(140, false).Page(r.Page())
	for _, want := range []string{"2.00 µs", "1.00 µs..3.00 µs", "1.5 ms (about)", "VALID", "was channels", "nothing answers", "1 of 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if b, err := json.Marshal(r); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v; want no null", b, err)
	}
	var html strings.Builder
	if err := (layout.HTML{Title: "x"}).Write(&html, r.Drawn()); err != nil || !strings.Contains(html.String(), "<svg") || !strings.Contains(html.String(), "ours 2.00 µs, article 1.5 ms") {
		t.Errorf("%v: no picture of both figures", err)
	}
}

// TestARunThatIsShortenedHasItsFreezeShortened: what a driver's options say of the run is
// scaled as the window is, and so are the article's times.
func TestARunThatIsShortenedHasItsFreezeShortened(t *testing.T) {
	for _, options := range []string{"{answer: 1ms, freeze: {at: 100s, for: 60s}}", "{answer: 1ms, freeze.at: 100s, freeze.for: 60s}"} {
		text := strings.NewReplacer(
			"{driver: chan, was: channels}", "{name: chan, driver: noop, run: {system: {options: "+options+"}}}",
			"e2e.p50", "send.p50", "value: 1.5 ms, as: about", "value: 50 s, as: truth, scales: yes", "received.rate", "sent.rate", "e2e.p97", "send.p97",
		).Replace(small)
		s, err := Parse("small.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		items, err := s.Plan(inputs(t), Choice{Scale: 0.1, Rows: []string{"one"}, Drivers: []string{"noop"}})
		if err != nil {
			t.Fatal(err)
		}
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

// TestThePageDrawsCurvesOfOneRunAndTheChancesOfAPage holds the chances against the closed
// form: of 99 % a page of 69 requests meets it with a chance of a half.
func TestThePageDrawsCurvesOfOneRunAndTheChancesOfAPage(t *testing.T) {
	text := strings.NewReplacer(
		"source: A source\n", "source: A source\nchances: {percentiles: [99], requests: 1000}\n",
		"figures: [e2e.p50", "curves: [{of: e2e.response, as: what users wait}, {of: e2e.service, as: what is reported}]\n  figures: [e2e.p50",
	).Replace(small)
	s, err := Parse("small.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.Plan(inputs(t), Choice{Scale: 1})
	if err != nil {
		t.Fatal(err)
	}
	if p := items[0].Percentiles(); !slices.Contains(p, 25) {
		t.Errorf("percentiles %v; want those of curves, too", p)
	}
	res := &result.Result{}
	res.Latency.E2E.Response = &result.Dist{Percentiles: []result.Percentile{{P: 50, NS: 2_000_000, Supported: true}, {P: 100, NS: 3_000_000, AtLeast: true}}}
	res.Latency.E2E.Service = &result.Dist{Percentiles: []result.Percentile{{P: 50, NS: 1_000_000, Supported: true}}}
	r := s.Begin(Choice{Scale: 1}, len(items))
	r.Add(&items[0], items[0].Measured(res, &result.Environment{}, "one-chan", 1))
	var html strings.Builder
	if err := (layout.HTML{Title: "x"}).Write(&html, r.Drawn()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"what users wait, 50 %: 2.00 ms", "what is reported, 50 %: 1.00 ms", "what users wait, largest: &gt;= 3.00 ms", "half of all pages of 69 requests meet the 99 %"} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestAChartDrawsAFigureOverAKey: a line for each system, with the article's figures, and
// without INVALID runs; and bars of the best of each system.
func TestAChartDrawsAFigureOverAKey(t *testing.T) {
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
	s, err := Parse("sizes.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.Plan(inputs(t), Choice{Scale: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Begin(Choice{Scale: 1}, len(items))
	for i := range items {
		res := &result.Result{}
		res.Verdict.Status = result.Valid
		if i == 3 {
			res.Verdict.Status = result.Invalid
		}
		res.Run.MeasureS = 1
		perS := float64(1000 * (i + 1))
		res.Throughput.ReceivedPerS = &perS
		res.Latency.E2E.Response = &result.Dist{Count: 5000, Percentiles: []result.Percentile{{P: 50, NS: int64(i+1) * 1000, Supported: true}}}
		r.Add(&items[i], items[i].Measured(res, &result.Environment{}, items[i].Name(), 1))
	}
	if got := r.Rows[2].Over["message.size"]; got != "32KiB" {
		t.Errorf("the third run has %q; want its size", got)
	}
	var html strings.Builder
	if err := (layout.HTML{Title: "x"}).Write(&html, r.Drawn()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"chan, message.size 64B: 1,000/s", "chan, message.size 64B: 5,000/s (the article)", "chan, message.size 32KiB: 3,000/s",
		"best row, system chan: 1.00 µs", "best row, system ring: 2.00 µs", "suite sizes: the best", "suite sizes: received.rate over message.size",
	} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(html.String(), "ring, message.size 32KiB") {
		t.Error("an INVALID run is drawn")
	}
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

// TestThePageSaysOnHowManyProcessorsRowsRan where not all ran on the same.
func TestThePageSaysOnHowManyProcessorsRowsRan(t *testing.T) {
	s, items := planned(t, Choice{Scale: 1})
	r := s.Begin(Choice{Scale: 1}, len(items))
	for i := range items {
		around := &result.Environment{Hosts: []host.Facts{{Cores: 2, GOMAXPROCS: 3}}}
		if i == 2 {
			around.Hosts[0].GOMAXPROCS = 1
		}
		res := &result.Result{}
		res.Verdict.Status = result.Valid
		r.Add(&items[i], items[i].Measured(res, around, items[i].Name(), 1))
	}
	text := layout.Terminal(140, false).Page(r.Page())
	if !strings.Contains(text, "GOMAXPROCS 1") || !strings.Contains(text, "GOMAXPROCS 3") {
		t.Errorf("the page does not tell processors apart:\n%s", text)
	}
	r.Rows[2].Processors = 0 // a run that failed says nothing
	if text := layout.Terminal(140, false).Page(r.Page()); strings.Contains(text, "GOMAXPROCS") {
		t.Errorf("all ran on the same processors, and the page repeats it:\n%s", text)
	}
}

// TestTheScreenOfASuiteIsOneScreen: however many runs there are, with what is missing.
func TestTheScreenOfASuiteIsOneScreen(t *testing.T) {
	r := &Report{Suite: Article{Name: "own"}, Scale: 0.5, Planned: 40}
	for i := range 30 {
		r.Rows = append(r.Rows, Line{
			Row: "row-" + strconv.Itoa(i), System: "chan", Dir: "d", Verdict: "suspect", Why: strings.Repeat("it broke ", 30),
			Figures: []Figure{{Figure: "lost", Unit: "messages"}, {Figure: "e2e.p99", Unit: "ns", Value: 2e6, Published: &Print{Value: 1e6, Text: "1 ms"}}},
		})
	}
	var b strings.Builder
	if err := r.Screen("results/x", "own").Write(&b, view.MostLines, 0, false); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(line); n > view.ScreenWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if n := strings.Count(got, "\n"); n > view.MostLines {
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{"\nrow-0  chan    e2e.p99  2.00 ms     1 ms  SUSPECT\n", "and 20 more runs", "not run     10 of 40", "runs        30 SUSPECT", "weir suite show results/x\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
