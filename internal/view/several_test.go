package view

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// brokers are runs of three systems, n of each, whose p99 grows from run to run.
func brokers(n int) (entries []Entry) {
	for i, driver := range []string{"noop", "chan", "ring"} {
		for r := range n {
			e := repeat(r+1, int64((i+1)*1_000_000+r*100_000), 1000)
			e.Result.System.Driver, e.Result.System.Guarantee = driver, "received"
			e.Result.Run.Series, e.Result.Run.Name = driver, fmt.Sprintf("%s-r%d", driver, r+1)
			e.Result.Run.ID = e.Result.Run.Name
			e.Result.Throughput.ConfirmedPerS = 1000
			e.Dir = "three/" + e.Result.Run.Name
			entries = append(entries, e)
		}
	}
	return entries
}

// The page of several systems begins with a sentence and a row for each system.
func TestSeveralSystemsPageAnswersFirst(t *testing.T) {
	t.Parallel()
	few, enough := brokers(3), brokers(8)
	page := htmlOf(t, few)
	mentions(t, page, "99 % of the messages took at most 1.10 ms with noop, 2.10 ms with chan and 3.10 ms with ring (medians over runs).",
		"is undecided, and takes at least", "undecided: ", "[1.00 to 1.20 ms]", "A confirmation means the same with all: ", "run with --price-per-hour", "against noop")
	if !regexp.MustCompile(`(?s)<h1>.*class="status">.*<table class="[^"]*cards">.*<h2[^>]*>latency, percentile by percentile</h2>.*<h2[^>]*>each run</h2>.*all runs in one table`).MatchString(page) {
		t.Error("the order is not: sentence, systems, percentiles, each run")
	}
	mentions(t, htmlOf(t, enough), "Compared with noop, chan and ring are worse in send p99.", `class="left prose bad" data-name="against noop">worse: send p99`)

	few[0].Result.Verdict.Figures = []result.Figure{{Name: "send.p99", By: "hiccups", Part: 1}}
	mentions(t, htmlOf(t, few), "Do not quote these figures: in some run something other than the system moved them by over a tenth.</p>")
	if strings.Contains(page, "Do not quote these") {
		t.Error("figures that nothing moved are called moved")
	}

	enough[23].Result.Run.Interrupted = true
	enough[3].Result.MessagesAll = result.Messages{Sent: 10, Delivered: 8, Lost: 2, Confirmed: 10}
	mentions(t, htmlOf(t, enough), "Messages were lost: noop in 1 of 8 runs.", "left out: 1 interrupted")

	enough[8].Result.Efficiency = &result.Efficiency{CostPerMillion: new(0.25)}
	if strings.Contains(htmlOf(t, enough), `data-name="cost of a million"`) {
		t.Error("a cost that one of eight runs knows is a cost of the system")
	}
	for i := range enough[8:16] {
		enough[8+i].Result.Efficiency = &result.Efficiency{CostPerMillion: new(0.25 * float64(i+1))}
	}
	page = htmlOf(t, enough)
	mentions(t, page, `data-name="cost of a million"`, "[0.250 to 2.00]", "not known")
	if strings.Contains(page, "run with --price-per-hour") {
		t.Error("the page asks for a price that it has")
	}
}

// The sentence that a manager reads aloud and the row of a system say the same.
func TestSpokenSentenceAgreesWithTheRow(t *testing.T) {
	t.Parallel()
	change := func(v compare.Verdict, more int) *compare.Change { return &compare.Change{Verdict: v, MoreRuns: more} }
	for want, verdicts := range map[string][3]*compare.Change{ // of e2e p99, e2e p50 and the rate
		"Compared with A, B is better in e2e p99.":                                                                       {change(compare.Better, 0), change(compare.Better, 0), change(compare.NothingShown, 0)},
		"Compared with A, B is better in e2e p99; but B is worse in received.":                                           {change(compare.Better, 0), change(compare.NoChange, 0), change(compare.Worse, 0)},
		"Compared with A, whether B differs in e2e p99 is undecided; but B is better in e2e p50, and worse in received.": {change(compare.NothingShown, 0), change(compare.Better, 0), change(compare.Worse, 0)},
		"Compared with A, whether B differs in e2e p99 is undecided; but B is worse in 2 figures, such as e2e p50.":      {change(compare.NothingShown, 0), change(compare.Worse, 0), change(compare.Worse, 0)},
		"Compared with A, whether B differs in e2e p99 is undecided, and takes at least 2 more runs of each.":            {change(compare.NeedsRuns, 2), change(compare.NeedsRuns, 2), change(compare.NeedsRuns, 2)},
	} {
		found := &compare.Comparison{Alpha: 0.05, Band: 0.05, Sides: []compare.SideSummary{{Side: "A"}, {Side: "B", Tally: &compare.Tally{}}}}
		for i, of := range [][3]string{{"e2e.response", "p99", compare.UnitTime}, {"e2e.response", "p50", compare.UnitTime}, {"throughput", "received", compare.UnitRate}} {
			found.Figures = append(found.Figures, compare.Figure{Family: of[0], Name: of[1], Unit: of[2], Sides: []compare.Values{{}, {Change: verdicts[i]}}})
		}
		c := comparison{new(layout.Page), found}
		if got := c.certain(c.figure("e2e.response", "p99")); got != want {
			t.Errorf("it says %q; want %q", got, want)
		}
	}
}

// The charts of several runs have the objectives that all of them have.
func TestSeriesChartsHaveTheObjectives(t *testing.T) {
	t.Parallel()
	entries := brokers(2)[:2]
	for i := range entries {
		e := &entries[i]
		e.Result.Verdict.SLO = []result.SLO{{Expr: "send.p99 <= 2ms", Status: result.Pass}, {Expr: "send.p50 <= 1ms", Status: result.Pass}}
		e.Course = newCourse(0, length(10), nil, 10)
	}
	entries[1].Result.Verdict.SLO[0].Status = result.Fail
	draw := func() (percentiles, overTime string) {
		for i := range entries {
			entries[i].Course.promised = entries[i].Result.Verdict.SLO
		}
		page := htmlOf(t, entries)
		_, percentiles, _ = strings.Cut(page, "<h3>send response by percentile</h3>")
		percentiles, _, _ = strings.Cut(percentiles, "</figure>")
		_, overTime, _ = strings.Cut(page, "<h3>send p99, of each run over time</h3>")
		overTime, _, _ = strings.Cut(overTime, "</figure>")
		return percentiles, overTime
	}
	percentiles, overTime := draw()
	mentions(t, percentiles, "objective send.p99 &lt;= 2ms: not the same in all runs", "objective send.p50 &lt;= 1ms: pass", `<path class="rule pass"`)
	mentions(t, overTime, "objective send.p99 &lt;= 2ms: not the same in all runs", `<path class="rule "`)
	if strings.Contains(overTime, "send.p50") {
		t.Error("a chart of p99 has the objective of p50")
	}
	entries[1].Result.Verdict.SLO = nil
	if percentiles, overTime = draw(); strings.Contains(percentiles+overTime, "objective ") {
		t.Error("an objective that one run has is drawn")
	}
}

// What cannot be put side by side gets a page that says so.
func TestSeveralSystemsPageOfOddRuns(t *testing.T) {
	t.Parallel()
	invalid := brokers(1)
	for i := range invalid {
		invalid[i].Result.Verdict.Status = result.Invalid
	}
	mentions(t, htmlOf(t, invalid), "these runs cannot be put beside one another: 3 scenarios have no run whose figures can be used")

	twice := brokers(1)
	twice[1] = twice[0]
	twice[1].Dir = "three/copy"
	mentions(t, htmlOf(t, twice), "is a copy of")

	apart := brokers(1)
	apart[0].Result.Latency = result.Latency{}
	apart[0].Totals = nil
	mentions(t, htmlOf(t, apart), "these runs have no latency in common: see each run")

	rates := brokers(2)
	for i := range rates {
		rates[i].Scenario = fmt.Appendf(nil, "load: {rate: %d000/s}\n", i/2+1)
	}
	page := htmlOf(t, rates)
	mentions(t, page, "no system is called better or worse: ")
	if strings.Contains(page, "against noop") {
		t.Error("runs of other rates are called better or worse")
	}

	one := brokers(2)[:2]
	mentions(t, htmlOf(t, one), "with noop, the median of 2 runs (1.00 to 1.10 ms).")
	_ = htmlOf(t, one[:1])
}

// A page of twelve runs stays small: the charts of a run are built when it is opened.
func TestPageOfTwelveRunsIsSmall(t *testing.T) {
	t.Parallel()
	e, _ := must.Two(Load(old, "x", Loading{Drawn: true}))(t)
	var entries []Entry
	for i := range 12 {
		x, r := e, *e.Result
		r.Run.Series, r.Run.Repeat = fmt.Sprint("broker", i/4), i%4+1
		r.Run.Name = fmt.Sprintf("%s-r%d", r.Run.Series, r.Run.Repeat)
		r.Run.ID, x.Dir, x.Result = r.Run.Name, "three/"+r.Run.Name, &r
		entries = append(entries, x)
	}
	page := htmlOf(t, entries)
	if n := len(page); n > 800_000 {
		t.Errorf("the page has %d bytes", n)
	}
	shown := regexp.MustCompile(`(?s)<template>.*?</template>`).ReplaceAllString(page, "")
	if n := len(regexp.MustCompile(`<[a-z]`).FindAllString(shown, -1)); n > 10_000 || n < 1000 {
		t.Errorf("the page has %d elements", n)
	}
	if n := strings.Count(page, "<template>"); n < 12*3 {
		t.Errorf("%d charts wait to be opened", n)
	}
	mentions(t, shown, "send by percentile: Latency by percentile. ") // without the script, words

	search := &capacity.Report{Promise: []string{"e2e.p99 <= 5ms"}, Answer: capacity.Answered{PassPerS: 1000, FailPerS: 2000, Stop: capacity.Found}}
	entries = append(entries, entries[:6]...)
	for i := range entries {
		entries[i].Dir = fmt.Sprint("s/", i)
		search.Probes = append(search.Probes, capacity.Probed{RatePerS: float64(500 * (i%4 + 1)), Judgement: capacity.Passed.String(), Dir: fmt.Sprint(i), Why: "a reason"})
	}
	page = rendered(t, OverviewHTML, entries, Options{Searches: []*Search{{Dir: "s", Report: search}}})
	if n := len(page); n > 800_000 {
		t.Errorf("the page of 18 probes has %d bytes", n)
	}
	if n := len(regexp.MustCompile(`<[a-z]`).FindAllString(page, -1)); n > 10_000 {
		t.Errorf("with all that can be opened, the page of 18 probes has %d elements", n)
	}
	mentions(t, page, "The probes at the ends of the range have charts")
	if !strings.Contains(page, `id="c2-send-t"`) || strings.Contains(page, `id="c1-send-t"`) {
		t.Error("the charts are not those of the probes at the ends of the range")
	}
}
