package serve

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// rewrite replaces a text in the results of the runs below dir.
func rewrite(t *testing.T, dir, was, is string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", result.FileResult))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, bytes.Replace(b, []byte(was), []byte(is), 1), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Folders beside each other are compared with those in which the same was measured, six on a page. Each page says what
// it leaves out, and the list what no page has.
func TestSiblingsAreComparedByWhatWasMeasured(t *testing.T) {
	dir := t.TempDir()
	runs := map[string]int{"few": 2, "persisted": 4, "other": 4, "alone": 4}
	for i := range 7 {
		runs[fmt.Sprint("same-", i+1)] = 4
	}
	for name, n := range runs {
		series(t, filepath.Join(dir, name), n, made{name, "nats", 1, morning.Add(time.Duration(len(name)) * time.Hour), 0, 0})
	}
	for _, name := range []string{"persisted", "other"} {
		rewrite(t, filepath.Join(dir, name), `"guarantee": "received"`, `"guarantee": "persisted"`)
	}
	rewrite(t, filepath.Join(dir, "alone"), `"mode": "stream"`, `"mode": "produce"`)
	site, said := published(t, dir)
	if len(said.Skipped) > 0 {
		t.Errorf("left out: %q", said.Skipped)
	}
	list := fileOf(t, site, "index.html")
	_, list, _ = strings.Cut(list, "<h2>Comparisons</h2>")
	links := regexp.MustCompile(`<a href="(compare/[^"]+)">([^<]+)</a>`).FindAllStringSubmatch(list, -1)
	want := []string{"other, persisted", "same-1, same-2, same-3, same-4, same-5, same-6", "same-1, same-7"}
	var got []string
	for _, l := range links {
		got = append(got, l[2])
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("compared are %q, want %q", got, want)
	}
	for _, w := range []string{"<li>alone: guarantee is received (other: persisted), mode is produce (other: stream)</li>", "<li>few: 2 runs (a side needs 4)</li>"} {
		if !strings.Contains(list, w) {
			t.Errorf("the list lacks %q:\n%s", w, list[:min(len(list), 3000)])
		}
	}
	if n := strings.Count(list[strings.Index(list, "<h2>Not compared"):], "<li>"); n != 2 {
		t.Errorf("%d folders are on no page, want 2", n)
	}
	page := fileOf(t, site, links[1][1])
	if !strings.Contains(page, `href="../run/same-2-r01-`) {
		t.Error("the comparison does not lead to its runs")
	}
	_, page, _ = strings.Cut(page, ">left out of this comparison</h2>")
	page = regexp.MustCompile(`<[^>]+>`).ReplaceAllString(page, "") // words explain themselves
	for _, w := range []string{"same-7: compared with same-1 on another page", "other: guarantee is persisted (same-1: received)", "few: 2 runs (a side needs 4)"} {
		if !strings.Contains(page, w) {
			t.Errorf("the comparison lacks %q:\n%s", w, page[:min(len(page), 1000)])
		}
	}
}

// Where no folder can be compared, the list says why.
func TestNoComparisonHasReasons(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		series(t, filepath.Join(dir, name), 4, made{name, "nats", 1, morning, 0, 0})
		rewrite(t, filepath.Join(dir, name), `"status": "valid"`, `"status": "invalid"`)
	}
	site, _ := published(t, dir)
	list := fileOf(t, site, "index.html")
	for _, w := range []string{"<h2>Not compared</h2>", "<li>a: 0 runs of 4 can be used (a side needs 4)</li>", "<li>b: "} {
		if !strings.Contains(list, w) {
			t.Errorf("the list lacks %q:\n%s", w, afterStyle(list))
		}
	}
}

func TestPublishSaysWhatIsCapped(t *testing.T) {
	dir := t.TempDir()
	for i := range mostPages + 2 {
		search := filepath.Join(dir, fmt.Sprint(i))
		text := `{"schema":"weir.capacity/v1","promise":["send.p99 <= 5ms"],"answer":{"stop":"found"}}`
		must.Do(t, errors.Join(os.Mkdir(search, 0o700), os.WriteFile(filepath.Join(search, "capacity.json"), []byte(text), 0o600)))
	}
	if _, said := published(t, dir); said.Pages != mostPages || fmt.Sprint(said.Skipped) != "[searches: 2 more (at most 200 have a page)]" {
		t.Errorf("published %+v", said)
	}
}

// README.md leads to the pages of runs, searches and suites, and these to each other. Hostile texts are no markup.
func TestPublishedMarkdownLeadsToItsPages(t *testing.T) {
	dir := repeated(t)
	made{"probe", "nats", 1, morning, 0, 0}.write(t, filepath.Join(dir, "search", "01"), 7)
	text := `{"schema":"weir.capacity/v1","promise":["send.p99 <= 5ms"],"probes":[{"rate_per_s":1000,"judgement":"passed","dir":"01","of":"send","p99_ns":2000000}],"answer":{"pass_per_s":1000,"stop":"found"}}`
	must.Do(t, os.WriteFile(filepath.Join(dir, "search", "capacity.json"), []byte(text), 0o600))
	made{"[a](http://x) <b>|", "nats", 1, morning, 0, 0}.write(t, filepath.Join(dir, "README"), 8)
	site, said := publishedAs(t, dir, true)
	if said.Pages != 6 || len(said.Skipped) > 0 {
		t.Errorf("published %+v, want four runs, a search and a suite", said)
	}
	files := must.Get(os.ReadDir(site))(t)
	for _, f := range files {
		for _, m := range regexp.MustCompile(`[^\\]\]\(([^)]+)\)`).FindAllStringSubmatch(fileOf(t, site, f.Name()), -1) {
			if _, err := os.Stat(filepath.Join(site, m[1])); err != nil {
				t.Errorf("%s leads to %s, which is not there", f.Name(), m[1])
			}
		}
	}
	for name, want := range map[string]string{
		"README.md": `[\[a\](http://x) \<b>\|](README-` + sumOf("README") + ".md)", "again.md": "[VALID](again-one-nats-" + sumOf("again/one-nats") + ".md)",
		"search.md": "[01](search-01-" + sumOf("search/01") + ".md)", "again-1.svg": "<svg ",
	} {
		if page := fileOf(t, site, name); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q:\n%s", name, want, page[:min(len(page), 3000)])
		}
	}
}
