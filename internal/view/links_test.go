package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/result"
)

// A page that is written above its runs leads to them, and to no run elsewhere.
func TestPageOfAFileLeadsToRunsBelowIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, run := range []string{`pages/s/a b"#?`, "pages/s/bare", "apart"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, run), 0o755))
		if run == "pages/s/bare" {
			continue
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, run, result.FileReport), nil, 0o644))
	}
	link := LinksFrom("pages/x.html", func(name string) string { return filepath.Join(dir, name) })
	for run, want := range map[string]string{`pages/s/a b"#?`: "./s/a%20b%22%23%3F/report.html", "pages/s/bare": "", "apart": ""} {
		if got := link(run); got != want {
			t.Errorf("%s leads to %q; want %q", run, got, want)
		}
	}
	search := &Search{Dir: "pages/s", Report: &capacity.Report{Probes: []capacity.Probed{{RatePerS: 1, Dir: `a b"#?`}, {RatePerS: 2, Dir: "bare"}}}}
	e := run(t, "noop-1000")
	e.Dir = `pages/s/a b"#?`
	page := rendered(t, OverviewHTML, []Entry{e}, Options{Searches: []*Search{search}, Link: link})
	mentions(t, page, `<a href="./s/a%20b%22%23%3F/report.html">a b&#34;#?</a>`, `data-name="run">bare<`, "the page of this run</a>")
	if _, err := look(page); err != nil {
		t.Error(err)
	}
	if before, _, _ := strings.Cut(page, "<details>"); strings.Count(before, "<table") != 1 {
		t.Error("beside the probes, the runs of a search are a table again")
	}
}

// The page in a run's folder leads to the files there, and that of a series to its runs. A page elsewhere
// leads nowhere.
func TestPagesLeadToFilesAndRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"result.json", `a"><script>.log`, result.FileReport} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	e := run(t, "jetstream-500")
	e.Dir = `out/a b"#?`
	var pages Pages
	one := must.Get(pages.Run(e.Entry, dir, nil))(t)
	all := must.Get(pages.Runs([]result.Entry{e.Entry, e.Entry}, 0))(t)
	mentions(t, string(one), `<a href="./result.json">result.json</a>`, `<a href="./a%22%3E%3Cscript%3E.log">a&#34;&gt;&lt;script&gt;.log</a>`)
	mentions(t, string(all), `<a href="./a%20b%22%23%3F/report.html">the page of this run</a>`)
	if strings.Contains(string(one), `href="./report.html"`) {
		t.Error("the page leads to itself")
	}
	for _, page := range []string{string(one), string(all)} {
		if _, err := look(page); err != nil {
			t.Error(err)
		}
	}
	for _, page := range []string{html1(t, e, Options{}), htmlOf(t, []Entry{e, e})} {
		if strings.Contains(page, `href="./`) {
			t.Error("a page elsewhere has a link to a file")
		}
	}
}
