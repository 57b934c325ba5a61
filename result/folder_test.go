package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/measure"
)

// example returns a result with every field set.
func example() *Result {
	d := &Dist{
		Count: 9_999, MinNS: new(int64(12_345)), MaxNS: new(int64(9_876_543)), Censored: 1, Overflow: 0,
		Percentiles: []Percentile{
			{P: 50, NS: 45_055, LoNS: new(int64(44_992)), HiNS: new(int64(45_119)), Supported: true},
			{P: 99.99, NS: 9_871_360, LoNS: new(int64(5_000_192)), AtLeast: true},
		},
	}
	plain := &Dist{
		Count: 9_999, MinNS: new(int64(0)), MeanNS: new(812.5), StdDevNS: new(99.25), MaxNS: new(int64(90_001)),
		Percentiles: []Percentile{{P: 100, NS: 90_001, LoNS: new(int64(90_001)), Supported: true}},
	}
	return &Result{
		Run: Run{
			ID: "r-1", Name: "example", StartedAt: "2026-01-02T03:04:05.000000006Z",
			Epoch:    Epoch{Wall: "2026-01-02T03:04:05.000000006Z", MonotonicNS: 123_456_789, BootID: "b"},
			MeasureS: 10, Weir: "v0", Interrupted: true, Seed: 1, Loop: LoopOpen,
		},
		System: System{
			Driver: "jetstream", Client: "nats.go v1", Server: Server{Name: "nats-server", Version: "2", Nodes: 1},
			Guarantee: "persisted", Copies: "1", Stable: "fsync", Options: map[string]any{"storage": "file"},
		},
		Verdict: Verdict{
			Status: Suspect,
			Checks: []Check{{Name: "lateness", Status: Suspect, Value: "12 % at p99", Limit: "10 %", Why: "the generator was late"}},
			SLO:    []SLO{{Expr: "e2e.p99.9 <= 10ms", Pass: true, Value: 9.5}},
		},
		Messages: Messages{
			Scheduled: 10_000, Sent: 10_000, Confirmed: 9_999, Unconfirmed: 1, Delivered: 9_999, Settled: 9_999,
		},
		MessagesAll: Messages{Scheduled: 12_000, Sent: 12_000, Confirmed: 11_999, Unconfirmed: 1, Delivered: 11_999, Settled: 11_999},
		Throughput:  Throughput{OfferedPerS: 1000, SentPerS: 1000, ConfirmedPerS: 999.9, ReceivedPerS: new(999.8), SentBytesPerS: 1_024_000, ReceivedBytesPerS: new(1_023_795.2)},
		Latency: Latency{
			Send: Send{Response: d, Service: d, Lateness: plain, Blocked: plain},
			E2E:  Pair{Response: d, Service: d},
		},
		Intervals: []Interval{{
			TS: 2, Phase: "measure", Sent: 1000, Confirmed: 1000, Received: 999, Backlog: 1,
			Send: Points{P50NS: new(int64(45_055)), P99NS: new(int64(60_031)), MaxNS: new(int64(70_000))},
		}},
		Events: 1,
	}
}

func sample() host.Sample {
	return host.Sample{
		FromNS: 2e9, ToNS: 3e9, Host: host.HostSample{UserS: new(0.25), DiskReads: new(uint64(0))},
		Processes: []host.ProcessSample{{Name: "server-1", Node: 1, Processes: 2, WrittenBytes: new(uint64(4096))}},
		Absent:    []host.Absent{{Of: "host", Figures: []string{"disk_flushes"}, Why: "a <b>"}},
	}
}

// writeExample writes one of each file into a folder.
func writeExample(t *testing.T, f *Folder) error {
	t.Helper()
	var c measure.Counts
	for v := int64(10_000); v < 10_000_000; v += v / 3 {
		c.Add(v, uint64(v%7+1))
	}
	in := &measure.Interval{From: 2e9, To: 3e9 + 17}
	in.Kinds[measure.SendResponse][measure.Measure] = c
	in.Kinds[measure.SendBlocked][measure.WarmUp].Add(0, 8)
	return errors.Join(
		f.WriteScenario([]byte("weir: 1\nname: example\n")),
		f.WriteEnvironment(&Environment{
			Weir:   Build{Version: "v0"},
			System: EnvironmentSystem{Driver: "jetstream", Settings: map[string]string{"sync_interval": "always"}},
		}),
		f.StartIntervals(time.Unix(1_767_323_045, 6), "v0"),
		f.AppendInterval(in),
		f.AppendCensored(measure.SendResponse, measure.Measure, 0, 12e9, &c),
		f.AppendEvent(Event{TNS: 5, Kind: "gc", Text: "a <b>", DurationNS: 7}),
		f.AppendSample(sample()),
		f.WriteHGRM(measure.SendResponse, &c, 1),
		f.WriteResult(example()),
		f.Close(),
	)
}

// payload matches the compressed column, which depends on the compressor: its contents are compared
// as counts.
var payload = regexp.MustCompile(`HIST[A-Za-z0-9+/=]+`)

func TestGoldenFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "run")
	f := must.Get(Create(dir))(t)
	must.Do(t, writeExample(t, f))
	kept := filepath.Join("testdata", "golden")
	if golden.Updating() {
		must.Do(t, errors.Join(os.RemoveAll(kept), os.CopyFS(kept, os.DirFS(dir))))
	}
	got, want := text(t, dir), text(t, kept)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("golden (-) and written (+) differ; if this is meant, run the test with -update:\n%s", d)
	}
	for _, name := range []string{FileIntervals} {
		a, b := totals(t, filepath.Join(kept, name)), totals(t, filepath.Join(dir, name))
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%s counts:\n%s", name, d)
		}
	}
	for name, body := range got {
		if !strings.Contains(body[:min(len(body), 64)], "weir") {
			t.Errorf("%s does not name its schema at its head", name)
		}
	}
}

func text(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		b := must.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		files[e.Name()] = payload.ReplaceAllString(string(b), "PAYLOAD")
	}
	return files
}

func totals(t *testing.T, path string) map[string]map[int64]uint64 {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	sums := must.Get(Totals(bytes.NewReader(b)))(t)
	m := map[string]map[int64]uint64{}
	for tag, c := range sums {
		m[tag] = buckets(c)
	}
	return m
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	saved := must.Get(Read(filepath.Join("testdata", "golden")))(t)
	want := example()
	want.Schema = Schema
	golden.Equal(t, want, saved.Result, "")
	files := []string{FileEnvironment, FileEvents, FileHost, FileIntervals, FileResult, FileScenario, "send.hgrm"}
	golden.Equal(t, files, saved.Files, "")
}

func TestUnmarshal(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want error
		says string
	}{
		"unknown fields are ignored": {text: `{"schema": "weir.result/v1", "new": {"x": 1}, "events": 3}`},
		"a newer version": {
			`{"schema": "weir.result/v2"}`, ErrNewer,
			`written by a newer weir: its schema is "weir.result/v2", this one reads up to "weir.result/v1"`,
		},
		"a version beyond all numbers": {`{"schema": "weir.result/v99999999999999999999"}`, ErrNewer, "newer weir"},
		"another kind of file":         {`{"schema": "weir.environment/v1"}`, ErrNotResult, `not "weir.result/v1"`},
		"a version that is none":       {`{"schema": "weir.result/vx"}`, ErrNotResult, ""},
		"version nought":               {`{"schema": "weir.result/v0"}`, ErrNotResult, ""},
		"no schema":                    {`{}`, ErrNotResult, "names no schema"},
		"a schema that is a number":    {`{"schema": 1}`, ErrNotResult, "names no schema"},
		"a list":                       {`[1]`, ErrNotResult, "it is a JSON array"},
		"null":                         {`null`, ErrNotResult, "names no schema"},
		"no JSON":                      {"{\n  \"schema\": weir}", ErrMalformed, "line 2, column 13: malformed: no JSON: invalid character 'w'"},
		"a document and more":          {"{}\n{}", ErrMalformed, "line 2, column 1"},
		"cut within a word":            {"{\"schema\": \"weir.result/v1\",\n \"run", ErrTorn, "line 2, column 6: cut short: it ends within its JSON"},
		"cut between words":            {`{"schema": "weir.result/v1",`, ErrTorn, "line 1, column 29"},
		"nothing":                      {"", ErrTorn, "it is empty"},
		"spaces":                       {" \n", ErrTorn, "it is empty"},
		"a text where a number belongs": {
			"{\"schema\": \"weir.result/v1\",\n \"run\": {\"seed\": \"one\"}}", ErrMalformed, "line 2, column 22: malformed: run.seed is a string, not uint64",
		},
		"a count below nought": {`{"schema": "weir.result/v1", "messages": {"lost": -1}}`, ErrMalformed, "messages.lost"},
		"a number beyond all":  {`{"schema": "weir.result/v1", "run": {"measure_s": 1e999}}`, ErrMalformed, "run.measure_s"},
		"nested deeply":        {`{"schema": "weir.result/v1", "x": ` + strings.Repeat("[", 100_000), ErrMalformed, "nests deeper than 32 levels"},
		"very many objects":    {`{"schema": "weir.result/v1", "intervals": [` + strings.Repeat("{},", 1<<20) + "{}]}", ErrMalformed, "more than 1048576 objects"},
		"very many values":     {`{"schema": "weir.result/v1", "x": [` + strings.Repeat("0,", 8<<20+1) + "0]}", ErrMalformed, "more than 8388608 values"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Unmarshal([]byte(tt.text))
			if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want %v saying %q", err, tt.want, tt.says)
			}
			if f := (*FileError)(nil); err != nil && !errors.As(err, &f) {
				t.Errorf("%T is no *FileError", err)
			}
			if tt.want == nil && r.Events != 3 {
				t.Fatalf("read %+v", r)
			}
		})
	}
}

func TestMarshalNeverGivesNullLists(t *testing.T) {
	b := must.Get(Marshal(new(Result)))(t)
	var m map[string]any
	must.Do(t, json.Unmarshal(b, &m))
	verdict := m["verdict"].(map[string]any)
	for name, v := range map[string]any{"intervals": m["intervals"], "checks": verdict["checks"], "slo": verdict["slo"], "options": m["system"].(map[string]any)["options"]} {
		if v == nil {
			t.Errorf("%s is null", name)
		}
	}
	latency := m["latency"].(map[string]any)
	golden.Equal(t, map[string]any{"send": map[string]any{}, "e2e": map[string]any{}, "rtt": map[string]any{}}, latency, "")
}

func TestCreateRejectsExistingFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o644))
	for _, path := range []string{dir, file} {
		if _, err := Create(path); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	if _, err := Create(filepath.Join(file, "below", "a file")); err == nil || errors.Is(err, ErrExists) || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: error %v", err)
	}
}

func TestCreateInUnwritableFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		needs.Host(t, "unprivileged", "root may write everywhere")
	}
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o555))
	if _, err := Create(filepath.Join(dir, "run")); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("error %v", err)
	}
}

// One file after the other hits a full disk.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		needs.Host(t, "linux", "/dev/full")
	}
	for _, name := range []string{FileResult, FileIntervals, FileScenario, FileEnvironment, FileEvents, FileHost, "send.hgrm"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			f, err := Create(dir)
			if err != nil {
				t.Fatal(err)
			}
			f.open = func(path string, flag int, perm fs.FileMode) (*os.File, error) {
				if strings.TrimSuffix(filepath.Base(path), ".tmp") == name {
					return os.OpenFile("/dev/full", os.O_WRONLY, 0)
				}
				return os.OpenFile(path, flag, perm)
			}
			err = writeExample(t, f)
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), name) {
				t.Fatalf("error %v", err)
			}
			if again := f.Close(); !errors.Is(again, syscall.ENOSPC) || strings.Count(again.Error(), "no space left") != 1 {
				t.Fatalf("kept error %v", again)
			}
			saved := must.Get(os.ReadDir(dir))(t)
			if len(saved) != 6 {
				t.Fatalf("the other files: %v", saved)
			}
			for _, e := range saved {
				if strings.HasSuffix(e.Name(), ".tmp") {
					t.Errorf("%s was left", e.Name())
				}
			}
		})
	}
}

// Closes the file beneath the log half way.
func TestALogKeepsItsWholeLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f := must.Get(Create(dir))(t)
	must.Do(t, f.AppendEvent(Event{TNS: 1, Kind: "one"}))
	f.events.file.Close()
	for range 2 {
		if err := f.AppendEvent(Event{TNS: 2, Kind: "two"}); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), FileEvents) {
			t.Fatalf("error %v", err)
		}
	}
	if f.Events() != 1 {
		t.Errorf("%d events", f.Events())
	}
	if err := f.Close(); strings.Count(err.Error(), "append to") != 1 {
		t.Errorf("kept error %v", err)
	}
	b := must.Get(os.ReadFile(filepath.Join(dir, FileEvents)))(t)
	if want := "{\"schema\": \"weir.events/v1\"}\n{\"t_ns\":1,\"kind\":\"one\"}\n"; string(b) != want {
		t.Errorf("log is %q", b)
	}
}

func TestEventsFromManyGoroutines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f := must.Get(Create(dir))(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range int64(20) {
				_ = f.AppendEvent(Event{TNS: i, Kind: "x"}) // Close reports it
			}
		})
	}
	wg.Wait()
	must.Do(t, f.Close())
	b := must.Get(os.ReadFile(filepath.Join(dir, FileEvents)))(t)
	if n := bytes.Count(b, []byte("\n")); n != 161 || f.Events() != 160 {
		t.Errorf("%d lines, %d events", n, f.Events())
	}
}

func TestIntervalsMustBeStartedOnce(t *testing.T) {
	f := must.Get(Create(filepath.Join(t.TempDir(), "run")))(t)
	in := new(measure.Interval)
	in.Kinds[0][0].Add(1, 1)
	if f.AppendInterval(in) == nil {
		t.Error("appended before the start")
	}
	if err := f.StartIntervals(time.Unix(0, 0), "v"); err != nil {
		t.Error(err)
	}
	if f.StartIntervals(time.Unix(0, 0), "v") == nil {
		t.Error("started twice")
	}
	must.Do(t, f.Close())
}

// A run in progress counts in a file of its own, which its result replaces.
func TestProgressLastsUntilResult(t *testing.T) {
	f := must.Get(Create(filepath.Join(t.TempDir(), "r")))(t)
	iv := &measure.Interval{To: 1e9, Backlog: measure.Backlog{{Missing: 5, Passed: 2}, {Missing: 1}}}
	iv.Counters[measure.WarmUp].Scheduled, iv.Counters[measure.Measure].Scheduled, iv.Counters[measure.Measure].Failed = 3, 4, 1
	var sum Progress
	want := []Progress{
		{TNS: 1e9, Scheduled: 7, Failed: 1, Backlog: 3, Missed: 2},
		{TNS: 2e9, Scheduled: 14, Failed: 2, Backlog: 3, Missed: 2},
	}
	for i := range want {
		iv.To = int64(i+1) * 1e9
		must.Do(t, f.AppendProgress(sum.Add(iv)))
	}
	path := filepath.Join(f.Dir(), FileLive)
	b := must.Get(os.ReadFile(path))(t)
	var got []Progress
	for p, err := range AllProgress(bytes.NewReader(b)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the file holds %+v, want %+v", got, want)
	}
	must.Do(t, errors.Join(f.WriteResult(new(Result)), f.Close()))
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("beside a result there is %s: %v", path, err)
	}
}
