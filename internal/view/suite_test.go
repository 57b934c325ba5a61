package view

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

const smallSuite = `weir-suite: 1
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

// plannedSuite is the runs of a suite, none of them done.
func plannedSuite(t *testing.T, text string, scale float64) (SuiteReport, []suite.Item) {
	t.Helper()
	s := must.Get(suite.Parse("small.yaml", []byte(text)))(t)
	drivers := must.Get(driver.NewRegistry(all.Definitions()...))(t)
	items := must.Get(s.Plan(scenario.Inputs{
		Drivers: drivers, Dir: t.TempDir(), Stat: os.Stat, ReadFile: os.ReadFile, ReadDir: os.ReadDir,
		Env: func(string) (string, bool) { return "", false },
	}, suite.Choice{Scale: scale}))(t)
	return SuiteReport{Report: s.Begin(suite.Choice{Scale: scale}, len(items))}, items
}

// drawnSuite is the page for a browser.
func drawnSuite(t *testing.T, r SuiteReport) string {
	t.Helper()
	var page strings.Builder
	must.Do(t, r.HTML(&page))
	return page.String()
}

func TestArticleFigureIsShownBesideMeasured(t *testing.T) {
	r, items := plannedSuite(t, smallSuite, 1)
	lo, hi := int64(1_000), int64(3_000)
	res := &result.Result{}
	res.Verdict.Status = result.Valid
	res.Latency.E2E.Response = &result.Dist{Count: 5000, Percentiles: []result.Percentile{{P: 50, NS: 2_000, LoNS: &lo, HiNS: &hi, Supported: true}}}
	r.Add(&items[1], items[1].Failed("nothing answers"))
	r.Add(&items[0], items[0].Measured(res, &result.Environment{}, "one-chan", 1))
	text := layout.Terminal(140, false).Page(r.Page())
	mentions(t, text, "2.00 µs", "1.00 to 3.00 µs", "1.5 ms (about)", "VALID", "was channels", "nothing answers", "1 of 3")
	page := drawnSuite(t, r)
	if !strings.Contains(page, "ours 2.00 µs, article 1.5 ms") {
		t.Error("no picture of both figures")
	}
	if !strings.Contains(page, ` data-name="ours">2.00 µs</td>`) || strings.Contains(page, `class="scroll sideways"`) {
		t.Error("on a phone a table of figures has no card for each row")
	}
	r.Scale = 0.5
	if text := layout.Terminal(100, false).Page(r.Page()); !strings.Contains(text, "scaled by 0.5") || !strings.Contains(text, "these are not the article's runs") {
		t.Errorf("the page does not say that it is scaled:\n%s", text)
	}
}

// TestThePageChartsCurvesAndPageOdds holds the chances against the closed
// form: of 99 % a page of 69 requests meets it with a chance of a half.
func TestThePageChartsCurvesAndPageOdds(t *testing.T) {
	text := strings.NewReplacer(
		"source: A source\n", "source: A source\nchances: {percentiles: [99], requests: 1000}\n",
		"figures: [e2e.p50", "curves: [{of: e2e.response, as: what users wait}, {of: e2e.service, as: what is reported}]\n  figures: [e2e.p50",
	).Replace(smallSuite)
	r, items := plannedSuite(t, text, 1)
	res := &result.Result{}
	res.Latency.E2E.Response = &result.Dist{Percentiles: []result.Percentile{{P: 50, NS: 2_000_000, Supported: true}, {P: 100, NS: 3_000_000, AtLeast: true}}}
	res.Latency.E2E.Service = &result.Dist{Percentiles: []result.Percentile{{P: 50, NS: 1_000_000, Supported: true}}}
	r.Add(&items[0], items[0].Measured(res, &result.Environment{}, "one-chan", 1))
	html := drawnSuite(t, r)
	mentions(t, html, "what users wait, 50 %: 2.00 ms", "what is reported, 50 %: 1.00 ms", "what users wait, largest: &gt;= 3.00 ms", "half of all pages of 69 requests meet the 99 %")
}

// TestChartPlotsFigureOverKey: a line for each system, with the article's figures, and
// without INVALID runs; and bars of the best of each system.
func TestChartPlotsFigureOverKey(t *testing.T) {
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
	r, items := plannedSuite(t, file, 1)
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
	html := drawnSuite(t, r)
	mentions(t, html,
		"chan, message.size 64B: 1,000/s", "chan, message.size 64B: 5,000/s (the article)", "chan, message.size 32KiB: 3,000/s",
		"best row, system chan: 1.00 µs", "best row, system ring: 2.00 µs", "suite sizes: the best", "suite sizes: received.rate over message.size",
	)
	if strings.Contains(html, "ring, message.size 32KiB") {
		t.Error("an INVALID run is drawn")
	}
}

// TestThePageNotesDifferingProcessorCounts where not all ran on the same.
func TestThePageNotesDifferingProcessorCounts(t *testing.T) {
	r, items := plannedSuite(t, smallSuite, 1)
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

// TestSuiteSummaryFitsOneScreen: however many runs there are, with what is missing.
func TestSuiteSummaryFitsOneScreen(t *testing.T) {
	r := SuiteReport{Report: &suite.Report{Suite: suite.Article{Name: "own"}, Scale: 0.5, Planned: 40}}
	for i := range 30 {
		r.Rows = append(r.Rows, suite.Line{
			Row: "row-" + strconv.Itoa(i), System: "chan", Dir: "d", Verdict: "suspect", Why: strings.Repeat("it broke ", 30),
			Figures: []suite.Figure{{Figure: "lost", Unit: "messages"}, {Figure: "e2e.p99", Unit: "ns", Value: 2e6, Published: &suite.Print{Value: 1e6, Text: "1 ms"}}},
		})
	}
	var b strings.Builder
	must.Do(t, r.Screen("results/x", "own").Write(&b, MostAnswer, 0, false))
	got := b.String()
	fits(t, got, MostAnswer)
	mentions(t, got, "\nrow-0  chan    e2e.p99  2.00 ms     1 ms  SUSPECT\n", "and 26 more runs", "not run     10 of 40", "runs        30 SUSPECT", "weir suite show results/x\n")
}
