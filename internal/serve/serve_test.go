package serve

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A made run is one that a test writes.
type made struct {
	name, driver string
	slow         float64 // times as slow
	at           time.Time
	never        int // messages that never came, for 11.7 s
	repeat       int // number in its series; 0: a single run
}

var morning = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// write writes the folder of a run that ended.
func (m made) write(t testing.TB, dir string, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	run := math.Exp(0.02 * rng.NormFloat64())
	c := new(measure.Counts)
	for range 600 {
		c.Add(int64(200_000*m.slow*run*math.Exp(0.4*rng.NormFloat64())), 1)
	}
	const n = 600
	r := &result.Result{
		Run:         result.Run{ID: fmt.Sprint(m.name, seed), Name: m.name, Series: "made", StartedAt: m.at.Format(time.RFC3339Nano), Loop: result.LoopOpen, Mode: "stream", MeasureS: 2, Repeat: m.repeat},
		System:      result.System{Driver: m.driver, Server: result.Server{Name: "server", Version: "1.2", Nodes: 1}, Guarantee: "received"},
		Verdict:     result.Verdict{Status: result.Valid},
		Messages:    result.Messages{Scheduled: n, Sent: n, Confirmed: n, Delivered: n},
		MessagesAll: result.Messages{Scheduled: n, Sent: n, Confirmed: n, Delivered: n},
		Throughput:  result.Throughput{OfferedPerS: 300, SentPerS: 300, ConfirmedPerS: 300},
	}
	never := new(measure.Counts)
	never.Add(11_700_000_000, uint64(m.never))
	r.Latency.Send.Response = judge.Distribution(c, never)
	for i := range 3 {
		r.Intervals = append(r.Intervals, result.Interval{TS: float64(i), Sent: 300, Confirmed: 300})
	}
	f := must.Get(result.Create(dir))(t)
	must.Do(t, errors.Join(f.WriteResult(r), f.Close()))
}

// series writes n runs below dir.
func series(t testing.TB, dir string, n int, m made) {
	t.Helper()
	for i := range n {
		m := m
		m.at = m.at.Add(time.Duration(i) * time.Minute)
		m.write(t, filepath.Join(dir, fmt.Sprintf("r%02d", i+1)), uint64(i)+uint64(m.slow*1000))
	}
}

// serving serves dir until the test ends.
func serving(t testing.TB, dir string, o Options) *httptest.Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	x := must.Get(index.Open(ctx, dir, filepath.Join(t.TempDir(), "i")))(t)
	must.Get(x.Sync(ctx, nil))(t)
	o.Index, o.Weir, o.Log = x, "devel", slog.New(slog.DiscardHandler)
	s := New(ctx, o)
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		cancel()
		srv.Close()
		s.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// get returns what the server answers.
func get(t testing.TB, address string, change func(*http.Request)) (status int, head http.Header, body string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	if change != nil {
		change(r)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp := must.Get(transport.RoundTrip(r))(t)
	defer resp.Body.Close()
	b := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header, string(b)
}

// several is a folder with two systems, one twice as slow as the other.
func several(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	series(t, filepath.Join(dir, "fast"), 12, made{"fast", "nats", 1, morning, 0, 0})
	series(t, filepath.Join(dir, "slow"), 5, made{"slow", "kafka", 2, morning.Add(time.Hour), 0, 0})
	search := filepath.Join(dir, "search")
	text := `{"schema":"weir.capacity/v1","promise":["send.p99 <= 5ms"],"probes":[{"rate_per_s":1000,"judgement":"passed","dir":"01"}],"answer":{"pass_per_s":1000,"fail_per_s":1100,"stop":"found"}}`
	must.Do(t, errors.Join(os.Mkdir(search, 0o700), os.WriteFile(filepath.Join(search, "capacity.json"), []byte(text), 0o600)))
	return dir
}

// published writes the pages of dir and returns their folder.
func published(t testing.TB, dir string) (string, Published) { return publishedAs(t, dir, false) }

func publishedAs(t testing.TB, dir string, markdown bool) (string, Published) {
	t.Helper()
	x := must.Get(index.Open(t.Context(), dir, filepath.Join(t.TempDir(), "i")))(t)
	defer x.Close()
	site := filepath.Join(t.TempDir(), "site")
	said := must.Get(New(t.Context(), Options{Index: x, Weir: "devel", Log: slog.New(slog.DiscardHandler)}).Publish(t.Context(), site, markdown))(t)
	return site, said
}

// What has no page is named, with its folder.
func TestPublishNamesWhatItLeavesOut(t *testing.T) {
	dir := t.TempDir()
	made{"one", "nats", 1, morning, 0, 0}.write(t, filepath.Join(dir, "good"), 1)
	for file, text := range map[string]string{"half/result.json": `{"schema":"weir.result/v1",`, "newer/result.json": `{"schema":"weir.result/v9"}`, "cap/capacity.json": `{"schema":"weir.capacity/v9"}`} {
		must.Do(t, errors.Join(os.Mkdir(filepath.Join(dir, filepath.Dir(file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)))
	}
	locked := filepath.Join(dir, "locked")
	must.Do(t, os.Mkdir(locked, 0))
	want := []string{"half: ", "newer: result.json: written by a newer weir", "cap: capacity.json: schema"}
	if f, err := os.Open(locked); err != nil { // not root
		want = append([]string{"locked: permission denied"}, want...)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, said := published(t, dir)
	if said.Pages != 1 || len(said.Skipped) != len(want) {
		t.Fatalf("published %+v, want one page", said)
	}
	slices.Sort(want)
	slices.Sort(said.Skipped)
	for i, w := range want {
		if !strings.HasPrefix(said.Skipped[i], w) {
			t.Errorf("left out is %q, want %q", said.Skipped[i], w)
		}
	}
}

// A web host has only files.
func TestPublishedLinksResolve(t *testing.T) {
	dir := several(t)
	series(t, filepath.Join(dir, "alike"), 5, made{"slow", "kafka", 3, morning.Add(2 * time.Hour), 0, 0})
	must.Do(t, os.RemoveAll(filepath.Join(dir, "fast", "r12")))
	site, said := published(t, dir)
	if len(said.Skipped) > 0 || said.Left > 0 || said.Pages < 21+3+1+1 {
		t.Errorf("published %+v", said)
	}
	pages := 0
	err := filepath.WalkDir(site, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		pages++
		b, err := os.ReadFile(p)
		for _, m := range regexp.MustCompile(`(?:href|src|action)="([^"#]+)"`).FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), m[1])); err != nil {
				t.Errorf("%s leads to %s, which is not there", p, m[1])
			}
		}
		return err
	})
	if err != nil || pages != said.Pages+1 {
		t.Errorf("%d pages and the list, and there are %d files, %v", said.Pages, pages, err)
	}
	b := must.Get(os.ReadFile(filepath.Join(site, "index.html")))(t)
	for _, want := range []string{"<h2>Runs of a folder beside each other</h2>", "<h2>Systems</h2>", `href="history/nats-`, `href="run/fast-r01-`, "<h2>Searches for a capacity</h2>", `"driver":"kafka"`, "script-src 'sha256-"} {
		if !strings.Contains(html.UnescapeString(string(b)), want) {
			t.Errorf("the list lacks %q", want)
		}
	}
}

func TestPublishRejectsExistingFolder(t *testing.T) {
	x := must.Get(index.Open(t.Context(), several(t), filepath.Join(t.TempDir(), "i")))(t)
	defer x.Close()
	parent := t.TempDir()
	site := filepath.Join(parent, "site")
	must.Do(t, errors.Join(os.Mkdir(site, 0o700), os.WriteFile(filepath.Join(site, "mine"), nil, 0o600)))
	if _, err := New(t.Context(), Options{Index: x, Log: slog.New(slog.DiscardHandler)}).Publish(t.Context(), site, false); err == nil {
		t.Error("pages are written over a folder that is there")
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v; want the folder alone", left, err)
	}
}

func TestPageResponses(t *testing.T) {
	srv := serving(t, several(t), Options{})
	for name, c := range map[string]struct {
		path   string
		status int
		want   []string
		not    string
	}{
		"the list":                   {"/", 200, []string{"<p>17 runs, 1 search for a capacity. Times are UTC.", `href="/capacity?dir=search"`, `<a href="/?sort=p99">p99</a>`, `aria-sort="descending"><a href="/?sort=oldest">began</a>`, `href="/run?dir=slow%2Fr05"`, `value="nats"`, "300/s"}, "Next page"},
		"a filter":                   {"/?system=kafka", 200, []string{"<p>5 runs. ", `<option value="kafka" selected>`, `href="/history?system=kafka"`}, `value="fast/r01"`},
		"a search":                   {"/?q=SLOW+r02", 200, []string{"<p>1 run. "}, ""},
		"a condition":                {"/?q=driver:kafka+p99+%3E+200us+lost%3D0", 200, []string{"<p>5 runs. ", "History of these 5 runs"}, ""},
		"a condition of none":        {"/?q=p99%3C1us", 200, []string{"No run is like that."}, "<table"},
		"a wrong condition":          {"/?q=p99%3C1000", 400, []string{"&#34;p99&lt;1000&#34; is not a filter (a time with its unit, as 10ms)", `value="p99&lt;1000"`}, "No run is like that"},
		"a history of one":           {"/history?q=color:red", 400, []string{"driver:, server:"}, ""},
		"a search for nothing there": {"/?q=rabbit", 200, []string{"No run is like that."}, "<table"},
		"a run":                      {"/run?dir=fast/r01", 200, []string{`<svg class="chart"`, `<a href="/">All runs</a>`}, ""},
		"a run that is not there":    {"/run?dir=fast/r99", 404, []string{"there is no such run"}, ""},
		"a way out":                  {"/run?dir=" + url.QueryEscape("../../etc"), 404, []string{"there is no such run"}, ""},
		"a comparison":               {"/compare?a=fast&a=&b=slow&different=1", 200, []string{"Comparison of nats and kafka", "worse", `<a href="/run?dir=fast%2Fr01">fast/r01</a>`, `<a href="/run?dir=slow%2Fr05">`}, ""},
		"a comparison of unlike":     {"/compare?a=fast/r01&b=fast/r01", 200, []string{"it counts as one run only", "too few runs"}, "/tmp/"},
		"one side":                   {"/compare?a=fast", 400, []string{"side B has no run"}, ""},
		"a side that is not there":   {"/compare?a=fast&b=none", 404, []string{"none: there is no such run, and no run below it"}, ""},
		"an overlay":                 {"/overlay?a=fast/r01&b=slow/r01", 200, []string{"2 runs", "percentile by percentile", `<a href="/run?dir=fast%2Fr01">`, `<a href="/run?dir=slow%2Fr01">`}, ""},
		"an overlay of nothing":      {"/overlay", 400, []string{"no run is chosen"}, ""},
		"a history":                  {"/history?below=fast", 200, []string{"12 runs count", "History of 1 series"}, ""},
		"a history of few":           {"/history?system=kafka", 200, []string{"too few runs: these are 5"}, ""},
		"a capacity":                 {"/capacity?dir=search", 200, []string{"1,100/s did not"}, ""},
		"a capacity of a run":        {"/capacity?dir=fast/r01", 404, nil, ""},
		"nothing":                    {"/nothing", 404, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, head, body := get(t, srv.URL+c.path, nil)
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("the page lacks %q:\n%s", want, afterStyle(body))
				}
			}
			if c.not != "" && strings.Contains(body, c.not) {
				t.Errorf("the page has %q", c.not)
			}
			policy := head.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
				t.Errorf("the policy is %q", policy)
			}
		})
	}
}

func TestAListMarksABound(t *testing.T) {
	dir := t.TempDir()
	made{name: "outage", driver: "nats", slow: 1, at: morning, never: 60}.write(t, filepath.Join(dir, "outage"), 1)
	_, _, body := get(t, serving(t, dir, Options{}).URL+"/", nil)
	if marked, all := strings.Count(body, "&gt;= 11.7 s"), strings.Count(body, "11.7 s"); marked == 0 || marked != all {
		t.Errorf("%d of %d times 11.7 s is marked as a lower bound; want p99 and no unmarked one", marked, all)
	}
}

// A series is one row, with medians and sums, and so is a search. A link opens it, without scripts.
func TestASeriesIsOneRow(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		made{name: fmt.Sprint("x-", i), driver: "nats", slow: float64(1 + i), at: morning, repeat: i + 1}.write(t, filepath.Join(dir, "night", fmt.Sprint(i)), 1)
	}
	made{name: "probe", driver: "nats", slow: 1, at: morning}.write(t, filepath.Join(dir, "search", "01"), 7)
	text := `{"schema":"weir.capacity/v1","promise":["send.p99 <= 5ms"],"probes":[{"rate_per_s":1000,"judgement":"passed","dir":"01"}],"answer":{"pass_per_s":1000,"stop":"found"}}`
	must.Do(t, os.WriteFile(filepath.Join(dir, "search", "capacity.json"), []byte(text), 0o600))
	srv := serving(t, dir, Options{})
	_, _, body := get(t, srv.URL+"/", nil)
	rows := strings.Count(body, `<th scope="row"`)
	if rows != 2 || !strings.Contains(body, ">5 runs</a>") || !strings.Contains(body, ">1 runs</a>") || !strings.Contains(body, "kept 1,000/s") || !strings.Contains(body, `name="a" value="night"`) {
		t.Errorf("%d rows, want one of the series and one of the search:\n%s", rows, afterStyle(body))
	}
	if _, _, search := get(t, srv.URL+"/capacity?dir=search", nil); !strings.Contains(search, `<a href="/run?dir=search%2F01">01</a>`) {
		t.Errorf("the page of the search does not lead to its probe:\n%s", afterStyle(search))
	}
	at := regexp.MustCompile(`class="toggle" href="([^"]*night[^"]*)"`).FindStringSubmatch(body)
	if at == nil {
		t.Fatal("the row of the series does not open")
	}
	_, _, body = get(t, srv.URL+html.UnescapeString(at[1]), nil)
	if n := strings.Count(body, `class="inside"`); n != 5 || !strings.Contains(body, `href="/run?dir=night%2F3"`) {
		t.Errorf("%d runs inside of the open row, want 5", n)
	}
}

func TestAnEmptyFolderSaysSo(t *testing.T) {
	_, _, body := get(t, serving(t, t.TempDir(), Options{}).URL+"/", nil)
	site, _ := published(t, t.TempDir())
	index := must.Get(os.ReadFile(filepath.Join(site, "index.html")))(t)
	for _, page := range []string{body, string(index)} {
		if !strings.Contains(page, "There is no run here yet.") {
			t.Errorf("the page of no runs:\n%s", afterStyle(page))
		}
	}
}

// While weir reads a folder for the first time, the page does not say that it is empty, and loads itself again.
func TestAFirstVisitWaitsForTheList(t *testing.T) {
	x := must.Get(index.Open(t.Context(), several(t), ""))(t)
	defer x.Close()
	s := New(t.Context(), Options{Index: x, Log: slog.New(slog.DiscardHandler)})
	s.look.going = make(chan struct{}) // a look that does not end
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	for at, refresh := range map[string]string{"/": "1", "/?q=fast": ""} {
		status, head, body := get(t, srv.URL+at, nil)
		if status != 200 || head.Get("Refresh") != refresh || !strings.Contains(body, "weir is reading the folder: 0 runs read so far.") || strings.Contains(body, "There is no run here yet") || strings.Contains(body, "No run is like that") {
			t.Errorf("%s: status %d, refresh %q:\n%s", at, status, head.Get("Refresh"), afterStyle(body))
		}
	}
}

// What cannot be read is listed with the reason, and the rest is shown.
func TestUnreadableRunsSaySo(t *testing.T) {
	dir := t.TempDir()
	series(t, dir, 3, made{"r", "nats", 1, morning, 0, 0})
	for run, content := range map[string]string{"r01": `{"schema": "weir.result/v9"}`, "r02": `{"schema": "weir.result/v1",`} {
		must.Do(t, os.WriteFile(filepath.Join(dir, run, result.FileResult), []byte(content), 0o600))
	}
	begins(t, filepath.Join(dir, "now"))
	why := []string{"written by a newer weir", "cut short: it ends within its JSON", "result.json: line 1", "(copy the folder again from where weir wrote it)"}
	srv := serving(t, dir, Options{})
	site, said := published(t, dir)
	index, err := os.ReadFile(filepath.Join(site, "index.html"))
	if err != nil || said.Pages != 1 {
		t.Errorf("published %+v, %v; want the page of the one good run", said, err)
	}
	_, _, list := get(t, srv.URL+"/", nil)
	for _, page := range []string{string(index), list} {
		for _, want := range append(why, "running", "nats") {
			if !strings.Contains(page, want) {
				t.Errorf("the list lacks %q:\n%s", want, afterStyle(page))
			}
		}
	}
	for address, want := range map[string]string{
		"/run?dir=r01": why[0], "/run?dir=r02": why[1], "/run?dir=now": "This one is still running, or was killed.",
		"/compare?a=r03&b=r01": why[0], "/compare?a=r03&b=now": "", "/overlay?a=r03&a=r02": why[1], "/history": "too few runs",
	} {
		if status, _, body := get(t, srv.URL+address, nil); status == 200 && address != "/history" && address != "/run?dir=now" || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, and the page lacks %q:\n%s", address, status, want, afterStyle(body))
		}
	}
}

func afterStyle(body string) string {
	_, rest, _ := strings.Cut(body, "</style>")
	return rest[:min(len(rest), 4000)]
}

func TestAListHasPages(t *testing.T) {
	dir := t.TempDir()
	series(t, dir, perPage+1, made{"x", "nats", 1, morning, 0, 0})
	srv := serving(t, dir, Options{})
	_, _, first := get(t, srv.URL+"/?system=nats", nil)
	if !strings.Contains(first, "Rows 1 to 100 of 101: 101 runs") || !strings.Contains(first, `href="/?from=100&amp;system=nats">Next page`) {
		t.Errorf("the first page:\n%s", afterStyle(first))
	}
	_, _, second := get(t, srv.URL+"/?system=nats&from=100", nil)
	if !strings.Contains(second, "Rows 101 to 101 of 101: 101 runs") || !strings.Contains(second, `href="/?system=nats">Previous`) || strings.Contains(second, "Next page") {
		t.Errorf("the second page:\n%s", afterStyle(second))
	}
}

// When the page is reloaded.
func TestNewRunIsListed(t *testing.T) {
	dir := several(t)
	srv := serving(t, dir, Options{})
	made{"late", "nats", 1, morning, 0, 0}.write(t, filepath.Join(dir, "late"), 99)
	for range 100 {
		if _, _, body := get(t, srv.URL+"/?q=late", nil); strings.Contains(body, "<p>1 run. ") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("a new run was not listed in 5 s")
}

// hostile are texts that do harm where they are taken for markup.
var hostile = []string{
	`<script>document.title='owned'</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`,
	`</style><script>alert(1)</script>`, `{{.}}`, "\u202egnp.exe", "</title><script>alert(1)</script>",
}

// withoutOwnScript takes out of the page of a run its first script, where the policy names
// it by its hash, and what it computes with. A second one stays.
func withoutOwnScript(page string) string {
	const data = `<script type="application/json" id="weir-data">`
	m := regexp.MustCompile(`(?s)<script>("use strict".*?)</script>`).FindStringSubmatch(page)
	if m == nil {
		return page
	}
	sum := sha256.Sum256([]byte(m[1]))
	if !strings.Contains(html.UnescapeString(page), "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		return page
	}
	return strings.Replace(strings.Replace(page, m[0], "", 1), data, "", 1)
}

// All of a folder's contents are shown as text, on every page.
func TestHostileNamesAreInert(t *testing.T) {
	dir := t.TempDir()
	for i, name := range hostile {
		folder := filepath.Join(dir, strings.ReplaceAll(name, "/", "∕"))
		made{name, name, 1, morning, 0, 0}.write(t, folder, uint64(i))
	}
	srv := serving(t, dir, Options{})
	allowed := regexp.MustCompile(`<(script|img|iframe|object|embed|link|base)\b|\son[a-z]+\s*=\s*["'a-z]|(href|src|action|formaction)="(javascript|data|vbscript):`)
	pages := []string{"/", "/?q=" + url.QueryEscape(hostile[0]), "/?below=" + url.QueryEscape(hostile[1]), "/compare?a=" + url.QueryEscape(hostile[1]) + "&b=x"}
	for _, name := range hostile {
		q := url.Values{"dir": {strings.ReplaceAll(name, "/", "∕")}}
		pages = append(pages, "/run?"+q.Encode(), "/overlay?"+url.Values{"a": {q.Get("dir")}}.Encode())
	}
	for _, page := range pages {
		_, _, body := get(t, srv.URL+page, nil)
		tags := regexp.MustCompile(`<[a-zA-Z][^>]*>`).FindAllString(withoutOwnScript(body), -1)
		if len(tags) < 10 {
			t.Errorf("%s has %d tags: is it a page?", page, len(tags))
		}
		for _, tag := range tags {
			// The value of an attribute is text: only its name counts.
			if found := allowed.FindString(regexp.MustCompile(`="[^"]*"`).ReplaceAllStringFunc(tag, func(v string) string {
				if strings.HasPrefix(v, `="javascript:`) {
					return v
				}
				return `=""`
			})); found != "" && !strings.Contains(tag, `value="javascript:`) {
				t.Errorf("%s has %q in %q", page, found, tag)
			}
		}
	}
}

func TestUnknownHostNamesAreRejected(t *testing.T) {
	dir := several(t)
	open := serving(t, dir, Options{Names: []string{"results.example"}})
	for host, want := range map[string]int{"": 200, "localhost:80": 200, "[::1]:80": 200, "10.1.2.3": 200, "results.example": 200, "evil.example": 421, "evil.example:8080": 421} {
		status, _, body := get(t, open.URL, func(r *http.Request) {
			if host != "" {
				r.Host = host
			}
		})
		if status != want || want != 200 && strings.Contains(body, "fast") {
			t.Errorf("called %q: status %d, want %d", host, status, want)
		}
	}
	// A page of others may link to this server. It may not ask in the reader's name, and take the places of those who follow runs.
	for mode, want := range map[string]int{"navigate": 200, "no-cors": 403, "cors": 403} {
		status, _, _ := get(t, open.URL, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", mode)
		})
		if status != want {
			t.Errorf("a page of others, %s: status %d, want %d", mode, status, want)
		}
	}
	closed := serving(t, dir, Options{Token: "letmein"})
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"nothing":        {"/", nil, 401},
		"a wrong token":  {"/?token=letmeout", nil, 401},
		"a header":       {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer letmein") }, 200},
		"a wrong header": {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer letmei") }, 401},
		"a name that is not its own": {"/", func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Authorization", "Bearer letmein")
		}, 421},
		"the token at such a name": {"/?token=letmein", func(r *http.Request) { r.Host = "evil.example:8080" }, 421},
		"the token, cooked":        {"/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: sessionName, Value: "letmein"}) }, 401},
	} {
		if status, _, body := get(t, closed.URL+c.path, c.change); status != c.status || status != 200 && strings.Contains(body, "fast") {
			t.Errorf("%s: status %d, want %d", name, status, c.status)
		}
	}
	_, head, body := get(t, closed.URL+"/run?dir=fast%2Fr01&token=letmein", nil)
	if !strings.Contains(body, `href="/run?dir=fast%2Fr01"`) || strings.Contains(body, "letmein") {
		t.Errorf("the page that welcomes a token:\n%s", afterStyle(body))
	}
	cookie, err := http.ParseSetCookie(head.Get("Set-Cookie"))
	if err != nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, "letmein") {
		t.Fatalf("the cookie is %v, %v", cookie, err)
	}
	if status, _, _ := get(t, closed.URL+"/run?dir=fast%2Fr01", func(r *http.Request) { r.AddCookie(cookie) }); status != 200 {
		t.Errorf("with the cookie: status %d", status)
	}
}

func TestAServerWritesNothingIntoTheFolder(t *testing.T) {
	dir := several(t)
	before := tree(t, dir)
	srv := serving(t, dir, Options{})
	for _, page := range []string{"/", "/run?dir=fast/r01", "/compare?a=fast&b=slow&different=1", "/history?below=fast", "/overlay?a=slow"} {
		get(t, srv.URL+page, nil)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the folder was\n%s and is\n%s", before, after)
	}
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		_, _ = fmt.Fprintln(&b, p, st.Size(), st.ModTime())
		return err
	}))
	return b.String()
}
