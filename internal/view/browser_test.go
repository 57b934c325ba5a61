package view

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weirmq/weir/internal/chromium"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// browser opens pages in a real Chromium, which reports what goes wrong on them.
func browserOf(t *testing.T) context.Context {
	t.Helper()
	ctx := chromium.Start(t)
	var mu sync.Mutex
	var wrong []string
	chromedp.ListenTarget(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			wrong = append(wrong, e.ExceptionDetails.Error())
		case *log.EventEntryAdded: // what the policy refused is one
			wrong = append(wrong, e.Entry.Text)
		}
	})
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range wrong {
			t.Errorf("the browser complains: %s", w)
		}
	})
	must.Do(t, chromedp.Run(ctx, log.Enable()))
	return ctx
}

// seenAs opens a page on a screen of that width.
func seenAs(t *testing.T, ctx context.Context, page string, width int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	must.Do(t, os.WriteFile(path, []byte(page), 0o644))
	must.Do(t, chromedp.Run(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+path)))
}

// asked evaluates an expression on the page.
func asked[T any](t *testing.T, ctx context.Context, expression string) (v T) {
	t.Helper()
	if err := chromedp.Run(ctx, chromedp.Evaluate(expression, &v)); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// whereAt scrolls to an instant of a chart over time, and returns its position on the screen.
func whereAt(t *testing.T, ctx context.Context, chart string, c *Course, s float64) (x, y float64) {
	t.Helper()
	box := asked[[]float64](t, ctx, fmt.Sprintf(`(() => {
		const svg = document.getElementById(%q).closest("svg");
		svg.scrollIntoView({block: "center"});
		const b = svg.getBoundingClientRect();
		return [b.left, b.top, b.width, b.height];
	})()`, chart+"-d"))
	unit := box[2] / 720
	return box[0] + (76+(s-c.from)/(c.to-c.from)*(720-76-30))*unit, box[1] + box[3]/2
}

// press moves the mouse to the first place, and drags it to the others.
func press(t *testing.T, ctx context.Context, places ...[2]float64) {
	t.Helper()
	mouse := func(kind input.MouseType, p [2]float64) chromedp.Action {
		e := input.DispatchMouseEvent(kind, p[0], p[1])
		if kind != input.MouseMoved || len(places) > 1 {
			e = e.WithButton(input.Left).WithButtons(1).WithClickCount(1)
		}
		return e
	}
	actions := []chromedp.Action{input.DispatchMouseEvent(input.MouseMoved, places[0][0], places[0][1])}
	if len(places) > 1 {
		actions = append(actions, mouse(input.MousePressed, places[0]))
		for _, p := range places[1:] {
			actions = append(actions, mouse(input.MouseMoved, p))
		}
		actions = append(actions, mouse(input.MouseReleased, places[len(places)-1]))
	}
	must.Do(t, chromedp.Run(ctx, actions...))
}

// explored is the page of a 12-second run with everything a page can have, and the latencies of each
// second.
func explored(t *testing.T) (Entry, []*measure.Counts) {
	t.Helper()
	dir, seconds := logged(t, 12, 2000)
	events := `{"schema": "weir.events/v1"}
{"t_ns":5000000000,"kind":"hiccup","text":"not woken","duration_ns":250000000}
{"t_ns":7000000000,"kind":"fault","text":"stop"}
`
	must.Do(t, os.WriteFile(filepath.Join(dir, result.FileEvents), []byte(events), 0o644))
	c := must.Get(NewCourse(new(result.Result), length(12), dir))(t)
	e := run(t, "jetstream-500")
	e.Course = c
	e.Result.Verdict.SLO = []result.SLO{{Expr: "e2e.p99 <= 3ms", Status: result.Fail}}
	return e, seconds
}

// Points at a chart, hides a line, selects a time range and zooms. The range's percentiles must equal those
// that Go computes from the full histograms.
func TestAPageIsExploredInABrowser(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	e, seconds := explored(t)
	seenAs(t, ctx, html1(t, e, Options{}), 1280)
	const chart = "c-e2e-time"
	figure := fmt.Sprintf(`document.getElementById(%q).closest("figure")`, chart+"-d")

	x, y := whereAt(t, ctx, chart, e.Course, 4.5)
	press(t, ctx, [2]float64{x, y})
	if got, want := asked[string](t, ctx, figure+`.querySelector(".tip").innerText`), "4.0 s to 5.0 s\np50 "+timeText(100_004)+"\np99 "+timeText(2_000_004); !strings.HasPrefix(got, want) || !strings.Contains(got, "messages 2,000") {
		t.Errorf("the values at 4.5 s are %q; want %q, and 2,000 messages", got, want)
	}

	ticks := `[...` + figure + `.querySelectorAll("g.ticks text:not(.faint)")].map(t => t.textContent).join(" ")`
	shown := figure + `.querySelector('path.line[data-n="3"]').getBoundingClientRect().width > 0`
	click := func(what string) {
		t.Helper()
		asked[bool](t, ctx, `(() => { const b = [...`+what+`]; b[b.length - 1].click(); return true })()`)
	}
	whole := asked[string](t, ctx, ticks)
	name := `[...` + figure + `.querySelectorAll(".legend button")].slice(0, 3)` // without the objective
	click(name)
	if asked[bool](t, ctx, shown) || asked[string](t, ctx, name+`[2].getAttribute("aria-pressed")`) != "false" {
		t.Error("max is still shown after a click on its name")
	}
	if without := asked[string](t, ctx, ticks); without == whole {
		t.Errorf("without max the axis is as before: %s", whole)
	}
	click(name)
	if again := asked[string](t, ctx, ticks); !asked[bool](t, ctx, shown) || again != whole {
		t.Errorf("max is not shown again, or the axis is %s; want %s", again, whole)
	}

	x, y = whereAt(t, ctx, chart, e.Course, 3.1)
	to, _ := whereAt(t, ctx, chart, e.Course, 6.9)
	press(t, ctx, [2]float64{x, y}, [2]float64{(x + to) / 2, y}, [2]float64{to, y})
	part := new(measure.Counts)
	for _, s := range seconds[3:7] {
		part.Merge(s)
	}
	want := []string{"e2e, this time", quantity.Count(part.Total())} // the first column
	for _, p := range []float64{50, 90, 99, 99.9} {
		fine := part.At(measure.Rank(p, part.Total()))
		want = append(want, quantity.Time(tileLowest(tileOf(fine)+1)-1))
	}
	row := asked[[]string](t, ctx, `[...document.querySelectorAll(".selection tr > :nth-child(2)")].map(c => c.textContent)`)
	if len(row) < len(want) || !slices.Equal(row[:len(want)], want) {
		t.Errorf("of the selected time the page says %q; want %q", row, want)
	}
	if got := asked[string](t, ctx, `document.querySelector(".selection p").textContent`); got != "3.0 s to 7.0 s" {
		t.Errorf("%q is selected", got)
	}
	if n := asked[int](t, ctx, `document.querySelectorAll(".selection svg path.line").length`); n != 2 {
		t.Errorf("%d curves are drawn; want the selected time and the whole run", n)
	}

	click(`document.querySelectorAll(".selection button:first-child")`)
	times := `[...` + figure + `.querySelectorAll("g.ticks .mid")].map(t => t.textContent)`
	if got := asked[[]string](t, ctx, times); got[0] == "0" || slices.Contains(got, "10 s") || !slices.Contains(got, "5 s") {
		t.Errorf("zoomed in, the axis has %q", got)
	}
	if n := asked[int](t, ctx, `document.querySelectorAll(".zoomed").length`); n < 4 {
		t.Errorf("%d charts are zoomed; want all over time", n)
	}
	click(`document.querySelectorAll(".selection button")`)
	if got := asked[[]string](t, ctx, times); got[0] != "0" || asked[bool](t, ctx, `!!document.querySelector(".selection")`) {
		t.Errorf("cleared, the axis has %q, or something is selected", got)
	}
}

// Selects a range with an outage. The whole run must rank as in result.json: without the warm-up, and with
// the messages that never came.
func TestBrowserSelectionCountsMissingMessages(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	dir, came := outage(t, 500)
	e := run(t, "jetstream-500")
	e.Result.Run.WarmUpS = new(2.0)
	c := must.Get(NewCourse(e.Result, length(12), dir))(t)
	e.Course = c
	seenAs(t, ctx, html1(t, e, Options{}), 1280)
	const chart = "c-e2e-time"
	chosen := func(from, to float64) [][]string {
		t.Helper()
		x, y := whereAt(t, ctx, chart, c, from)
		end, _ := whereAt(t, ctx, chart, c, to)
		press(t, ctx, [2]float64{x, y}, [2]float64{(x + end) / 2, y}, [2]float64{end, y})
		return asked[[][]string](t, ctx, `[...document.querySelectorAll(".selection tr")].map(r => [...r.children].map(c => c.textContent))`)
	}
	p50 := quantity.Time(tileLowest(tileOf(came.At(measure.Rank(50, 5000)))+1) - 1)
	got := chosen(3.1, 5.9)
	for _, want := range [][]string{
		{"", "e2e, this time", "e2e, whole run"},
		{"messages", "1,500", "5,000"},
		{"never came", "1,000", "1,000"},
		{"p50", "", p50},
		{"p90", "", ""},
	} {
		row := got[0]
		got = got[1:]
		for i, w := range want {
			if w != "" && row[i] != w || w == "" && i > 0 && !strings.HasPrefix(row[i], ">= 1") {
				t.Errorf("the page says %q; want %q, and a lower bound where there is none", row, want)
			}
		}
	}
	if says := asked[string](t, ctx, `document.querySelector(".selection p.dim").textContent`); !strings.Contains(says, "The warm-up is not counted.") {
		t.Errorf("it says %q", says)
	}
	x, y := whereAt(t, ctx, chart, c, 4.4)
	press(t, ctx, [2]float64{x, y})
	if tip := asked[string](t, ctx, `document.querySelector(".tip:not([hidden])").innerText`); !strings.Contains(tip, "due, and never came ") {
		t.Errorf("the values at 4.4 s are %q", tip)
	}
	if got := chosen(-1.9, -0.1); len(got) != 0 {
		t.Errorf("of the warm-up the page says %q; want nothing", got)
	}
	if got := asked[string](t, ctx, `document.querySelector(".selection p").textContent`); got != "-1.9 s to -0.1 s" {
		t.Errorf("%q is selected", got)
	}
}

// TestBrowserPageKeyboardNavigation: arrows move the cursor, with Shift they select, and Escape
// ends it.
func TestBrowserPageKeyboardNavigation(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	e, _ := explored(t)
	seenAs(t, ctx, html1(t, e, Options{}), 1280)
	asked[bool](t, ctx, `(() => { document.getElementById("c-e2e-time-d").closest("svg").focus(); return true })()`)
	keys := func(key string, modifiers ...input.Modifier) {
		t.Helper()
		must.Do(t, chromedp.Run(ctx, chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...))))
	}
	for range 20 {
		keys(kb.ArrowRight)
	}
	if got := asked[string](t, ctx, `document.querySelector(".tip:not([hidden])").innerText`); !strings.HasPrefix(got, "2.0 s to 3.0 s\np50 ") {
		t.Errorf("after 20 of 100 steps the values are %q", got)
	}
	for range 40 {
		keys(kb.ArrowRight, input.ModifierShift)
	}
	if got := asked[string](t, ctx, `document.querySelector(".selection p").textContent`); got != "2.0 s to 7.0 s" {
		t.Errorf("40 steps with Shift select %q", got)
	}
	keys(kb.Escape)
	if asked[bool](t, ctx, `!!document.querySelector(".selection")`) {
		t.Error("Escape leaves the selection")
	}
}

// Writes script into every name of a run.
func TestBrowserDoesNotExecuteHostileNames(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	e, _ := explored(t)
	evil := `</script><script>window.evil = 1</script><img src="x" onerror="window.evil = 1">`
	e.Result.Run.Name, e.Result.System.Driver, e.Scenario = evil, evil, []byte(evil)
	e.Course.hosts = []hostCourse{{agent: evil, lines: []string{evil}}}
	e.Course.tracks[e.Course.hosts[0].track("cores "+evil)] = e.Course.tracks["sent"]
	e.Course.marks = append(e.Course.marks, happening{at: 3, kind: evil, text: evil, count: 1})
	seenAs(t, ctx, html1(t, e, Options{}), 1280)
	asked[bool](t, ctx, `(() => { for (const d of document.querySelectorAll("details")) d.open = true; return true })()`)
	must.Do(t, chromedp.Run(ctx, chromedp.WaitReady("#c-host0-cpu-d", chromedp.ByQuery)))
	x, y := whereAt(t, ctx, "c-host0-cpu", e.Course, 4.5)
	press(t, ctx, [2]float64{x, y})
	if got := asked[string](t, ctx, `document.querySelector(".tip:not([hidden])").innerText`); !strings.Contains(got, evil) {
		t.Errorf("the name is not shown as it is: %q", got)
	}
	if asked[bool](t, ctx, `window.evil !== undefined || document.querySelectorAll("img").length > 0 || document.scripts.length !== 2`) {
		t.Error("a name became a part of the page")
	}
}

func TestAPageIsWholeWithoutScripts(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	must.Do(t, chromedp.Run(ctx, emulation.SetScriptExecutionDisabled(true)))
	e, _ := explored(t)
	seenAs(t, ctx, html1(t, e, Options{}), 1280)
	var columns, figures string
	must.Do(t, chromedp.Run(ctx, chromedp.OuterHTML(`figure:nth-last-of-type(1)`, &figures), chromedp.OuterHTML("main", &columns)))
	if !strings.Contains(columns, `class="column"`) || strings.Contains(columns, "aria-pressed") {
		t.Error("without scripts the charts have no values, or a script ran")
	}
}

// Measures each label of each chart, and that no page is wider than its screen.
func TestLabelsAreReadableOnEveryScreen(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	e, _ := explored(t)
	page := html1(t, e, Options{})
	for _, width := range []int64{1280, 800, 650, 500, 390, 360, 320} {
		seenAs(t, ctx, page, width)
		small := asked[[]string](t, ctx, `[...document.querySelectorAll("svg.chart text")].filter(t => t.getClientRects().length && getComputedStyle(t).display !== "none").map(t =>
			[parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getBoundingClientRect().width / 720, t.textContent]).filter(([px]) => px < 10.99).map(([px, s]) => s + ": " + px)`)
		if len(small) > 0 {
			t.Errorf("on a screen of %d px %d labels have less than 11 px: %s", width, len(small), small[0])
		}
		if over := asked[[]string](t, ctx, `[...document.querySelectorAll("svg.chart")].flatMap(svg => {
			const shown = [...svg.querySelectorAll(".mid:not(.number)")].map(e => [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0).sort((a, b) => a[1].left - b[1].left);
			return shown.slice(1).filter(([, b], i) => b.left < shown[i][1].right).map(([s]) => s + " in " + svg.closest("figure").querySelector("h3").textContent);
		})`); len(over) > 0 {
			t.Errorf("on a screen of %d px, of the names of an axis %d lie on others: %s", width, len(over), over[0])
		}
		if over := asked[[]string](t, ctx, `[...document.querySelectorAll("svg.chart")].flatMap(svg => {
			const shown = [...svg.querySelectorAll(".ticks .end:not(.name)")].map(e => [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0).sort((a, b) => a[1].top - b[1].top);
			return shown.slice(1).filter(([, b], i) => b.top + b.height / 3 < shown[i][1].bottom - b.height / 3).map(([s]) => s + " in " + svg.closest("figure").querySelector("h3").textContent);
		})`); len(over) > 0 {
			t.Errorf("on a screen of %d px, of the names of a Y axis %d lie on others: %s", width, len(over), over[0])
		}
		if wide := asked[int64](t, ctx, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("on a screen of %d px the page has %d", width, wide)
		}
	}
}

// TestPageDataMatchesItsCharts reads what the script computes with.
func TestPageDataMatchesItsCharts(t *testing.T) {
	t.Parallel()
	e, seconds := explored(t)
	page := html1(t, e, Options{})
	m := regexp.MustCompile(`(?s)<script type="application/json" id="weir-data">(.*?)</script>`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("there are none")
	}
	var data struct {
		Charts []struct {
			ID, Of string
			Names  []string
			Rules  []float64
			Lines  []struct {
				N        int
				X, To, Y []*float64
			}
		}
		Data struct{ E2E, Send packed }
	}
	must.Do(t, json.Unmarshal([]byte(m[1]), &data))
	found := false
	for _, c := range data.Charts {
		if !strings.Contains(page, `<title id="`+c.ID+`-t">`) {
			t.Errorf("there is no chart %s", c.ID)
		}
		if c.ID != "c-e2e-time" {
			continue
		}
		found = true
		if c.Of != "e2e" || !slices.Equal(c.Names, []string{"p50", "p99", "max", "objective e2e.p99 <= 3ms: fail"}) || !slices.Equal(c.Rules, []float64{3e6}) {
			t.Errorf("the chart is %+v", c)
		}
		if l := c.Lines[0]; len(l.X) != len(seconds) || *l.X[4] != 4 || *l.To[4] != 5 || *l.Y[4] != 100_000 { // of four digits
			t.Errorf("its first line is %+v", l)
		}
	}
	if !found || len(data.Data.E2E.From) != len(seconds) || data.Data.Send.From != nil {
		t.Errorf("the chart or the latencies are missing: %v", found)
	}
	if several := new(strings.Builder); OverviewHTML(several, []Entry{e, e}, Options{}) != nil || strings.Contains(several.String(), `"half"`) {
		t.Error("a page of several runs holds the latencies of each")
	}
}

// Opens a run among several, points at its percentiles, zooms by the address and saves a chart.
func TestBrowserBuildsChartsWhenOpened(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	var entries []Entry
	for i := range 2 {
		e, _ := explored(t)
		e.Result.Run.ID, e.Result.Run.Name, e.Dir = fmt.Sprint("id", i), fmt.Sprint("name", i), fmt.Sprint("r/", i)
		entries = append(entries, e)
	}
	seenAs(t, ctx, rendered(t, OverviewHTML, entries, Options{}), 1280)
	const inside = `[...document.querySelectorAll("details")].find(d => d.textContent.includes("name0 "))`
	if n := asked[int](t, ctx, inside+`.querySelectorAll("svg").length`); n != 0 {
		t.Errorf("%d charts of a closed run are built", n)
	}
	asked[bool](t, ctx, `(() => { [...document.querySelectorAll("details")].forEach(d => d.open = true); return true })()`)
	must.Do(t, chromedp.Run(ctx, chromedp.WaitReady("#c1-send-d", chromedp.ByQuery)))
	if n := asked[int](t, ctx, `document.querySelectorAll("template, p.later").length`); n != 0 {
		t.Errorf("%d charts of open runs are not built", n)
	}
	if asked[string](t, ctx, `document.getElementById("c1-e2e-time-d").closest("svg").querySelector("path.line").getAttribute("d") || ""`) == "" {
		t.Error("a line over time is not drawn")
	}
	asked[bool](t, ctx, `(() => { document.getElementById("c1-send-d").closest("svg").focus(); return true })()`)
	must.Do(t, chromedp.Run(ctx, chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight)))
	if tip := asked[string](t, ctx, `document.querySelector(".tip:not([hidden])").innerText`); !strings.Contains(tip, "response ") || !strings.Contains(tip, " of ") {
		t.Errorf("the values by key are %q; want a percentile with its samples", tip)
	}
	if n := asked[int](t, ctx, `document.querySelectorAll(".cursor:not(.off)").length`); n != 2*2 {
		t.Errorf("%d percentile charts have the cursor; want send and e2e of both runs", n)
	}
	asked[bool](t, ctx, `(() => {
		window.saved = [];
		URL.createObjectURL = (b) => { b.text().then((s) => saved.push(b.type + " " + s.slice(0, 400))); return "#"; };
		const figure = document.getElementById("c1-e2e-time-d").closest("figure");
		figure.querySelectorAll(".save button").forEach(b => b.click());
		document.getElementById("c1-send-d").closest("figure").querySelector(".save button:last-child").click();
		return true;
	})()`)
	must.Do(t, chromedp.Run(ctx, chromedp.Poll(`window.saved.length === 4`, nil)))
	all := asked[string](t, ctx, `saved.sort().join("\n")`)
	for _, want := range []string{"image/png", "image/svg+xml <svg", "text/csv series,from_s,to_s,ns\np50,0,1,", "text/csv series,percentile,ns,low_ns,high_ns,samples,says\nresponse,50,"} {
		if !strings.Contains(all, want) {
			t.Errorf("what is saved lacks %q: %.600s", want, all)
		}
	}
}

// The address keeps the zoom, and events can be reached by key.
func TestBrowserZoomIsInTheAddress(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	e, _ := explored(t)
	seenAs(t, ctx, html1(t, e, Options{}), 1280)
	asked[bool](t, ctx, `(() => { document.getElementById("c-e2e-time-d").closest("svg").focus(); return true })()`)
	must.Do(t, chromedp.Run(ctx, chromedp.KeyEvent("e"), chromedp.KeyEvent("e")))
	if tip := asked[string](t, ctx, `document.querySelector(".tip:not([hidden])").innerText`); !strings.Contains(tip, "fault: stop") {
		t.Errorf("the second event by key is %q", tip)
	}
	if n := asked[int](t, ctx, `document.querySelectorAll(".cursor:not(.off)").length`); n < 3 {
		t.Errorf("%d charts have the cursor; want all over time", n)
	}
	must.Do(t, chromedp.Run(ctx, chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(input.ModifierShift)), chromedp.KeyEvent(kb.Enter)))
	hash := asked[string](t, ctx, `location.hash`)
	if !regexp.MustCompile(`^#t=[\d.]+,[\d.]+$`).MatchString(hash) {
		t.Fatalf("zoomed in, the address ends with %q", hash)
	}
	asked[bool](t, ctx, `(() => { location.reload(); return true })()`)
	must.Do(t, chromedp.Run(ctx, chromedp.WaitReady("svg.zoomed", chromedp.ByQuery)))
	if got := asked[string](t, ctx, `location.hash`); got != hash {
		t.Errorf("opened again the address ends with %q; want %q", got, hash)
	}
}
