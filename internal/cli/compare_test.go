package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// made says what folders of results shall hold.
type made struct {
	seed      uint64
	slow      float64 // a factor on every latency
	tail      int64   // ns that two of a hundred messages take longer
	size      string
	guarantee string
	storage   string
	sync      string // a setting of the server
	procs     int    // GOMAXPROCS
	hour      int    // of the first run
	lost      uint64
	invalid   int // this many of the runs, the last ones
}

// madeScenario is that of the runs, but for its size and an option.
const madeScenario = `weir: 1
name: made
system:
  driver: jetstream
  options:
    storage: %s
topology:
  destinations: 1
  producers: 1
load:
  rate: 300/s
message:
  size: %s
mode: stream
measure: 2s
`

// makeSeries writes n result folders of 600 messages each below dir. They are dated back, since only the
// output of a test's weir is checked against docs/formats.
func makeSeries(dir string, n int, m made) error {
	m.size, m.guarantee, m.storage = cmp.Or(m.size, "1KiB"), cmp.Or(m.guarantee, "received"), cmp.Or(m.storage, "file")
	m.sync, m.slow = cmp.Or(m.sync, "2m0s"), cmp.Or(m.slow, 1)
	rng := rand.New(rand.NewPCG(m.seed, 99))
	for i := range n {
		if err := m.one(filepath.Join(dir, fmt.Sprintf("%02d-made-r%d", i+1, i+1)), i, n, rng); err != nil {
			return err
		}
	}
	old := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	})
}

func (m made) one(dir string, i, n int, rng *rand.Rand) error {
	const messages = 600
	run := math.Exp(0.02 * rng.NormFloat64()) // runs differ by some 2 %
	c := new(measure.Counts)
	for range messages {
		v := 200_000 * m.slow * run * math.Exp(0.4*rng.NormFloat64())
		if rng.IntN(50) == 0 {
			v += float64(m.tail)
		}
		c.Add(int64(v), 1)
	}
	start := time.Date(2026, 1, 2, m.hour, i, 0, 0, time.UTC)
	r := &result.Result{
		Run: result.Run{
			ID: fmt.Sprintf("made-%d-%d", m.seed, i), Name: fmt.Sprintf("made-r%d", i+1), Series: "made", Repeat: i + 1, StartedAt: start.Format(time.RFC3339Nano),
			Loop: result.LoopOpen, Mode: "stream", Seed: 1, MeasureS: 2, Weir: "devel",
		},
		System: result.System{
			Driver: "jetstream", Client: "nats.go v1", Server: result.Server{Name: "nats-server", Version: "2.15.2", Nodes: 1},
			Guarantee: m.guarantee, Copies: "1", Stable: "os",
		},
		Verdict:    result.Verdict{Status: result.Valid},
		Messages:   result.Messages{Scheduled: messages, Sent: messages, Confirmed: messages, Delivered: messages - m.lost, Lost: m.lost},
		Throughput: result.Throughput{OfferedPerS: 300, SentPerS: 300, ConfirmedPerS: 300, ReceivedPerS: new(300.0)},
	}
	r.MessagesAll = r.Messages
	r.Latency.Send.Response = judge.Distribution(c, nil)
	if i >= n-m.invalid {
		r.Verdict.Status = result.Invalid
	}
	folder, err := result.Create(dir)
	if err != nil {
		return err
	}
	in := &measure.Interval{From: 0, To: 2e9}
	in.Kinds[measure.SendResponse][measure.Measure].Merge(c)
	errs := []error{
		folder.StartIntervals(start, "devel"),
		folder.AppendInterval(in),
		folder.WriteScenario([]byte(fmt.Sprintf(madeScenario, m.storage, m.size))),
		folder.WriteEnvironment(&result.Environment{
			Weir:   result.Build{Version: "devel"},
			Hosts:  []host.Facts{{Hostname: "host", CPUModel: "fast", Cores: 2, Kernel: "6.1", GOMAXPROCS: m.procs}},
			System: result.EnvironmentSystem{Driver: r.System.Driver, Client: r.System.Client, Server: r.System.Server, Settings: map[string]string{"sync_interval": m.sync}},
		}),
		folder.WriteResult(r),
	}
	return errors.Join(append(errs, folder.Close())...)
}

// series DIR N [WHAT=VALUE...] makes a folder of N runs: seed, slow (a factor),
// tail (a duration), size, guarantee, storage, sync, procs, hour, lost, invalid.
func seriesCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: series DIR N [WHAT=VALUE...]")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var m made
	for _, a := range args[2:] {
		what, text, _ := strings.Cut(a, "=")
		number, _ := strconv.ParseFloat(text, 64)
		switch what {
		case "seed":
			m.seed = uint64(number)
		case "slow":
			m.slow = number
		case "tail":
			d, err := time.ParseDuration(text)
			ts.Check(err)
			m.tail = int64(d)
		case "size":
			m.size = text
		case "guarantee":
			m.guarantee = text
		case "storage":
			m.storage = text
		case "sync":
			m.sync = text
		case "procs":
			m.procs = int(number)
		case "hour":
			m.hour = int(number)
		case "lost":
			m.lost = uint64(number)
		case "invalid":
			m.invalid = int(number)
		default:
			ts.Fatalf("series: %q is not known", what)
		}
	}
	ts.Check(makeSeries(ts.MkAbs(args[0]), n, m))
}

func TestCompareScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "compare"),
		Setup: func(e *testscript.Env) error { e.Setenv("GORACE", quick); return nil },
		Cmds:  map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "series": seriesCommand},
	})
}

// compared makes two series that differ in their tail and compares them.
func compared(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, errors.Join(
		makeSeries(filepath.Join(dir, "base"), 6, made{seed: 1, hour: 3}),
		makeSeries(filepath.Join(dir, "slow"), 7, made{seed: 2, hour: 4, tail: 1_000_000, storage: "memory", invalid: 1}),
	))
	code, stdout, stderr := do(t, World{Dir: dir}, append([]string{"compare", "base", "slow"}, args...)...)
	if code != int(OK) || stderr.String() != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return stdout.String()
}

func TestTheComparisonAsText(t *testing.T) {
	expected(t, "compare.txt", compared(t, "--full"))
	expected(t, "compare-screen.txt", compared(t))
}

func TestTheComparisonAsMarkdown(t *testing.T) {
	expected(t, "compare.md", compared(t, "--markdown", "--full"))
}

// TestTheComparisonInColour paints what is worse, and nothing where colour is off.
func TestTheComparisonInColour(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, errors.Join(makeSeries(filepath.Join(dir, "a"), 6, made{seed: 1}), makeSeries(filepath.Join(dir, "b"), 6, made{seed: 2, slow: 2})))
	w := World{Dir: dir, StdoutTerminal: true, Size: func() (int, int) { return 60, 20 }}
	_, painted, _ := do(t, w, "compare", "a", "b", "--full")
	_, plain, _ := do(t, w, "compare", "a", "b", "--full", "--no-color")
	if !strings.Contains(painted.String(), "\x1b[1;31mworse\x1b[0m") || strings.Contains(plain.String(), "\x1b") {
		t.Errorf("painted:\n%s\nplain:\n%s", painted, plain)
	}
	golden.Equal(t, plain.String(), unpainted(painted.String()), "without its colours")
	for line := range strings.Lines(plain.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 {
			t.Errorf("a line of %d characters on a terminal of 60: %s", n, line)
		}
	}
}

// TestFolderNamesAreEscapedOnTerminal plants escape sequences.
func TestFolderNamesAreEscapedOnTerminal(t *testing.T) {
	dir := t.TempDir()
	evil := "\x1b[2Jx"
	must.Do(t, errors.Join(makeSeries(filepath.Join(dir, "a"), 4, made{seed: 1}), makeSeries(filepath.Join(dir, "b"), 4, made{seed: 2})))
	found := must.Get(result.Find(filepath.Join(dir, "b")))(t)
	for _, f := range found {
		saved := must.Get(result.Read(f))(t)
		saved.Result.System.Client = evil
		saved.Result.System.Server.Version = evil
		saved.Result.System.Server.Name = evil
		saved.Result.System.Options = map[string]any{evil: evil}
		saved.Result.Run.Name = evil
		for i := range saved.Result.Verdict.Checks {
			saved.Result.Verdict.Checks[i].Value = evil
		}
		path, old := filepath.Join(f, result.FileResult), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		must.Do(t, errors.Join(os.WriteFile(path, must.Get(result.Marshal(saved.Result))(t), 0o644), os.Chtimes(path, old, old)))
	}
	code, stdout, _ := do(t, World{Dir: dir}, "compare", "a", "b", "--full")
	if code != int(OK) || strings.Contains(stdout.String(), "\x1b") || !strings.Contains(stdout.String(), "�[2Jx") {
		t.Errorf("exit code %d: %q", code, stdout)
	}
}

// Uses arguments with cursor movements, as a pasted command line may contain, in an error that quotes them.
func TestArgumentsAreEscapedOnTerminal(t *testing.T) {
	evil := "\x1b[2J\u009b\ax\u202e"
	for _, args := range [][]string{
		{evil},
		{"run", evil},
		{"run", "--" + evil},
		{"run", "--rate", evil},
		{"run", "--driver", evil},
		{"run", "--option", evil + "=1"},
		{"run", "--address", evil},
		{"compare", evil, evil},
		{"report", evil},
		{"drivers", evil},
		{"broker", "up", evil},
		{"completion", evil},
		{"agent", "--join", evil},
		{"fleet", evil},
		{"calibrate", evil},
		{"run", "--driver", "chan", "--slo", evil},
		{"run", "--resume", evil},
	} {
		code, stdout, stderr := do(t, World{}, args...)
		if code == int(OK) || stderr.String() == "" {
			t.Errorf("%q: exit code %d, %q", args, code, stderr)
		}
		if all := stdout.String() + stderr.String(); strings.ContainsAny(all, "\x1b\u009b\a\u202e") {
			t.Errorf("%q: %q", args, all)
		}
	}
}

// TestStrictGateFailsUndecidedFigure, as weir run --strict does not.
func TestStrictGateFailsUndecidedFigure(t *testing.T) {
	t.Parallel()
	on := "regression"
	for _, x := range []struct {
		strict bool
		tally  compare.Tally
		want   Code
	}{
		{false, compare.Tally{NothingShown: 1}, OK},
		{true, compare.Tally{NothingShown: 1}, Missed},
		{true, compare.Tally{NoChange: 3, Better: 1}, OK},
		{true, compare.Tally{NothingShown: 1, NeedsRuns: 1}, Usage},
		{true, compare.Tally{NothingShown: 1, Worse: 1}, Missed},
	} {
		c := compareCommand{FailOn: &on, Strict: x.strict}
		e := &env{World: World{Stderr: io.Discard, Env: func(string) (string, bool) { return "", false }}}
		if code := c.code(e, &compare.Comparison{Sides: []compare.SideSummary{{}, {Tally: &x.tally}}}); code != x.want {
			t.Errorf("strict %v, %+v: exit code %d; want %d", x.strict, x.tally, code, x.want)
		}
	}
}
