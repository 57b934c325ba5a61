package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// repeated is a folder of a suite with two runs, of which one is no longer there, and one that gave no figures.
func repeated(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	made{"one-nats", "nats", 1, morning, 0, 0}.write(t, filepath.Join(dir, "again", "one-nats"), 1)
	made{"apart", "nats", 1, morning, 0, 0}.write(t, filepath.Join(dir, "apart"), 2)
	const text = `{"schema":"weir.suite/v1","suite":{"name":"small","title":"An <article>","source":"a shelf"},"scale":1,"planned":4,"started_at":"2026-03-04T05:06:07Z","rows":[
{"row":"one","system":"nats","driver":"nats","dir":"one-nats","verdict":"valid","differs":[],"figures":[{"figure":"e2e.p50","unit":"ns","value":2000000,"published":{"value":1000000,"text":"1 ms"}}]},
{"row":"two","system":"nats","driver":"nats","dir":"gone","verdict":"suspect","differs":[],"figures":[{"figure":"e2e.p50","unit":"ns","value":3000000}]},
{"row":"one","system":"../apart","driver":"chan","dir":"../../etc/passwd","verdict":"valid","differs":[],"figures":[{"figure":"e2e.p50","unit":"ns","value":1}]}]}`
	must.Do(t, os.WriteFile(filepath.Join(dir, "again", "suite.json"), []byte(text), 0o600))
	return dir
}

// A suite is one row, which stands for the runs below it and leads to its page. The page leads to those runs that
// are there.
func TestASuiteIsOneRow(t *testing.T) {
	srv := serving(t, repeated(t), Options{})
	_, _, list := get(t, srv.URL+"/", nil)
	if rows := strings.Count(list, `<th scope="row"`); rows != 2 || !strings.Contains(list, `<a href="/suite?dir=again">suite small</a>`) || !strings.Contains(list, "<p>2 runs, 1 suite. ") || strings.Contains(list, "one-nats") {
		t.Errorf("%d rows, want one of the suite and one of the run apart:\n%s", rows, afterStyle(list))
	}
	if _, _, open := get(t, srv.URL+"/?open=again", nil); !strings.Contains(open, `href="/run?dir=again%2Fone-nats"`) {
		t.Errorf("the row of the suite does not open:\n%s", afterStyle(open))
	}
	status, _, page := get(t, srv.URL+"/suite?dir=again", nil)
	if status != 200 || !strings.Contains(page, `<a href="/run?dir=again%2Fone-nats">VALID</a>`) || strings.Count(page, `href="/run?`) != 1 || !strings.Contains(page, "nats, e2e.p50: 2.00 times<") {
		t.Errorf("status %d; the page of the suite:\n%s", status, afterStyle(page))
	}
	if n := strings.Count(page, ">one</h2>"); n != 1 {
		t.Errorf("a row that ran in two turns has %d tables", n)
	}
	for at, want := range map[string]int{"/suite?dir=apart": 404, "/suite?dir=none": 404, "/suite": 404} {
		if status, _, _ := get(t, srv.URL+at, nil); status != want {
			t.Errorf("%s: status %d, want %d", at, status, want)
		}
	}
}

func TestPublishedSuiteLeadsToItsRuns(t *testing.T) {
	site, said := published(t, repeated(t))
	if said.Pages != 3 || len(said.Skipped) > 0 {
		t.Errorf("published %+v, want two runs and a suite", said)
	}
	if page := fileOf(t, site, "index.html"); !strings.Contains(page, "<h2>Suites</h2>") || !strings.Contains(page, "small: An &lt;article&gt;</a>") {
		t.Errorf("the list:\n%s", afterStyle(page))
	}
	page := fileOf(t, site, "suite/again.html")
	if !strings.Contains(page, `<a href="../run/again-one-nats-`+sumOf("again/one-nats")+`.html">VALID</a>`) || strings.Count(page, `href="../run/`) != 1 {
		t.Errorf("the page of the suite:\n%s", afterStyle(page))
	}
}

// docs/results has the tables of suites without their runs, and other files that are no folders of runs.
func TestStoredResultsArePublished(t *testing.T) {
	site, said := published(t, "../../docs/results")
	stored, err := filepath.Glob("../../docs/results/suites/*/suite.json")
	if err != nil || len(stored) == 0 || said.Pages != len(stored) || len(said.Skipped) > 0 {
		t.Fatalf("published %+v, %v; want a page for each of %d suites", said, err, len(stored))
	}
	page := fileOf(t, site, "index.html")
	if strings.Count(page, `href="suite/`) != len(stored) || strings.Contains(page, "There is no run") || strings.Contains(page, "0/s") {
		t.Errorf("the list:\n%s", afterStyle(page))
	}
}

// A suite of another version, or half of one, is listed with the reason.
func TestUnreadableSuitesSaySo(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"half/suite.json": `{"schema":"weir.suite/v1",`, "newer/suite.json": `{"schema":"weir.suite/v9"}`, "empty/suite.json": `{"schema":"weir.suite/v1"}`} {
		must.Do(t, errors.Join(os.Mkdir(filepath.Join(dir, filepath.Dir(file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)))
	}
	srv := serving(t, dir, Options{})
	_, _, list := get(t, srv.URL+"/", nil)
	for at, want := range map[string]string{"half": "suite.json: cut short: it ends within its JSON", "newer": "suite.json: schema"} {
		status, _, page := get(t, srv.URL+"/suite?dir="+at, nil)
		if status != 422 || !strings.Contains(page, want) || strings.Contains(page, dir) || !strings.Contains(list, want) {
			t.Errorf("%s: status %d\n%s", at, status, afterStyle(page))
		}
	}
	if status, _, page := get(t, srv.URL+"/suite?dir=empty", nil); status != 200 {
		t.Errorf("a suite without rows: status %d\n%s", status, afterStyle(page))
	}
	if _, said := published(t, dir); said.Pages != 1 || len(said.Skipped) != 2 {
		t.Errorf("published %+v, want the page of the one that can be read, and two reasons", said)
	}
}

// fileOf reads a file of a site.
func fileOf(t *testing.T, site, name string) string {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(site, filepath.FromSlash(name))))(t)
	return string(b)
}

// sumOf is how the address of a name ends.
func sumOf(name string) string {
	at := addressed(name)
	return at[strings.LastIndex(at, "-")+1:]
}
