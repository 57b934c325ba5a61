package view

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/layout"
)

// Up to as many as can be distinguished.
func TestOverviewRunsShareTimeAxis(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{1: false, 2: true, mostColours: true, layout.MostSeries + 1: true} {
		var entries []Entry
		for i := range n {
			e := run(t, "jetstream-500")
			e.Course = newCourse(0, length(10+i), nil, float64(10+i))
			e.Dir = fmt.Sprint("r/", i)
			entries = append(entries, e)
		}
		page := rendered(t, OverviewHTML, entries, Options{})
		if _, err := look(page); err != nil {
			t.Error(err)
		}
		_, chart, found := strings.Cut(page, `<title id="all-e2e-time-t">e2e p99, of each run over time</title>`)
		if found != want {
			t.Errorf("of %d runs the chart is there: %v", n, found)
		}
		chart, _, _ = strings.Cut(chart, "</svg>")
		for i := range min(n, layout.MostSeries) {
			if line := fmt.Sprintf(`<path class="line %s" `, layout.Series(i+1)); want && strings.Count(chart, line) != 1 {
				t.Errorf("of %d runs there is no line %s", n, line)
			}
		}
		if title := fmt.Sprintf("<title>%s of jetstream</title>", runs(n)); !strings.Contains(page, title) {
			t.Errorf("there is no %s", title)
		}
	}
}

// Each in its side's colour, only usable runs with a course, and a limited number. The conclusion comes
// first.
func TestComparedRunsShareTimeAxis(t *testing.T) {
	t.Parallel()
	found := &compare.Comparison{Alpha: 0.05, Sides: []compare.SideSummary{{Side: "A", Given: "<a>"}, {Side: "B", Given: "b", Tally: &compare.Tally{}}}}
	for i := range found.Sides {
		s := &found.Sides[i]
		for k := range 20 {
			s.Runs = append(s.Runs, compare.RunSummary{Dir: fmt.Sprintf("%s/%d", s.Given, k)})
		}
		s.Used = len(s.Runs)
	}
	found.Sides[1].Runs[0].Why = "INVALID"
	var asked []string
	page := new(strings.Builder)
	must.Do(t, ComparisonHTML(page, found, false, Parting{Link: func(dir string) string { return map[string]string{"b/0": "./b/0/report.html"}[dir] }, Course: func(dir string) *Course {
		asked = append(asked, dir)
		if dir == "b/1" {
			return nil
		}
		return newCourse(0, length(10), nil, 10)
	}}))
	if _, err := look(page.String()); err != nil {
		t.Error(err)
	}
	_, chart, ok := strings.Cut(page.String(), `<title id="all-send-time-t">`)
	chart, _, _ = strings.Cut(chart, "</svg>")
	if strings.Contains(chart, ">10 s<") || !strings.Contains(chart, ">9 s<") { // where the drain begins
		t.Error("the axis is not that of warm-up and window: the drain is drawn")
	}
	if a, b := strings.Count(chart, `<path class="line s1" `), strings.Count(chart, `<path class="line s2" `); !ok || a != mostTogether/2 || b != mostTogether/2 {
		t.Errorf("%d and %d runs are drawn; want %d of each side", a, b, mostTogether/2)
	}
	if strings.Contains(strings.Join(asked, " "), "b/0 ") || !strings.Contains(page.String(), "Of each system the first 12 runs are drawn.") {
		t.Errorf("a run that does not count was asked for, or the bound is not said: %v", asked)
	}
	if !regexp.MustCompile(`(?s)<h1>.*Comparison of A \(&lt;a&gt;\) and B \(b\).*<strong|class="strong">no</span>.*<h2[^>]*>over the same time</h2>.*<h2[^>]*>the figures</h2>`).MatchString(page.String()) {
		t.Error("the conclusion does not come first")
	}
	if !regexp.MustCompile(`(?s)<h2[^>]*>the figures</h2>.*<summary>The sides, as they were given</summary>`).MatchString(page.String()) {
		t.Error("the long tables are not folded")
	}
	mentions(t, page.String(), `<span class="strong">B</span>: <a href="./b/0/report.html">b/0</a> (left out: INVALID), b/1, b/2`)
	backlog := newCourse(0, length(10), nil, 10)
	for i := range 9 {
		backlog.tracks["received"].points[i].Y = 0
	}
	if at := backlog.drains(); at != 10 {
		t.Errorf("a backlog, drained after the window, is drawn until %v s; want all 10", at)
	}
	page.Reset()
	found.Sides[0].Guarantee, found.Sides[1].Guarantee = "received, copies 1, stable none", "received, copies 1, stable os"
	if err := ComparisonHTML(page, found, false, Parting{}); err != nil || strings.Contains(page.String(), "over the same time") {
		t.Errorf("without courses runs are drawn: %v", err)
	}
	mentions(t, page.String(), "differ: a weaker confirmation comes sooner")
}
