package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A goingOn is a run in progress that a test writes second by second.
type goingOn struct {
	t      testing.TB
	folder *result.Folder
	dir    string
	at     int64
}

// begins creates the folder of a run in progress.
func begins(t testing.TB, dir string) *goingOn {
	t.Helper()
	f := must.Get(result.Create(dir))(t)
	g := &goingOn{t: t, folder: f, dir: dir}
	must.Do(t, errors.Join(f.StartIntervals(time.Now(), "devel"), os.WriteFile(filepath.Join(dir, result.FileScenario), []byte("name: going\nsystem:\n  driver: chan\nload:\n  rate: 1000/s\nmeasure: 1m\n"), 0o600)))
	t.Cleanup(func() { _ = f.Close() })
	return g
}

// second writes a second with n messages that took so long each.
func (g *goingOn) second(n uint64, ns int64) {
	g.t.Helper()
	in := &measure.Interval{From: g.at, To: g.at + 1e9}
	for _, k := range []measure.Kind{measure.SendService, measure.SendResponse, measure.E2EService, measure.E2EResponse} {
		in.Kinds[k][measure.Measure].Add(ns, n)
	}
	g.at += 1e9
	if err := g.folder.AppendInterval(in); err != nil {
		g.t.Fatal(err)
	}
}

// ends writes its result.
func (g *goingOn) ends() {
	g.t.Helper()
	r := &result.Result{Run: result.Run{Name: "going", Loop: result.LoopOpen, StartedAt: morning.Format(time.RFC3339Nano)}, System: result.System{Driver: "chan"}, Verdict: result.Verdict{Status: result.Valid}, Events: g.folder.Events()}
	if err := g.folder.WriteResult(r); err != nil {
		g.t.Fatal(err)
	}
}

// A stream is what a server sends to a page.
type stream struct {
	t    testing.TB
	scan *bufio.Scanner
	end  context.CancelFunc
}

func follows(t testing.TB, address string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, address, nil))(t)
	resp := must.Get((&http.Transport{DisableKeepAlives: true}).RoundTrip(r))(t)
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("status %d: %s", resp.StatusCode, b)
	}
	return &stream{t, bufio.NewScanner(resp.Body), cancel}
}

// next returns the next news, and false at the stream's end.
func (s *stream) next() (news, bool) {
	s.t.Helper()
	begun := false
	for s.scan.Scan() {
		line := s.scan.Text()
		begun = begun || line == "event: begin"
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "{}" {
			var n news
			if err := json.Unmarshal([]byte(data), &n); err != nil {
				s.t.Fatalf("%q: %v", data, err)
			}
			return n, true
		}
	}
	return news{}, false
}

// points are those that come until n are there, or the run ends.
func (s *stream) points(n int) (all []point, ended bool) {
	s.t.Helper()
	for len(all) < n {
		x, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended after %d points, want %d", len(all), n)
		}
		all = append(all, x.Points...)
		if x.Ended {
			return all, true
		}
	}
	return all, false
}

func TestPageFollowsRunToEnd(t *testing.T) {
	dir := t.TempDir()
	g := begins(t, filepath.Join(dir, "now"))
	srv := serving(t, dir, Options{})
	first := follows(t, srv.URL+"/follow?dir=now")
	for i := range 4 {
		g.second(uint64(100*(i+1)), 1000)
	}
	got, _ := first.points(3) // the fourth second may still grow
	want := "1: 100/s, 2: 200/s, 3: 300/s"
	if text := formatted(got); text != want {
		t.Errorf("the page was told %q, want %q", text, want)
	}
	if p := got[0]; p.Of != "e2e response" || p.P99 == nil || *p.P99 < 990 || *p.P99 > 1010 || p.Phase != "measure" {
		t.Errorf("the first point is %+v", p)
	}
	// A reloaded page gets all of it again.
	again, _ := follows(t, srv.URL+"/follow?dir=now").points(3)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("after a reload (-before +after):\n%s", diff)
	}
	must.Do(t, g.folder.AppendEvent(result.Event{TNS: 3e9, Kind: "hiccup", Text: "a pause\u202e", Count: 2}))
	g.ends()
	var events []eventText
	for {
		x, ok := first.next()
		if !ok {
			t.Fatal("the page was not told that the run has ended")
		}
		got, events = append(got, x.Points...), append(events, x.Events...)
		if x.Ended {
			break
		}
	}
	if text := formatted(got); text != want+", 4: 400/s" {
		t.Errorf("in all the page was told %q", text)
	}
	if status, head, _ := get(t, srv.URL+"/live?dir=now", nil); status != 303 || head.Get("Location") != "/run?dir=now" {
		t.Errorf("after the end the live page answers %d, %s", status, head.Get("Location"))
	}
	if len(events) != 1 || events[0].Kind != "hiccup" || !strings.HasPrefix(events[0].Text, "the host stood still: a pause") || strings.Contains(events[0].Text, "\u202e") || events[0].N != 2 {
		t.Errorf("events %+v", events)
	}
}

// A killed run never ends. Its page says so, and that of a run whose folder goes ends.
func TestPageOfKilledRun(t *testing.T) {
	dir := t.TempDir()
	g := begins(t, filepath.Join(dir, "now"))
	var sum result.Progress
	for n := range 100 { // more than what is read of the file's end
		iv := &measure.Interval{From: int64(n) * 1e9, To: int64(n+1) * 1e9}
		iv.Counters[measure.Measure] = measure.Counters{Scheduled: 1000, Sent: 1000, Confirmed: 990, Received: 980, Failed: 1}
		must.Do(t, g.folder.AppendProgress(sum.Add(iv)))
	}
	must.Do(t, g.folder.AppendEvent(result.Event{TNS: 3e9, Kind: "injected", Text: "kill server-1", Count: 1}))
	files := must.Get(os.ReadDir(g.dir))(t)
	for _, f := range files {
		must.Do(t, os.Chtimes(filepath.Join(g.dir, f.Name()), time.Time{}, time.Now().Add(-time.Minute)))
	}
	srv := serving(t, dir, Options{})
	for _, want := range []string{"it waits, or was killed", "At 100 s: offered 100,000, confirmed 99,000, delivered 98,000, failed 100, none known to be lost."} {
		if _, _, body := get(t, srv.URL+"/live?dir=now", nil); !strings.Contains(body, want) {
			t.Errorf("the page does not say %q: %s", want, afterStyle(body))
		}
	}
	s := follows(t, srv.URL+"/follow?dir=now")
	var quiet float64
	var events []eventText
	for quiet == 0 || len(events) == 0 {
		x, ok := s.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		quiet, events = max(quiet, x.Quiet), append(events, x.Events...)
	}
	if quiet < 55 || quiet > 120 {
		t.Errorf("its files are quiet for %g s, want a minute", quiet)
	}
	if want := (eventText{T: 3, Kind: "injected", Text: "fault: kill server-1", Name: "kill server-1", N: 1}); events[0] != want {
		t.Errorf("the fault is %+v, want %+v", events[0], want)
	}
	must.Do(t, os.RemoveAll(g.dir))
	for ok := true; ok; {
		if _, ok = s.next(); s.t.Context().Err() != nil {
			t.Fatal("the stream continues without the folder")
		}
	}
}

// What histograms do not say stands in live.jsonl. An objective about a percentile counts the measured window.
func TestPageShowsCountsAndObjectives(t *testing.T) {
	dir := t.TempDir()
	g := begins(t, filepath.Join(dir, "now"))
	must.Do(t, os.WriteFile(filepath.Join(g.dir, result.FileScenario), []byte("name: going\nwarmup: 2s\nmeasure: 1m\nslo: [\"e2e.p99 <= 5ms\", \"lost == 0\", \"e2e.service.p99 <= 500us\"]\n"), 0o600))
	srv := serving(t, dir, Options{})
	if status, _, body := get(t, srv.URL+"/live?dir=now", nil); status != 200 || !strings.Contains(body, `data-warmup="2" data-length="60"`) || !strings.Contains(html.UnescapeString(body), "lost == 0") {
		t.Errorf("status %d: %s", status, body)
	}
	s := follows(t, srv.URL+"/follow?dir=now")
	var sum result.Progress
	iv := &measure.Interval{To: 1e9, Backlog: measure.Backlog{{Missing: 9, Passed: 4}}}
	iv.Counters[measure.Measure].Scheduled, iv.Counters[measure.Measure].Failed, iv.Counters[measure.Measure].Dropped = 100, 3, 2
	must.Do(t, g.folder.AppendProgress(sum.Add(iv)))
	var counts []counted
	var kept []objective
	for ended := false; !ended; {
		x, ok := s.next()
		if !ok {
			t.Fatal("the stream ended before the run")
		}
		if len(x.Counts) > 0 { // the end removes them
			g.second(100, 1_000_000)
			g.ends()
		}
		counts, ended = append(counts, x.Counts...), x.Ended
		if len(x.Kept) > 0 {
			kept = x.Kept
		}
	}
	if want := []counted{{T: 1, Offered: 100, Failed: 3, Dropped: 2, Lost: 4, Backlog: 5}}; !slices.Equal(counts, want) {
		t.Errorf("counts %+v, want %+v", counts, want)
	}
	if len(kept) != 2 || kept[0].Text != "e2e.p99 <= 5ms" || !kept[0].Kept || kept[1].Kept || kept[0].NS < 990_000 || kept[0].NS > 1_010_000 {
		t.Errorf("objectives %+v", kept)
	}
}

func formatted(points []point) string {
	var parts []string
	for _, p := range points {
		parts = append(parts, fmt.Sprintf("%.0f: %.0f/s", p.T, *p.Sent))
	}
	return strings.Join(parts, ", ")
}

// However often the files change.
func TestPageUpdatesAreRateLimited(t *testing.T) {
	dir := t.TempDir()
	g := begins(t, filepath.Join(dir, "now"))
	srv := serving(t, dir, Options{})
	began := time.Now()
	s := follows(t, srv.URL+"/follow?dir=now")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 300 {
			g.second(10, 1000)
			time.Sleep(5 * time.Millisecond)
		}
		g.ends()
	}()
	times := 0
	for {
		x, ok := s.next()
		if !ok {
			t.Fatal("the stream ended before the run")
		}
		times++
		if x.Ended {
			break
		}
	}
	<-ended
	// The end is sent at once: one more.
	if most := int(time.Since(began)/updateEvery) + 1; times > most {
		t.Errorf("told %d times in %v, want at most %d", times, time.Since(began), most)
	}
}

func TestFollowingLongRunStartsAtLatestPart(t *testing.T) {
	dir := t.TempDir()
	g := begins(t, filepath.Join(dir, "now"))
	for range mostPoints + 100 {
		g.second(10, 1000)
	}
	g.ends()
	srv := serving(t, dir, Options{})
	got, ended := follows(t, srv.URL+"/follow?dir=now").points(mostPoints + 200)
	if last := got[len(got)-1]; !ended || last.T != mostPoints+100 {
		t.Errorf("the last point is %+v, and the end was told: %t", last, ended)
	}
}

func TestAbsentRunsAreNotFollowed(t *testing.T) {
	srv := serving(t, several(t), Options{})
	for _, path := range []string{"/follow?dir=none", "/follow?dir=..", "/live?dir=none", "/start"} {
		if status, _, _ := get(t, srv.URL+path, nil); status != 404 {
			t.Errorf("%s: status %d, want 404", path, status)
		}
	}
}

func TestReadersOfRunsAreBounded(t *testing.T) {
	dir := t.TempDir()
	begins(t, filepath.Join(dir, "now"))
	srv := serving(t, dir, Options{})
	for range mostWatching {
		follows(t, srv.URL+"/follow?dir=now")
	}
	if status, _, body := get(t, srv.URL+"/follow?dir=now", nil); status != 503 || !strings.Contains(body, "16 pages follow runs already") {
		t.Errorf("one reader more gets status %d: %s", status, body)
	}
}

// eventOf is an event with a text of a stranger.
func eventOf(text string) result.Event { return result.Event{TNS: 1e9, Kind: text, Text: text} }
