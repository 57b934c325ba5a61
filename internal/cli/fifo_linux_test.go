package cli

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/result"
)

// TestFIFOIsInTheResult, where it was taken, and why it was not where it was not.
func TestFIFOIsInTheResult(t *testing.T) {
	if err := pace.CheckFIFO(); err != nil {
		if !errors.Is(err, pace.ErrNoFIFO) {
			t.Fatal(err)
		}
		needs.Host(t, "fifo", err)
	}
	enough := min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) > 1
	for name, tt := range map[string]struct {
		args   []string
		taken  bool
		stderr string // on stderr
	}{
		"a rate":            {[]string{"--fifo", "--rate", "200/s"}, enough, ""},
		"not asked for":     {[]string{"--rate", "200/s"}, false, ""},
		"a rate that spins": {[]string{"--fifo", "--rate", "150000/s"}, false, "--fifo: a pacer "},
		"a closed loop":     {[]string{"--fifo", "--rate", "max"}, false, "closed loop"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"run", "--driver", "noop", "--warmup", "100ms", "--measure", "500ms", "--out", "r"}, tt.args...)
			code, _, stderr := do(t, World{Dir: dir}, args...)
			if code != int(OK) && code != int(Invalid) { // a busy host may well make it invalid
				t.Fatalf("exit code %v: %s", code, stderr)
			}
			saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
			cal := saved.Result.Host.Calibration
			if cal == nil || cal.FIFO != tt.taken {
				t.Fatalf("the calibration is %+v; want FIFO %v", cal, tt.taken)
			}
			if want := "SCHED_FIFO"; tt.taken != strings.HasPrefix(saved.Result.Precedence(), want) || tt.taken && !strings.Contains(cal.Why, "takes precedence") {
				t.Errorf("precedence %q, why %q", saved.Result.Precedence(), cal.Why)
			}
			if tt.stderr != "" && !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("told %q, want %q", stderr, tt.stderr)
			}
		})
	}
}
