package serve

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weirmq/weir/internal/chromium"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// A browser is a real one without a window, for one test.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu        sync.Mutex
	dialogs   []string // that pages opened
	complains []string // what the browser says of pages, such as that a policy forbids something
}

// browsing starts Chromium, or skips the test where there is none.
func browsing(t *testing.T) *browser {
	t.Helper()
	ctx := chromium.Start(t)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *page.EventJavascriptDialogOpening:
			b.dialogs = append(b.dialogs, ev.Message)
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(true)) }()
		case *log.EventEntryAdded:
			if !strings.Contains(ev.Entry.URL, "favicon") {
				b.complains = append(b.complains, ev.Entry.Text+" "+ev.Entry.URL)
			}
		}
	})
	b.do(log.Enable())
	return b
}

// do runs steps, which must succeed.
func (b *browser) do(steps ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// text is what an expression says.
func (b *browser) text(expression string) string {
	b.t.Helper()
	var out any
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(expression, &out)); err != nil { // a page that is still loading
		return err.Error()
	}
	return fmt.Sprint(out)
}

// says fails the test where an expression does not say so within 15 s.
func (b *browser) says(expression, want string) {
	b.t.Helper()
	got := ""
	for range 150 {
		if got = b.text(expression); got == want {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.t.Errorf("%s says %q, want %q", expression, got, want)
}

// reach presses the tab key until a condition holds.
func (b *browser) reach(condition string) {
	b.t.Helper()
	for range 80 {
		b.do(chromedp.KeyEvent("\t"))
		if b.text(condition) == "true" {
			return
		}
	}
	b.t.Fatalf("no tab leads to %s", condition)
}

// shot keeps a picture where WEIR_SCREENSHOTS names a folder, as wide as a desk or a
// telephone, in light and dark.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("WEIR_SCREENSHOTS")
	if dir == "" {
		return
	}
	for width, size := range map[string]int64{"wide": 1440, "phone": 390} {
		for _, scheme := range []string{"light", "dark"} {
			var picture []byte
			b.do(emulation.SetDeviceMetricsOverride(size, 900, 1, size < 500), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.Sleep(200*time.Millisecond), chromedp.FullScreenshot(&picture, 100))
			if err := os.WriteFile(filepath.Join(dir, name+"-"+width+"-"+scheme+".png"), picture, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.do(emulation.ClearDeviceMetricsOverride())
}

// tabs fails the test unless the tab key reaches each link and control that is visible, once and in the order of the page,
// and shows where it is.
func (b *browser) tabs() {
	b.t.Helper()
	const all = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter(e => !e.disabled && e.checkVisibility())`
	var n int
	b.do(chromedp.Evaluate(`window.stops = `+all+`; document.activeElement.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0); window.stops.length`, &n))
	for i := range n {
		b.do(chromedp.KeyEvent("\t"))
		if got := b.text(`stops.indexOf(document.activeElement)`); got != fmt.Sprint(i) {
			b.t.Errorf("%s: tab %d of %d reaches number %s, %s", b.text("location.pathname"), i, n, got, b.text(`document.activeElement.outerHTML.slice(0, 200)`))
			return
		}
		if got := b.text(`(s => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1)(getComputedStyle(document.activeElement))`); got != "true" {
			b.t.Errorf("%s: nothing shows that this has the focus: %s", b.text("location.pathname"), b.text(`document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
	if n < 2 {
		b.t.Errorf("%s has %d links and controls", b.text("location.pathname"), n)
	}
}

// quiet fails the test where a page did what it must not, or the browser complained.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.dialogs) > 0 || len(b.complains) > 0 {
		b.t.Errorf("dialogs %q; the browser said %q", b.dialogs, b.complains)
	}
}

// fits fails the test where the page is wider than a telephone: only tables scroll.
func (b *browser) fits() {
	b.t.Helper()
	b.do(emulation.SetDeviceMetricsOverride(390, 900, 1, true))
	if got := b.text(`document.documentElement.scrollWidth <= 390`); got != "true" {
		b.t.Errorf("at 390 px %s is %s px wide", b.text("location.pathname"), b.text("document.documentElement.scrollWidth"))
	}
	b.do(emulation.ClearDeviceMetricsOverride())
}

func TestInABrowserRunsAreCompared(t *testing.T) {
	b := browsing(t)
	srv := serving(t, several(t), Options{})
	b.do(chromedp.Navigate(srv.URL + "/"))
	b.says(`document.querySelectorAll("#runs tbody tr").length`, "18")
	b.fits()
	b.shot("list")
	b.do(chromedp.SetValue("#q", "slow"), chromedp.Click("form.filter button", chromedp.ByQuery))
	b.says(`document.querySelectorAll("#runs tbody tr").length`, "5")
	b.do(chromedp.Click("#runs tbody a", chromedp.ByQuery))
	b.says(`document.querySelectorAll("svg.chart").length > 0`, "true")
	b.fits()
	b.shot("run")
	b.do(chromedp.Navigate(srv.URL + "/?q=slow"))
	b.says(`document.querySelectorAll("#runs tbody tr").length`, "5")
	b.do(chromedp.Click(`#runs input[name=a]`, chromedp.ByQuery), chromedp.Click(`#runs tr:nth-child(2) input[name=b]`, chromedp.ByQuery), chromedp.Click(`button[formaction="/overlay"]`, chromedp.ByQuery))
	b.says(`document.querySelector("h1").textContent`, "2 runs of kafka")
	b.fits()
	b.shot("overlay")
	b.do(chromedp.Navigate(srv.URL + "/compare?a=fast/r01&b=fast/r01"))
	b.says(`document.querySelector("h1").textContent`, "Not compared")
	b.fits()
	b.shot("refused")
	b.do(chromedp.Navigate(srv.URL + "/"))
	b.do(chromedp.SetValue(`.folders input[name=a]`, "fast", chromedp.ByQuery), chromedp.SetValue(`.folders input[name=b]`, "slow", chromedp.ByQuery), chromedp.Click(`button[formaction="/compare"]`, chromedp.ByQuery))
	b.says(`document.querySelector("h1").textContent`, "Comparison of nats and kafka")
	b.fits()
	b.shot("compare")
	b.do(chromedp.Navigate(srv.URL+"/?system=nats"), chromedp.Click(`a[href^="/history"]`, chromedp.ByQuery))
	b.says(`document.querySelector("h1").textContent`, "History of 1 series")
	b.do(chromedp.Navigate(srv.URL + "/capacity?dir=search"))
	b.fits()
	b.shot("capacity")
	b.quiet()
}

func TestInABrowserReloadKeepsFollowing(t *testing.T) {
	b := browsing(t)
	dir := t.TempDir()
	g := begins(t, filepath.Join(dir, "now"))
	srv := serving(t, dir, Options{})
	for i := range 30 {
		g.second(uint64(900+20*(i%5)), int64(100_000*(1+i%7)))
	}
	b.do(chromedp.Navigate(srv.URL + "/live?dir=now"))
	b.says(`document.getElementById("state").textContent`, "The run is in progress. This page follows it.")
	b.says(`document.querySelectorAll("#rates path").length`, "3")
	b.says(`document.getElementById("left").textContent`, "31 s")
	b.says(`parseFloat(document.getElementById("at").textContent) >= 29`, "true")
	b.fits()
	b.shot("live")
	b.do(chromedp.Reload())
	b.says(`parseFloat(document.getElementById("at").textContent) >= 29`, "true")
	for _, e := range []result.Event{{TNS: 4e9, Kind: "reconnect"}, {TNS: 20e9, Kind: "fault", Text: "paused"}, {TNS: 10e9, Kind: "phase", Text: "measure"}} {
		must.Do(t, g.folder.AppendEvent(e))
	}
	b.says(`parseFloat(document.getElementById("at").textContent) < 21`, "true") // since the end of the warm-up
	b.says(`[...document.querySelectorAll("#events li")].map(e => e.textContent).join("; ")`, "10.0 s  receiving: paused; 0.0 s  the measured window begins; -6.0 s  connected again")
	b.says(`document.querySelectorAll("#rates line.mark").length`, "2")
	b.says(`document.getElementById("left").textContent`, "41 s")
	b.shot("live-measuring")
	g.second(5000, 100_000)
	g.ends()
	b.says(`document.getElementById("state").textContent`, "The run has ended.")
	b.says(`document.getElementById("sent").textContent`, "5,000/s")
	b.do(chromedp.Click("#report"))
	b.says(`document.querySelectorAll("h1").length`, "1")
	b.quiet()
}

func TestBrowserRunsNoHostileNames(t *testing.T) {
	b := browsing(t)
	dir := t.TempDir()
	for i, name := range hostile {
		made{name, name, 1, morning, 0, 0}.write(t, filepath.Join(dir, "x"+strings.ReplaceAll(name, "/", "∕")), uint64(i))
		g := begins(t, filepath.Join(dir, "y"+strings.ReplaceAll(name, "/", "∕")))
		g.second(10, 1000)
		g.second(10, 1000)
		must.Do(t, g.folder.AppendEvent(eventOf(name)))
	}
	srv := serving(t, dir, Options{})
	paths := []string{"/"}
	for _, name := range hostile {
		name = strings.ReplaceAll(name, "/", "∕")
		paths = append(paths, "/run?"+url.Values{"dir": {"x" + name}}.Encode(), "/live?"+url.Values{"dir": {"y" + name}}.Encode(), "/?"+url.Values{"q": {name}, "below": {name}}.Encode(), "/run?"+url.Values{"dir": {name}}.Encode())
	}
	site, _ := published(t, dir)
	for i := range paths {
		paths[i] = srv.URL + paths[i]
	}
	for _, p := range append(paths, "file://"+filepath.Join(site, "index.html")) {
		b.do(chromedp.Navigate(p))
		if strings.Contains(p, "/live?") {
			b.says(`document.querySelectorAll("#events li").length`, "1")
		}
		if title := b.text(`document.title`); title == "owned" {
			t.Errorf("%s ran a script", p)
		}
		if n := b.text(`document.querySelectorAll("img,iframe,object,embed,[onmouseover],[onerror]").length`); n != "0" {
			t.Errorf("%s has %s elements of the folder's", p, n)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.dialogs) > 0 {
		t.Errorf("pages opened dialogs: %q", b.dialogs)
	}
	for _, said := range b.complains {
		if strings.Contains(said, "Content Security Policy") {
			t.Errorf("a page tried what its policy forbids: %s", said)
		}
	}
}

func TestBrowserFiltersPublishedPages(t *testing.T) {
	b := browsing(t)
	site, _ := published(t, several(t))
	b.do(chromedp.Navigate("file://" + filepath.Join(site, "index.html")))
	b.says(`document.getElementById("filter").hidden`, "false")
	b.fits()
	b.shot("published")
	b.do(chromedp.SendKeys("#q", "slow R02"))
	b.says(`document.getElementById("shown").textContent`, "1 of 17 runs. Times are UTC.")
	b.do(chromedp.Evaluate(`document.getElementById("q").value = ""; document.getElementById("system").value = "nats"; document.getElementById("filter").dispatchEvent(new Event("input")); 0`, nil))
	b.says(`document.getElementById("shown").textContent`, "12 of 17 runs. Times are UTC.")
	b.do(chromedp.Evaluate(`document.querySelector("#runs tr:not([hidden]) a").click(); 0`, nil))
	b.says(`document.querySelectorAll("svg.chart").length > 0`, "true")
	b.do(chromedp.Click(`a[href="../index.html"]`, chromedp.ByQuery))
	b.says(`document.getElementById("filter").hidden`, "false")
	b.quiet()
}

// The published list finds and orders runs as the list of a server does.
func TestBrowserPublishedSearchMatchesList(t *testing.T) {
	b := browsing(t)
	dir := several(t)
	made{name: "outage", driver: "nats", slow: 1, at: morning, never: 60}.write(t, filepath.Join(dir, "outage"), 1)
	rewrite(t, filepath.Join(dir, "slow"), `"status": "valid"`, `"status": "suspect"`)
	x := must.Get(index.Open(t.Context(), dir, ""))(t)
	defer x.Close()
	must.Get(x.Sync(t.Context(), nil))(t)
	site, _ := published(t, dir)
	b.do(chromedp.Navigate("file://" + filepath.Join(site, "index.html")))
	listed := func(q index.Query) string {
		l, err := x.List(t.Context(), q)
		if err != nil {
			return err.Error()
		}
		var dirs []string
		for _, r := range l.Rows {
			dirs = append(dirs, r.Dir)
		}
		return strings.Join(dirs, ",")
	}
	const rows = `[...document.querySelectorAll("#runs tbody tr:not([hidden]) th.name")].map(e => [...e.querySelectorAll(".where")].at(-1).textContent).join()`
	enter := func(id, value string) {
		b.do(chromedp.Evaluate(fmt.Sprintf(`(e => { e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})) })(document.getElementById(%q)); 0`, value, id), nil))
	}
	found := map[string]bool{}
	for _, words := range []string{
		"", "driver:kafka", "DRIVER:Kafka r02", "verdict:valid", "verdict:suspect p99<10s", "p99 < 600us", "p99>1ms", "p50>=.2ms lost=0", "p99<1m30s", "p99>=11s", "p99<1h", "p99.9<1h", "p99>0",
		"delivered>=0.3k", "delivered<1M", "offered=300/s", "offered>3e2", "failed>0", "lost<1,000", "folder:slow/r0", "host:none", "mode:stream", "scenario:fast r1", `"p99<1"`, `"slow"`, "05:08", "server 1.2",
		"a b c d e f g h i j k l driver:", "p99<10", "p99<1parsec", "p99<", "lost<few", "lost<1.5", "lost<64,256", "delivered>=1km", "color:red", "driver:", "verdict:good", "p99:valid", "driver<3", "status:valid",
	} {
		enter("q", words)
		want, got := listed(index.Query{Words: words}), b.text(rows)
		if strings.Contains(want, "is not a filter") {
			got = b.text(`document.getElementById("shown").textContent`)
		}
		if found[want] = true; got != want {
			t.Errorf("%q finds %q, and the list of a server %q", words, got, want)
		}
	}
	if len(found) < 12 {
		t.Errorf("the searches came to %d answers: they say little", len(found))
	}
	enter("q", "driver:kafka")
	for _, order := range index.Sorts() {
		enter("sort", order)
		if got, want := b.text(rows), listed(index.Query{Words: "driver:kafka", Sort: order}); got != want {
			t.Errorf("by %s the rows are %q, and in the list of a server %q", order, got, want)
		}
	}
	b.quiet()
}

// A reader without a pointer searches, sorts and opens runs in a published list.
func TestBrowserPublishedListKeyboardNavigation(t *testing.T) {
	b := browsing(t)
	site, _ := published(t, several(t))
	b.do(chromedp.Navigate("file://" + filepath.Join(site, "index.html")))
	b.says(`document.getElementById("filter").hidden`, "false")
	b.tabs()
	b.do(chromedp.Focus("#q"), chromedp.KeyEvent("driver:kafka"))
	b.says(`document.getElementById("shown").textContent`, "5 of 17 runs. Times are UTC.")
	const first = `document.querySelector("#runs tbody tr:not([hidden]) th.name").textContent`
	b.reach(`document.activeElement.id === "sort"`)
	newest := b.text(first)
	b.do(chromedp.KeyEvent("oldest"))
	b.says(first+` !== `+fmt.Sprintf("%q", newest), "true")
	b.reach(`document.activeElement.closest("#runs") !== null`)
	b.do(chromedp.KeyEvent("\r"))
	b.says(`document.querySelectorAll("svg.chart").length > 0`, "true")
	b.quiet()
}

func TestBrowserStartsRun(t *testing.T) {
	b := browsing(t)
	st := starter()
	defer st.Close()
	srv := serving(t, t.TempDir(), Options{Token: "letmein", Starter: st})
	b.do(chromedp.Navigate(srv.URL+"/?token=letmein"), chromedp.Click(`main a`, chromedp.ByQuery))
	b.says(`document.querySelector("h1").textContent`, "Runs")
	b.do(chromedp.Click(`a[href="/start"]`, chromedp.ByQuery))
	b.says(`document.querySelector("h1").textContent`, "Start a run")
	b.fits()
	b.do(chromedp.SetValue("#scenario", "bad"), chromedp.Click(`button[value="check"]`, chromedp.ByQuery))
	b.says(`document.querySelector(".error").textContent`, "weir: <b>bad</b> is not known")
	b.shot("start")
	b.do(chromedp.SetValue("#scenario", "name: mine"), chromedp.SetValue("#folder", "new"), chromedp.Click(`button[value="start"]`, chromedp.ByQuery))
	b.says(`location.pathname`, "/live")
	b.says(`document.querySelector('form[action="/stop"] button').textContent`, "Stop it") // once its files are there
	b.says(`document.getElementById("state") !== null`, "true")
	b.fits()
	b.shot("live-stop")
	b.tabs()
	b.reach(`document.activeElement.closest("#stop") !== null`)
	b.do(chromedp.KeyEvent("\r"))
	b.says(`location.pathname`, "/start")
	b.quiet()
}

// Pages need no script but that of a run in progress, which says so.
func TestBrowserPagesWorkWithoutScripts(t *testing.T) {
	b := browsing(t)
	dir := several(t)
	begins(t, filepath.Join(dir, "now"))
	for i := range 3 {
		made{"night", "nats", 1, morning.Add(time.Duration(i) * time.Minute), 0, i + 1}.write(t, filepath.Join(dir, "night", fmt.Sprint(i)), uint64(100+i))
	}
	srv := serving(t, dir, Options{})
	b.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(srv.URL+"/"))
	b.says(`document.querySelectorAll("#runs tr.several").length`, "1")
	b.do(chromedp.Click("#runs tr.several a", chromedp.ByQuery)) // a series opens
	b.says(`document.querySelectorAll("#runs tr.inside").length`, "3")
	b.fits()
	b.shot("series")
	b.do(chromedp.Navigate(srv.URL+"/live?dir=now"), chromedp.WaitVisible("noscript p", chromedp.ByQuery))
	b.fits()
	b.do(chromedp.Navigate(srv.URL + "/run?dir=fast/r01"))
	b.says(`document.querySelectorAll("h1").length`, "1")
	b.fits()
	// A word opens its meaning, by pointer and by key, and Escape closes it.
	const open = `[...document.querySelectorAll("[popover]:popover-open")].map(e => e.querySelector("b").textContent).join()`
	b.says(open, "")
	b.do(chromedp.Click("button.word", chromedp.ByQuery))
	first := b.text(`document.querySelector("#" + document.querySelector("button.word").getAttribute("popovertarget") + " b").textContent`)
	b.says(open, first)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.says(open, "")
	b.do(chromedp.Focus("button.word", chromedp.ByQuery), chromedp.KeyEvent("\r"))
	b.says(open, first)
	b.quiet()
}

// The page of a suite leads to its runs, and has its pictures without scripts.
func TestBrowserSuitePage(t *testing.T) {
	b := browsing(t)
	srv := serving(t, repeated(t), Options{})
	b.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(srv.URL+"/"), chromedp.Click(`a[href="/suite?dir=again"]`, chromedp.ByQuery))
	b.says(`document.querySelector("h1").textContent`, "suite small")
	b.says(`document.querySelectorAll("svg.chart .inside").length`, "2")
	b.fits()
	b.shot("suite")
	b.do(chromedp.Click(`td a`, chromedp.ByQuery))
	b.says(`location.pathname`, "/run")
	b.quiet()
}

func TestBrowserListKeyboardNavigation(t *testing.T) {
	b := browsing(t)
	srv := serving(t, several(t), Options{})
	b.do(chromedp.Navigate(srv.URL+"/"), chromedp.Focus("#q"), chromedp.KeyEvent("driver:kafka\r"))
	b.says(`document.querySelectorAll("#runs tbody tr").length`, "5")
	b.tabs()
	b.do(chromedp.Focus("#q"))
	// The head of a column, the marks of a run, and its name follow each other.
	b.reach(`document.activeElement.textContent.trim() === "p99"`)
	b.do(chromedp.KeyEvent("\r"))
	b.says(`document.querySelector('th[aria-sort="ascending"]')?.textContent.trim().startsWith("p99")`, "true")
	b.reach(`document.activeElement.name === "a" && document.activeElement.type === "checkbox"`)
	b.do(chromedp.KeyEvent(" "))
	b.says(`document.querySelectorAll("#runs input:checked").length`, "1")
	b.reach(`document.activeElement.closest("th.name") !== null`)
	b.do(chromedp.KeyEvent("\r"))
	b.says(`location.pathname`, "/run")
	b.quiet()
}

func TestInABrowserPagesAreAccessible(t *testing.T) {
	b := browsing(t)
	axe := chromium.Axe(t)
	dir := several(t)
	g := begins(t, filepath.Join(dir, "now"))
	g.second(900, 100_000)
	g.second(800, 90_000)
	must.Do(t, errors.Join(g.folder.AppendEvent(eventOf("paused")), os.WriteFile(filepath.Join(g.dir, result.FileScenario), []byte("name: going\nmeasure: 1m\nslo: [e2e.p99 <= 1ms]\n"), 0o600)))
	suites := repeated(t)
	site, _ := published(t, several(t))
	suiteSite, _ := published(t, suites)
	st := starter()
	defer st.Close()
	srv := serving(t, dir, Options{Token: "letmein", Starter: st})
	suiteSrv := serving(t, suites, Options{})
	b.do(chromedp.Navigate(srv.URL + "/?token=letmein"))
	for _, page := range []string{
		srv.URL + "/", srv.URL + "/?system=nats", srv.URL + "/history?system=nats", srv.URL + "/live?dir=now", srv.URL + "/compare?a=fast&b=slow",
		srv.URL + "/?q=driver:kafka+p99%3C10s&sort=p99", srv.URL + "/?q=p99%3C10", srv.URL + "/overlay?a=fast/r01&b=slow/r01",
		srv.URL + "/capacity?dir=search", srv.URL + "/start", srv.URL + "/compare?a=fast/r01&b=fast/r01", "file://" + filepath.Join(site, "index.html"),
		suiteSrv.URL + "/", suiteSrv.URL + "/suite?dir=again", "file://" + filepath.Join(suiteSite, "index.html"),
	} {
		b.do(chromedp.Navigate(page))
		t.Log(page, b.text(`document.querySelector("h1").textContent`))
		for _, found := range chromium.Inaccessible(t, b.ctx, axe) {
			t.Errorf("%s, %s", strings.TrimPrefix(page, srv.URL), found)
		}
	}
	b.do(chromedp.Navigate(srv.URL+"/start"), chromedp.SetValue("#scenario", "name: mine"), chromedp.SetValue("#folder", "new"), chromedp.Click(`button[value="start"]`, chromedp.ByQuery))
	b.says(`document.getElementById("state") !== null && document.querySelector('form[action="/stop"] button').textContent`, "Stop it")
	for _, found := range chromium.Inaccessible(t, b.ctx, axe) {
		t.Errorf("a page with a run to stop: %s", found)
	}
	b.do(chromedp.Navigate("about:blank")) // the server waits for pages that follow a run
}
