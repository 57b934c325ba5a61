package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// The page in a run's folder leads to the files there, and that of a series to its runs. A page elsewhere
// leads nowhere.
func TestPagesLeadToFilesAndRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"result.json", `a"><script>.log`, result.FileReport} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := run(t, "jetstream-500")
	e.Dir = `out/a b"#?`
	var pages Pages
	one, err := pages.Run(e.Entry, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pages.Runs([]result.Entry{e.Entry, e.Entry}, 0)
	if err != nil {
		t.Fatal(err)
	}
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
