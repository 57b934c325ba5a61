package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestARunThatIsKilledLeavesFilesThatCanBeRead gives it no chance to tidy up.
func TestARunThatIsKilledLeavesFilesThatCanBeRead(t *testing.T) {
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
	saved, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
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
