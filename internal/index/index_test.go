package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// ran writes the folder of a completed run.
func ran(t testing.TB, dir, name, driver string, at time.Time, status result.Status) {
	t.Helper()
	p99 := result.Percentile{P: 99, NS: int64(len(name)) * 1000, Supported: true, AtLeast: name == "short"}
	r := &result.Result{
		Run:        result.Run{ID: name, Name: name, Series: "nightly", StartedAt: at.Format(time.RFC3339Nano), Loop: result.LoopOpen},
		System:     result.System{Driver: driver, Server: result.Server{Name: "server", Version: "1.2"}, Guarantee: "received"},
		Verdict:    result.Verdict{Status: status, SLO: []result.SLO{{Expr: "lost == 0", Status: result.Pass}, {Expr: "send.p99 <= 1us", Status: result.Fail}}},
		Throughput: result.Throughput{OfferedPerS: 1000, ConfirmedPerS: 990},
		Latency:    result.Latency{Send: result.Send{Response: &result.Dist{Count: 10, Percentiles: []result.Percentile{{P: 50, NS: 5, Supported: true}, p99, {P: 99.9, NS: 7}}}}},
	}
	f := must.Get(result.Create(dir))(t)
	must.Do(t, errors.Join(f.WriteResult(r), f.Close()))
}

// opened opens an up-to-date index of dir.
func opened(t testing.TB, dir, file string) *Index {
	t.Helper()
	x := must.Get(Open(t.Context(), dir, file))(t)
	t.Cleanup(func() { _ = x.Close() })
	must.Get(x.Sync(t.Context(), nil))(t)
	return x
}

// dirs returns the folders that a query finds.
func dirs(t *testing.T, x *Index, q Query) []string {
	t.Helper()
	l := must.Get(x.List(t.Context(), q))(t)
	out := []string{}
	for _, r := range l.Rows {
		out = append(out, r.Dir)
	}
	if q.Most == 0 && l.Total != len(out) {
		t.Errorf("%+v: the total is %d of %d rows", q, l.Total, len(out))
	}
	return out
}

var morning = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// some returns a folder with runs of all kinds.
func some(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	ran(t, filepath.Join(dir, "nights", "a"), "short", "nats", morning, result.Valid)
	ran(t, filepath.Join(dir, "nights", "b"), "a longer name", "kafka", morning.Add(time.Hour), result.Invalid)
	ran(t, filepath.Join(dir, "lone"), "100%_sure", "nats", morning.Add(2*time.Hour), result.Suspect)
	for name, text := range map[string]string{
		"broken/result.json":   "{",
		"killed/scenario.yaml": "name: \"cut off\"\nsystem:\n  driver: redis\n", "killed/intervals.hlog": "#[Schema: weir.intervals/v1]\n",
		"search/capacity.json":            `{"schema":"weir.capacity/v1","promise":["send.p99 <= 5ms"],"answer":{"pass_per_s":1000,"fail_per_s":1100,"stop":"found"}}`,
		".hidden/result.json":             "{}",
		"one/two/three/four/five/not.txt": "",
		"plain/notes.txt":                 "not a run",
	} {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	return dir
}

func TestWrongFilterSaysWhatIsAllowed(t *testing.T) {
	x := opened(t, some(t), filepath.Join(t.TempDir(), "i"))
	for words, want := range map[string]string{
		"p99<10":         "a time with its unit",
		"p99:valid":      "p50, p99 or p99.9 with",
		"verdict:good":   "one of valid, suspect",
		"color:red":      "driver:, server:",
		"lost<few":       "a number of messages",
		"delivered>=1km": "a rate",
		"driver:":        "driver:, server:",
		"driver<3":       "driver:, server:",
	} {
		for _, of := range []func() error{
			func() error { _, err := x.List(t.Context(), Query{Words: words}); return err },
			func() error { _, err := x.Runs(t.Context(), Query{Words: words}); return err },
		} {
			if err := of(); !errors.Is(err, ErrFilter) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want an error that says %q", words, err, want)
			}
		}
	}
}

func TestQueryMatches(t *testing.T) {
	x := opened(t, some(t), filepath.Join(t.TempDir(), "i"))
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"all, newest first":                {Query{Below: "nights"}, []string{"nights/b", "nights/a"}},
		"one folder":                       {Query{Below: "nights/a"}, []string{"nights/a"}},
		"a folder is not a beginning":      {Query{Below: "night"}, []string{}},
		"words, in any case":               {Query{Words: "LONGER nightly"}, []string{"nights/b"}},
		"signs of SQL are letters":         {Query{Words: "100%_"}, []string{"lone"}},
		"and quotes are, too":              {Query{Words: "' OR 1=1 --"}, []string{}},
		"a system":                         {Query{System: "nats"}, []string{"lone", "nights/a"}},
		"a scenario":                       {Query{Scenario: "cut off"}, []string{"killed"}},
		"a verdict":                        {Query{Status: "invalid"}, []string{"nights/b"}},
		"a failed objective, bounds last":  {Query{Status: "fail", Sort: "p99"}, []string{"lone", "nights/b", "nights/a"}},
		"no result yet":                    {Query{Status: "open"}, []string{"killed"}},
		"the oldest":                       {Query{System: "nats", Sort: "oldest"}, []string{"nights/a", "lone"}},
		"an order that is not known":       {Query{System: "nats", Sort: "dir; DROP TABLE runs"}, []string{"lone", "nights/a"}},
		"a part":                           {Query{Below: "nights", From: 1, Most: 1}, []string{"nights/a"}},
		"conditions":                       {Query{Words: "driver:kafka p99 > 5us verdict:invalid lost=0"}, []string{"nights/b"}},
		"a bound is not known to be below": {Query{Words: "p99<1m driver:nats"}, []string{"lone"}},
		"and is at least":                  {Query{Words: "p99>=5us folder:nights/a"}, []string{"nights/a"}},
		"a rate in millions":               {Query{Words: "delivered<1M offered>=1k driver:kafka"}, []string{"nights/b"}},
		"a word in quotes":                 {Query{Words: `"p99<1"`}, []string{}},
		"no figure, no match":              {Query{Words: "p99.9<1h"}, []string{}},
		"searches":                         {Query{Kinds: []Kind{Capacity}}, []string{"search"}},
	} {
		if diff := cmp.Diff(c.want, dirs(t, x, c.q)); diff != "" {
			t.Errorf("%s (-want +found):\n%s", name, diff)
		}
	}
	if l, err := x.List(t.Context(), Query{}); err != nil || l.Total != 5 {
		t.Errorf("%d runs, %v; want 5: two nights, one alone, one broken, one killed", l.Total, err)
	}
}

func TestRowMatchesItsFiles(t *testing.T) {
	x := opened(t, some(t), filepath.Join(t.TempDir(), "i"))
	row := must.Get(x.Row(t.Context(), "nights/a"))(t)
	row.Touched = time.Time{}
	p50, p99 := result.Exactly(5), result.AtLeast(5000)
	f := func(v float64) *float64 { return &v }
	want := Row{
		Dir: "nights/a", Kind: Ended, Name: "short", Scenario: "nightly", Driver: "nats", Server: "server 1.2", Guarantee: "received", Started: morning,
		Status: "valid", SLO: "fail", Rate: f(1000), Received: f(990), Family: "send response", P50: &p50, P99: &p99,
	}
	if diff := cmp.Diff(want, row, cmp.AllowUnexported(result.Value{})); diff != "" {
		t.Errorf("(-want +found):\n%s", diff)
	}
	if row, _ := x.Row(t.Context(), "broken"); !strings.HasPrefix(row.Wrong, "result.json: line 1, ") || !strings.HasSuffix(row.Wrong, "cut short: it ends within its JSON (copy the folder again from where weir wrote it)") {
		t.Errorf("a broken run has %q", row.Wrong)
	}
	if _, err := x.Row(t.Context(), "nowhere"); !errors.Is(err, ErrUnknown) {
		t.Errorf("of a folder that is not there: %v", err)
	}
}

// A suite stands for the runs below it, and is none itself.
func TestSuiteIsAboveItsRuns(t *testing.T) {
	dir := some(t)
	ran(t, filepath.Join(dir, "again", "one-nats"), "one-nats", "nats", morning, result.Valid)
	const table = `{"schema":"weir.suite/v1","suite":{"name":"small","title":"An article"},"started_at":"2026-03-04T05:06:07Z","rows":[{"row":"one","system":"nats","driver":"nats"},{"row":"one","system":"k","driver":"kafka"}]}`
	must.Do(t, os.WriteFile(filepath.Join(dir, "again", "suite.json"), []byte(table), 0o600))
	x := opened(t, dir, filepath.Join(t.TempDir(), "i"))
	row, err := x.Row(t.Context(), "again")
	row.Touched = time.Time{}
	want := Row{Dir: "again", Kind: Suite, Name: "suite small", Scenario: "An article", Driver: several, Started: morning}
	if diff := cmp.Diff(want, row, cmp.AllowUnexported(result.Value{})); err != nil || diff != "" {
		t.Errorf("%v (-want +found):\n%s", err, diff)
	}
	if r, err := x.Table(t.Context(), "again"); err != nil || len(r.Rows) != 2 {
		t.Errorf("the table: %+v, %v", r, err)
	}
	if _, err := x.Table(t.Context(), "again/one-nats"); !errors.Is(err, ErrUnknown) {
		t.Errorf("the table of a run: %v", err)
	}
	q := Query{Below: "again", Kinds: []Kind{Ended, Suite}, Grouped: true}
	l, err := x.List(t.Context(), q)
	if err != nil || len(l.Rows) != 1 || l.Rows[0].Members != 1 || l.Of[Suite] != 1 || l.Of[Ended] != 1 {
		t.Errorf("%+v, %v; want one row with a run", l, err)
	}
	q.Open = "again"
	if got := dirs(t, x, q); !cmp.Equal(got, []string{"again", "again/one-nats"}) {
		t.Errorf("open it has %q", got)
	}
	if systems, _, err := x.Choices(t.Context()); err != nil || slices.ContainsFunc(systems, func(c Choice) bool { return c.Value == several }) {
		t.Errorf("the systems are %v, %v", systems, err)
	}
}

// TestAListReadsNoRun: listing does not read runs, and a sync reads only new folders.
func TestAListReadsNoRun(t *testing.T) {
	dir := some(t)
	file := filepath.Join(t.TempDir(), "i")
	x := opened(t, dir, file)
	const all = 6
	if x.read != all {
		t.Fatalf("the first look read %d folders, want %d", x.read, all)
	}
	for range 3 {
		dirs(t, x, Query{})
	}
	again, err := x.Sync(t.Context(), nil)
	if want := (Synced{Runs: all}); err != nil || !cmp.Equal(again, want) || x.read != all {
		t.Errorf("a second look found %+v, %v, and %d folders were read; want %+v and still %d", again, err, x.read, want, all)
	}
	ran(t, filepath.Join(dir, "new"), "new", "nats", morning, result.Valid)
	must.Do(t, os.RemoveAll(filepath.Join(dir, "lone")))
	third, err := x.Sync(t.Context(), nil)
	if want := (Synced{Runs: all, Read: 1, Gone: 1}); err != nil || !cmp.Equal(third, want) {
		t.Errorf("after one run came and one went, a look found %+v, %v; want %+v", third, err, want)
	}
	if other := opened(t, dir, file); other.read != 0 {
		t.Errorf("another start read %d folders, want none", other.read)
	}
}

func TestUnusableIndexIsRebuilt(t *testing.T) {
	dir := some(t)
	for name, spoil := range map[string]func(t *testing.T, file string){
		"missing":               func(t *testing.T, file string) { _ = os.Remove(file) },
		"empty":                 func(t *testing.T, file string) { _ = os.Truncate(file, 0) },
		"cut in its first line": func(t *testing.T, file string) { _ = os.Truncate(file, 30) },
		"broken": func(t *testing.T, file string) {
			b := must.Get(os.ReadFile(file))(t)
			for i := len(b) / 2; i < len(b); i++ {
				b[i] = 0xff
			}
			must.Do(t, os.WriteFile(file, b, 0o600))
		},
		"of another folder": func(t *testing.T, file string) {
			_ = os.Remove(file)
			must.Do(t, opened(t, t.TempDir(), file).Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "i")
			must.Do(t, opened(t, dir, file).Close())
			spoil(t, file)
			x := opened(t, dir, file)
			if found := dirs(t, x, Query{}); len(found) != 5 || x.read != 6 {
				t.Errorf("found %q, and read %d folders; want five runs, and all six folders read", found, x.read)
			}
		})
	}
}

func TestForeignFileIsNotOverwritten(t *testing.T) {
	for name, text := range map[string]string{"text": strings.Repeat("dear diary ", 20), "short": "x", "JSON of others": `{"schema":"other/v1"}`, "empty lines": "\n\n"} {
		file := filepath.Join(t.TempDir(), "f")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := Open(t.Context(), t.TempDir(), file); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, want ErrForeign", name, err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != text {
			t.Errorf("%s: the file has changed", name)
		}
	}
}

// TestSymlinksCannotEscapeFolder: a results folder may come from an untrusted source.
func TestSymlinksCannotEscapeFolder(t *testing.T) {
	dir, secret := t.TempDir(), t.TempDir()
	ran(t, filepath.Join(secret, "theirs"), "secret", "nats", morning, result.Valid)
	ran(t, filepath.Join(dir, "mixed"), "mixed", "nats", morning, result.Valid)
	must.Do(t, errors.Join(
		os.Symlink(filepath.Join(secret, "theirs"), filepath.Join(dir, "linked")),
		os.MkdirAll(filepath.Join(dir, "run"), 0o700),
		os.Symlink(filepath.Join(secret, "theirs", result.FileResult), filepath.Join(dir, "run", result.FileResult)),
		os.Symlink("/etc/passwd", filepath.Join(dir, "mixed", result.FileScenario)),
	))
	x := opened(t, dir, filepath.Join(t.TempDir(), "i"))
	l := must.Get(x.List(t.Context(), Query{}))(t)
	for _, r := range l.Rows {
		if r.Name == "secret" || r.Dir == "linked" {
			t.Errorf("the list has %+v, which lies outside", r)
		}
	}
	for _, dir := range []string{"run", "mixed", "linked", "..", "/etc", "../" + filepath.Base(secret) + "/theirs"} {
		if path, err := x.Path(t.Context(), dir); err == nil {
			t.Errorf("%s is opened as %s", dir, path)
		}
	}
}

func TestUnreadableFolderIsAnError(t *testing.T) {
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "i")); err == nil {
		t.Error("a folder that is not there is opened")
	}
	x := opened(t, some(t), filepath.Join(t.TempDir(), "i"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Sync(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a look that is ended says %v", err)
	}
}

// many fills an index with rows as if their folders had been read.
func many(b testing.TB, n int) *Index {
	b.Helper()
	x := opened(b, b.TempDir(), filepath.Join(b.TempDir(), "i"))
	for i := range n {
		v := result.Exactly(float64(i))
		x.put([]*entry{entryOf(Row{Dir: fmt.Sprintf("night-%04d/run-%d", i/10, i%10), Kind: Ended, Name: fmt.Sprintf("run-%d", i), Scenario: fmt.Sprintf("scenario %d", i%20), Driver: fmt.Sprintf("system%d", i%7), Started: morning.Add(time.Duration(i) * time.Minute), Status: "valid", P99: &v}, nil, "")})
	}
	return x
}

func BenchmarkListOfTenThousand(b *testing.B) {
	x := many(b, 10_000)
	for _, q := range []Query{{Most: 100}, {Most: 100, Words: "run-99 system3", Sort: "p99"}, {}} {
		b.Run(fmt.Sprintf("most=%d,words=%t", q.Most, q.Words != ""), func(b *testing.B) {
			for b.Loop() {
				l, err := x.List(b.Context(), q)
				if err != nil || len(l.Rows) == 0 {
					b.Fatal(err, len(l.Rows))
				}
				must.Two(x.Choices(b.Context()))(b)
			}
		})
	}
}

// The records of a reopened index are those that were read, and nothing keeps a whole result.
func TestRecordsOutliveTheirFolders(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "i")
	ran(t, filepath.Join(dir, "a"), "short", "nats", morning, result.Valid)
	ran(t, filepath.Join(dir, "b"), "longer", "nats", morning.Add(time.Hour), result.Invalid)
	settings := "name: nightly\nsystem: {driver: nats}\nload: {rate: 1000/s}\n"
	environment := `{"schema":"weir.environment/v1","hosts":[{"hostname":"h1","cores":2}],"system":{"settings":{"sync":"` + strings.Repeat("x", 1000) + `"}}}`
	must.Do(t, errors.Join(os.WriteFile(filepath.Join(dir, "a", result.FileScenario), []byte(settings), 0o600), os.WriteFile(filepath.Join(dir, "a", result.FileEnvironment), []byte(environment), 0o600)))
	runs := func(x *Index) []compare.Run {
		found, err := x.Runs(t.Context(), Query{Sort: "oldest"})
		if err != nil || len(found.Unread) > 0 {
			t.Fatal(err, found.Unread)
		}
		return found.Runs
	}
	x := opened(t, dir, file)
	was := runs(x)
	must.Do(t, os.RemoveAll(filepath.Join(dir, "b")))
	again := must.Get(Open(t.Context(), dir, file))(t)
	defer again.Close()
	if diff := cmp.Diff(was, runs(again), cmp.Comparer(func(a, b unique.Handle[compare.Fact]) bool { return a == b })); diff != "" {
		t.Errorf("reopened (-read +reopened):\n%s", diff)
	}
	if len(was) != 2 || was[1].Record.Left != "INVALID" || was[0].Record.Fact("load.rate") != "1000/s" || was[0].Record.Fact("host") != "h1" || len(was[0].Record.Fact("setting sync")) > 310 {
		t.Errorf("records: %+v", was)
	}
	if q := was[0].Record.Dists[0]; q == nil || q.NS[4] != 5000 || string(q.Known[:]) != "=--->?--" {
		t.Errorf("percentiles: %+v", q)
	}
}
