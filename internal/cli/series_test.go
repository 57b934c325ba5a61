package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

func TestSignalEndsSeriesAfterCurrentRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	const suite = "weir: 1\nseed: 2\nsystem: {driver: chan}\nwarmup: 0s\nscenarios:\n" +
		"  - {name: short, load: {rate: max}, messages: 10}\n  - {name: long, measure: 60s, repeat: 3}\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(suite), 0o600))
	signals := make(chan os.Signal, 2)
	stderr := &watch{on: "long-r1 of chan: measuring", then: func() { signals <- os.Interrupt }}
	code, stdout, _ := do(t, World{Dir: dir, Signals: signals, Stderr: stderr}, "run", "s.yaml", "--out", "r")
	if code != int(Interrupted) {
		t.Fatalf("exit code %d; want 130\n%s", code, stderr)
	}
	for name, interrupted := range map[string]bool{"01-short": false, "02-long-r1": true} {
		saved := must.Get(result.Read(filepath.Join(dir, "r", name)))(t)
		if got := saved.Result.Run.Interrupted; got != interrupted {
			t.Errorf("%s: interrupted = %v; want %v", name, got, interrupted)
		}
		if !strings.Contains(stdout.String(), "\n"+name[3:]+" ") {
			t.Errorf("%s is not in the overview:\n%s", name, stdout)
		}
	}
	if want := "weir: not run: 03-long-r2, 04-long-r3\n"; !strings.Contains(stderr.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, stderr)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "r")); len(left) != 4 {
		t.Errorf("%d things in the folder; want two runs, their page and the plan", len(left))
	}
	if want := "weir run --resume r  # does what is left: 3 runs\n"; !strings.Contains(stdout.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, stdout)
	}
}

func TestSignalBetweenRunsEndsSeries(t *testing.T) {
	signals := make(chan os.Signal, 2)
	stderr := &watch{on: ", written to ", then: func() { signals <- os.Interrupt }}
	code, _, _ := do(t, World{Signals: signals, Stderr: stderr},
		"run", "--driver", "chan", "--name", "x", "--rate", "max", "--messages", "10", "--warmup", "0s", "--repeat", "3", "--out", "r")
	if code != int(Interrupted) || !strings.Contains(stderr.String(), "weir: not run: 02-x-r2, 03-x-r3\n") {
		t.Errorf("exit code %d; want 130, and what was not done named\n%s", code, stderr)
	}
}

func TestSignalBeforeFirstMessageCleansUp(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	self := must.Get(os.Executable())(t)
	for _, repeat := range []string{"1", "3"} {
		dir := t.TempDir()
		signals := make(chan os.Signal, 2)
		signals <- os.Interrupt
		code, stdout, stderr := do(t, World{Dir: dir, Self: self, Signals: signals, Drivers: all.Definitions()}, "run", "--name", "x", "--repeat", repeat)
		if code != int(Interrupted) || !strings.Contains(stderr.String(), "interrupted before the first message: the run has no figures\n") {
			t.Errorf("exit code %d; want 130, and that nothing was measured\n%s", code, stderr)
		}
		if got := strings.Contains(stderr.String(), "weir: not run: 02-x-r2, 03-x-r3\n"); got != (repeat == "3") {
			t.Errorf("%s runs: names what was not done = %v\n%s", repeat, got, stderr)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 || stdout.String() != "" {
			t.Errorf("%v is left behind, and said: %s", left, stdout)
		}
	}
}
