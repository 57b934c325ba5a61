package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// SIGKILL leaves no chance to clean up.
func TestKilledRunLeavesReadableFiles(t *testing.T) {
	t.Parallel()
	f := &flight{
		args: []string{"run", "--driver", "chan", "--rate", "500/s", "--warmup", "500ms", "--measure", "60s", "--out", "r"},
		on:   "measuring", // an interval or two have passed then
		then: func(p *os.Process) { _ = p.Kill() },
	}
	if code := f.fly(t); code != -1 {
		t.Fatalf("exit code %d; want it killed\n%s", code, &f.stderr)
	}
	dir := filepath.Join(f.dir, "r")
	if _, err := result.Read(dir); !errors.Is(err, result.ErrNotResult) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading its result: %v; want ErrNotResult", err)
	}
	saved := must.Get(result.Open(dir))(t)
	sums, err := saved.Totals()
	if err != nil && !errors.Is(err, result.ErrTorn) {
		t.Errorf("summing its intervals: %v", err)
	}
	if sums["send.response.warmup"] == nil || sums["send.response.warmup"].Total() == 0 {
		t.Errorf("it sums up to %v", sums)
	}
	phases := 0
	for ev, err := range saved.Events() {
		switch {
		case errors.Is(err, result.ErrTorn):
		case err != nil:
			t.Errorf("reading its events: %v", err)
		case ev.Kind == "phase":
			phases++
		}
	}
	if phases == 0 {
		t.Error("its events do not say when a phase began")
	}
	e, err := saved.Environment()
	if err != nil || e.System.Driver != "chan" {
		t.Errorf("its environment: %+v, %v", e, err)
	}
	code, _, stderr := do(t, World{Dir: f.dir}, "run", "r/scenario.yaml", "--measure", "200ms", "--out", "again")
	if code != int(OK) && code != int(Invalid) {
		t.Errorf("running its scenario again: exit code %d\n%s", code, stderr)
	}
	for _, name := range saved.Files {
		if filepath.Ext(name) == ".tmp" {
			t.Errorf("%s is left", name)
		}
	}
}

// Tries each signal that asks for the end in each phase. The run ends as interrupted, its result is
// readable and balanced, and no process or folder is left.
func TestSignalInterruptsRunInAnyPhase(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for _, c := range []struct {
		signal syscall.Signal
		args   []string // what the run is but for its driver and folder
		on     string   // the words on stderr that the signal follows
	}{
		{syscall.SIGINT, []string{"--warmup", "60s"}, "started jetstream"},
		{syscall.SIGTERM, []string{"--warmup", "60s"}, "warming up"},
		{syscall.SIGHUP, []string{"--warmup", "500ms", "--measure", "60s"}, "measuring"},
		{syscall.SIGQUIT, []string{"--warmup", "500ms", "--measure", "60s"}, "measuring"},
		{syscall.SIGABRT, []string{"--warmup", "60s"}, "warming up"},
		{syscall.SIGQUIT, []string{"--rate", "max", "--in-flight", "100", "--warmup", "500ms", "--measure", "60s"}, "measuring"},
		{syscall.SIGABRT, []string{"--mode", "request", "--warmup", "500ms", "--measure", "60s"}, "measuring"},
	} {
		t.Run(fmt.Sprint(c.signal, " ", c.on), func(t *testing.T) {
			t.Parallel()
			f := &flight{
				args: append([]string{"run", "--driver", "jetstream", "--out", "r"}, c.args...),
				on:   c.on, then: func(p *os.Process) { _ = p.Signal(c.signal) },
			}
			if code := f.fly(t); code != int(Interrupted) {
				t.Errorf("exit code %d; want 130\n%s", code, &f.stderr)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.dir), "temp", "weir-*"))
			for _, name := range left {
				t.Errorf("%s is left", name)
			}
			r, err := result.Read(filepath.Join(f.dir, "r"))
			switch {
			case c.on == "started jetstream" && errors.Is(err, fs.ErrNotExist): // it came before the first message
			case err != nil:
				t.Errorf("reading its result: %v\n%s", err, &f.stderr)
			case !r.Result.Run.Interrupted:
				t.Error("the result does not say that it was interrupted")
			default:
				for _, check := range r.Result.Verdict.Checks {
					if check.Name == judge.CheckAccounting && check.Status != result.Valid {
						t.Errorf("the books: %s", check.Value)
					}
				}
			}
		})
	}
}
