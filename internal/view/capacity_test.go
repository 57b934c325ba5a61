package view

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

func TestCapacityPlottedOverLoad(t *testing.T) {
	ns := func(v int64) *int64 { return &v }
	r := &capacity.Report{
		Promise: []string{"send.p99 <= 5ms", "lost == 0"},
		Probes: []capacity.Probed{
			{RatePerS: 1000, Purpose: capacity.Doubling, Judgement: "passed", Verdict: result.Valid, Dir: "01", Of: "send", P50NS: ns(1e6), P99NS: ns(2e6)},
			{RatePerS: 2000, Purpose: capacity.Doubling, Judgement: "failed", Why: "send.p99 <= 5ms", Verdict: result.Valid, Dir: "02", Of: "send", P50NS: ns(2e6), P99NS: ns(9e6)},
			{RatePerS: 1500, Purpose: capacity.Bisection, Judgement: "undecided", Verdict: result.Valid, Dir: "<script>"},
		},
		Answer: capacity.Answered{PassPerS: 1000, FailPerS: 2000, Stop: capacity.Found},
	}
	var b bytes.Buffer
	must.Do(t, (&Search{Report: r}).HTML(&b))
	page := b.String()
	mentions(t, page,
		"Capacity under send.p99 &lt;= 5ms, lost == 0", "1,000/s met every objective, 2,000/s did not", `<svg class="chart"`,
		"2,000/s: p99 9.00 ms, failed", `<td class="left bad" data-name="judgement">failed</td>`, `<td class="left good" data-name="judgement">passed</td>`, "&lt;script&gt;",
	)
	if n := strings.Count(page, `class="hollow"`); n != 1 {
		t.Errorf("%d hollow dots, want that of the promised percentile of the probe that failed", n)
	}
	r.Probes = r.Probes[2:]
	b.Reset()
	if err := (&Search{Report: r}).HTML(&b); err != nil || strings.Contains(b.String(), "<svg") {
		t.Errorf("a search without latencies is drawn, or %v", err)
	}
}

// The chart has the percentile of the objective, and inconclusive probes are drawn separately.
func TestOperatingRangeJoinsOnlyConclusiveProbes(t *testing.T) {
	lo := map[float64]*int64{1000: new(int64(15e5))}
	probe := func(rate float64, j capacity.Judgement, v result.Status, p90 int64, atLeast bool) capacity.Probed {
		return capacity.Probed{RatePerS: rate, Judgement: j.String(), Verdict: v, Of: "e2e", Figures: []capacity.Figure{
			{P: 50, NS: 1e6}, {P: 90, NS: p90, AtLeast: atLeast, LoNS: lo[rate]}, {P: 99, NS: 9e9},
		}}
	}
	all := []capacity.Probed{
		probe(1000, capacity.Passed, result.Valid, 2e6, false), probe(2000, capacity.Failed, result.Suspect, 8e6, false),
		probe(3000, capacity.Failed, result.Valid, 9e9, true), probe(4000, capacity.Limited, result.Invalid, 9e8, false),
		probe(5000, capacity.Undecided, result.Valid, 5e6, false), probe(6000, capacity.Failed, result.Invalid, 5e6, false),
	}
	r := &capacity.Report{Promise: []string{"e2e.p90 <= 5ms"}, Answer: capacity.Answered{PassPerS: 1000, FailPerS: 4000, FailBy: capacity.Limited.String(), Stop: capacity.Generator}}
	chart := loaded(r, all)
	if chart == nil || len(chart.Lines) != 2 || len(chart.Legend) != 2 || chart.Legend[0].Text != "p90" || chart.Legend[1].Text != "objective e2e.p90 <= 5ms" {
		t.Fatalf("%+v; want one line with its dots, of p90, and the objective", chart)
	}
	var joined []float64
	for _, p := range chart.Lines[0].Points {
		joined = append(joined, p.X)
	}
	if diff := cmp.Diff([]float64{1000, 2000}, joined); diff != "" {
		t.Errorf("joined (-want +got):\n%s", diff)
	}
	var forms []plot.Form
	for _, p := range chart.Lines[1].Points {
		if !math.IsNaN(p.Y) {
			forms = append(forms, p.Form)
		}
	}
	if diff := cmp.Diff([]plot.Form{plot.Full, plot.Hollow, plot.Upward, plot.Square, plot.Cross, plot.Hollow}, forms); diff != "" {
		t.Errorf("dots (-want +got):\n%s", diff)
	}
	if len(chart.Spans) != 2 || chart.Spans[0].To != 1000 || chart.Spans[1].Class != "open" {
		t.Errorf("want the range that met every objective, and the rest as not known, since the generator was the upper end: %+v", chart.Spans)
	}
	r.Answer.FailBy, r.Answer.FailPerS = capacity.Failed.String(), 2000
	if chart = loaded(r, all); len(chart.Spans) != 2 {
		t.Errorf("%d spans; want those of the operating range and the capacity", len(chart.Spans))
	}
	dot := chart.Lines[1].Points[0]
	if drawn := string(chart.SVG()); dot.Low != 15e5 || !math.IsInf(dot.High, 1) || !strings.Contains(dot.Text, "p90 2.00 ms (95 %: >= 1.50 ms), passed") || strings.Count(drawn, "whisker") != 1 {
		t.Errorf("the interval of %+v is not drawn once:\n%s", dot, drawn)
	}
}

func TestSearchFolderReportsCapacity(t *testing.T) {
	t.Parallel()
	ns := func(v int64) *int64 { return &v }
	r := &capacity.Report{
		Promise: []string{"send.p99 <= 5ms"},
		Probes: []capacity.Probed{
			{RatePerS: 1000, Purpose: capacity.Doubling, Judgement: "passed", Dir: "001-1000", Of: "send", P50NS: ns(1e6), P99NS: ns(2e6)},
			{RatePerS: 2000, Purpose: capacity.Doubling, Judgement: "failed", Why: "send.p99 is 9.00 ms", Dir: "002-2000", Of: "send", P50NS: ns(2e6), P99NS: ns(9e6)},
		},
		Curve:  []capacity.Probed{{RatePerS: 500, Judgement: "passed", Dir: "curve-01", Of: "send", P50NS: ns(5e5), P99NS: ns(8e5)}},
		Answer: capacity.Answered{PassPerS: 1000, FailPerS: 2000, Stop: capacity.Found},
	}
	entries := []Entry{run(t, "noop-1000")}
	entries[0].Dir = "a b/001-1000"
	o := Options{Searches: []*Search{{Dir: "a b", Report: r}}, Width: 80}
	var text, markdown, page bytes.Buffer
	for _, err := range []error{Overview(&text, entries, o), OverviewMarkdown(&markdown, entries, o), OverviewHTML(&page, entries, o)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `
capacity    1,000/s met every objective, 2,000/s did not
objectives  send.p99 <= 5ms
limit       2,000/s: send.p99 is 9.00 ms
probes      2, and 1 run of the curve, each with a result of its own in a b
next        weir report 'a b/001-1000'  # the last run at 1,000/s
`
	if !strings.HasSuffix(text.String(), want) {
		t.Errorf("the text ends with another answer than%s%s", want, text.String())
	}
	for name, tt := range map[string]struct {
		got  string
		want []string
	}{
		"text":     {text.String(), []string{"\neach probe\n", "  500/s  curve     passed      500 µs   800 µs  curve-01\n"}},
		"markdown": {markdown.String(), []string{"# Capacity under send.p99 \\<= 5ms\n", "1,000/s met every objective, 2,000/s did not", "| curve-01 |", "send response against the load"}},
		"html":     {wordButton.ReplaceAllString(page.String(), "$1"), []string{"<title>Capacity under send.p99 &lt;= 5ms</title>", "1,000/s met every objective, 2,000/s did not", "curve-01", `id="load`}},
	} {
		for _, w := range tt.want {
			if !strings.Contains(tt.got, w) {
				t.Errorf("%s lacks %q:\n%.3000s", name, w, tt.got)
			}
		}
	}
	o.Searches = append(o.Searches, &Search{Dir: "other", Report: &capacity.Report{Answer: capacity.Answered{PassPerS: 7, FailPerS: 8, Stop: capacity.Found}}})
	text.Reset()
	if err := Overview(&text, entries, o); err != nil || !strings.Contains(text.String(), "capacity    other: 7.00/s met every objective, 8.00/s did not\n") {
		t.Errorf("of two searches it says %v:\n%s", err, text.String())
	}
}

// Undecided results come before further reading.
func TestNextCommandResolvesUndecidedSearch(t *testing.T) {
	t.Parallel()
	probes := []capacity.Probed{{RatePerS: 100, Judgement: "passed", Dir: "1"}}
	for _, tt := range []struct {
		stop   capacity.Stop
		longer time.Duration
		probes int
		want   string
	}{
		{capacity.Unfinished, 0, 4, "weir capacity --resume s"},
		{capacity.OutOfTries, 0, 4, "weir capacity --resume s --probes 8"},
		{capacity.OutOfTries, 0, capacity.MostProbes, "weir report s/1"},
		{capacity.TooShort, time.Minute, 4, "weir capacity s/scenario.yaml --longest 1m"},
		{capacity.TooShort, 0, 4, "weir report s/1"},
		{capacity.Generator, 0, 4, "weir doctor"},
		{capacity.Found, 0, 4, "weir report s/1"},
	} {
		r := &capacity.Report{Plan: capacity.Planned{Probes: tt.probes}, Probes: probes, Answer: capacity.Answered{PassPerS: 100, Stop: tt.stop}}
		if got, _ := (&Search{Dir: "s", Report: r, longer: tt.longer}).next(); got != tt.want {
			t.Errorf("%s: %q; want %q", tt.stop, got, tt.want)
		}
	}
}

func TestDoubtfulAnswerRestsOnLastProbe(t *testing.T) {
	t.Parallel()
	r := &capacity.Report{Answer: capacity.Answered{PassPerS: 500, FailPerS: 700, FailBy: "failed", Stop: capacity.Doubtful}, Probes: []capacity.Probed{
		{RatePerS: 500, Judgement: "passed"},
		{RatePerS: 700, Judgement: "failed", Why: "too slow"},
		{RatePerS: 500, Purpose: capacity.Confirming, Judgement: "generator-limited", Why: "INVALID for lateness", Verdict: result.Invalid},
	}}
	if p := limit(r); p == nil || p.Why != "INVALID for lateness" {
		t.Errorf("the answer rests on %+v", p)
	}
	if got, _ := (&Search{Dir: "s", Report: r}).next(); got != "weir doctor" {
		t.Errorf("next is %q", got)
	}
}

// A longer probe helps neither against a busy host nor with a window that is still too short.
func TestHostLimitedSearchSuggestsDoctor(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[result.Status]string{
		result.Invalid: "weir doctor", result.Suspect: "weir capacity s/scenario.yaml --longest 38s",
	} {
		r := &capacity.Report{Answer: capacity.Answered{Stop: capacity.TooShort}, Probes: []capacity.Probed{{
			RatePerS: 1000, Judgement: capacity.Undecided.String(), Verdict: verdict, Dir: "1",
			Why: "e2e.p99 <= 1ms is undecided (a window of 38 s would probably decide it)",
		}}}
		if got, _ := (&Search{Dir: "s", Report: r, longer: 8 * time.Second}).next(); got != want {
			t.Errorf("%s: %q; want %q", verdict, got, want)
		}
	}
}

// A probe spoilt by the generator counts as not passed.
func TestADoubtfulAnswerCountsItsProbes(t *testing.T) {
	t.Parallel()
	probes := func(n int, rate float64, judgements ...capacity.Judgement) (all []capacity.Probed) {
		for _, j := range judgements {
			all = append(all, capacity.Probed{N: n, RatePerS: rate, Judgement: j.String()})
		}
		return all
	}
	for _, c := range []struct {
		n      int
		probes []capacity.Probed
		want   string
	}{
		{0, probes(0, 800, capacity.Passed, capacity.Limited, capacity.Limited, capacity.Limited), "1 of 4 probes of 800/s met every objective, in 3 the generator or its host was the limit"},
		{0, probes(0, 800, capacity.Passed, capacity.Passed, capacity.Passed, capacity.Failed, capacity.Undecided), "3 of 5 probes of 800/s met every objective, 1 did not, 1 could not decide"},
		{2, append(probes(1, 800, capacity.Failed), probes(2, 800, capacity.Passed, capacity.Limited)...), "1 of 2 probes of 800/s met every objective, in 1 the generator or its host was the limit"},
	} {
		r := &capacity.Report{Probes: append(c.probes, probes(c.n, 1600, capacity.Failed)...)}
		want := "not known: " + c.want + "; no probe confirmed the rate at the end"
		if got := Came(r, capacity.Ended{N: c.n, Answered: capacity.Answered{PassPerS: 800, FailPerS: 1600, FailBy: "failed", Stop: capacity.Doubtful}}); got != want {
			t.Errorf("came to %q; want %q", got, want)
		}
	}
}

func TestUnfinishedSearchSummary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pass, fail float64
		want       string
	}{
		{0, 0, "not known yet"},
		{100, 0, "not known yet: 100/s met every objective"},
		{0, 125, "not known yet: no rate down to 125/s passed"},
		{100, 200, "not known yet: 100/s met every objective; at 200/s the generator or its host was the limit, not the system"},
	} {
		if got := Came(&capacity.Report{}, capacity.Ended{Answered: capacity.Answered{PassPerS: c.pass, FailPerS: c.fail, Stop: capacity.OutOfTries}}); got != c.want {
			t.Errorf("%v and %v came to %q; want %q", c.pass, c.fail, got, c.want)
		}
	}
	between := Came(&capacity.Report{}, capacity.Ended{Answered: capacity.Answered{PassPerS: 100, FailPerS: 400, UndecidedPerS: 150, Stop: capacity.Between}})
	if want := "100/s met every objective, 400/s did not. Not narrower: 150/s stayed undecided"; between != want {
		t.Errorf("an interval with rates that were not decided came to %q; want %q", between, want)
	}
}

// A search that ends where the system did not keep up may have no latency at the rate that failed: the range is
// drawn all the same, up to that rate, and says why. One that the generator ended says that the rest is unknown.
func TestSearchDrawsHowItEnded(t *testing.T) {
	t.Parallel()
	probe := func(rate float64, j capacity.Judgement, why string, figures ...capacity.Figure) capacity.Probed {
		return capacity.Probed{RatePerS: rate, Judgement: j.String(), Verdict: result.Valid, Of: "e2e", Why: why, Figures: figures}
	}
	passed := []capacity.Probed{probe(1000, capacity.Passed, "", capacity.Figure{P: 50, NS: 1e6}), probe(1500, capacity.Passed, "", capacity.Figure{P: 50, NS: 2e6})}
	for name, tt := range map[string]struct {
		last  capacity.Probed
		end   capacity.Answered
		span  plot.Span
		marks int
		says  []string
	}{
		"the system": {
			probe(2000, capacity.Failed, "the backlog grew"),
			capacity.Answered{PassPerS: 1500, FailPerS: 2000, Stop: capacity.Found},
			plot.Span{From: 1500, To: 2000, Text: "capacity"},
			1,
			[]string{"the operating range, objectives met up to 1,500/s. Grey: the capacity lies between it and 2,000/s, where the system failed (the backlog grew)", "2,000/s: no latency, failed"},
		},
		"the generator": {
			probe(2000, capacity.Limited, "late", capacity.Figure{P: 50, NS: 9e6}),
			capacity.Answered{PassPerS: 1500, FailPerS: 2000, FailBy: capacity.Limited.String(), Stop: capacity.Generator},
			plot.Span{From: 1500, To: 2100, Text: "not known", Class: "open"},
			0,
			[]string{"Beyond it the capacity is not known: the generator or its host was the limit, not the system."},
		},
	} {
		r := &capacity.Report{Promise: []string{"e2e.p50 <= 5ms"}, Answer: tt.end, Probes: append(passed[:2:2], tt.last)}
		chart := loaded(r, r.Probes)
		if chart == nil {
			t.Fatalf("%s: no chart", name)
		}
		if len(chart.Spans) != 2 || chart.Spans[1] != tt.span || len(chart.Marks) != tt.marks {
			t.Errorf("%s: %+v with %d marks; want %+v as the second, and %d", name, chart.Spans, len(chart.Marks), tt.span, tt.marks)
		}
		mentions(t, chart.Caption, tt.says...)
	}
}
