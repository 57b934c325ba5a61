package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/result"
)

func TestTheWorstCodeWins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		codes []Code
		want  Code
	}{
		{nil, OK},
		{[]Code{OK, OK}, OK},
		{[]Code{Missed}, Missed},
		{[]Code{Missed, Invalid}, Invalid},
		{[]Code{Invalid, Lost, Missed}, Lost},
		{[]Code{Refused, Invalid, Missed}, Refused},
		{[]Code{Refused, Lost}, Lost},
		{[]Code{Lost, Unreachable}, Unreachable},
		{[]Code{Unreachable, Failed}, Failed},
		{[]Code{Failed, Interrupted}, Interrupted},
		{[]Code{Interrupted, Usage, OK}, Usage},
	}
	for _, tt := range tests {
		if got := worst(tt.codes...); got != tt.want {
			t.Errorf("worst(%v) = %d; want %d", tt.codes, got, tt.want)
		}
	}
}

func TestEveryErrorHasItsCode(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]Code{
		nil:                   OK,
		engine.ErrContract:    Failed,
		engine.ErrGuarantee:   Usage,
		engine.ErrNotReady:    Unreachable,
		driver.ErrUnreachable: Unreachable,
		driver.ErrAuth:        Unreachable,
		driver.ErrUnsupported: Usage,
		context.Canceled:      Interrupted,

		&driver.OptionError{Name: "tls.ca", Err: os.ErrNotExist}: Usage,
		errors.New("other"): Unreachable,
	} {
		wrapped := err
		if err != nil {
			wrapped = fmt.Errorf("doing something: %w", err)
		}
		if got := codeOf(wrapped); got != want {
			t.Errorf("codeOf(%v) = %d; want %d", err, got, want)
		}
	}
}

// Only figures are waived, not lost messages.
func TestDisturbedHostDoesNotWaiveMissingMessages(t *testing.T) {
	t.Parallel()
	v := &result.Verdict{
		Checks: []result.Check{{Name: judge.CheckCPU, Status: result.Suspect}},
		SLO:    []result.SLO{{Expr: "e2e.p99 <= 1us", Status: result.Fail, Unit: "ns"}},
	}
	for code, want := range map[Code]bool{Missed: true, Invalid: true, Lost: false, Refused: false, OK: false} {
		if got := disturbed(code, v); (got != "") != want {
			t.Errorf("exit code %d: %q", code, got)
		}
	}
}

// An error that wraps another besides its kind is not a list.
func TestSingleLineErrorIsNotSplit(t *testing.T) {
	t.Parallel()
	why := errors.New("is not absolute")
	one := fmt.Errorf("%w: %w", driver.ErrUnsupported, why)
	if got := parts(errors.Join(one, why)); len(got) != 2 || !errors.Is(got[0], one) {
		t.Errorf("%q", got)
	}
}

// TestFleetGatheringErrorDecidesExitCode, in a search or a suite as in a run.
func TestFleetGatheringErrorDecidesExitCode(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]Code{hub.ErrPortTaken: Usage, fleet.ErrTooFew: Unreachable, engine.ErrContract: Failed} {
		e := &env{World: World{Stderr: io.Discard, Env: func(string) (string, bool) { return "", false }}}
		o := &series.Outcome{Run: series.Run{Scenario: new(scenario.Scenario)}, Err: fmt.Errorf("gathering the fleet: %w", err)}
		if got := new(runCommand).heard(e, o, "a"); got != want {
			t.Errorf("%v: %d; want %d", err, got, want)
		}
	}
}

// The scenario's faults alone would not show that a run was to be resumed.
func TestUnresumableRunNamesItsStateFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "runs"), 0o700))
	b := must.Get(json.Marshal(fleet.Paused{
		Schema: "weir.fleet-run/v1", Run: "abc", Scenario: []byte("weir: 1\nnonsense: 1\n"), Boot: pace.BootID(), EpochNS: 1,
		Agents: make([]protocol.About, 1), Workers: make([]engine.Worker, 1), Epochs: make([]fleet.Epoch, 1),
	}))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "runs", "abc.json"), b, 0o600))
	var stderr strings.Builder
	w := World{
		Args: []string{"run", "--resume", "abc"}, Stdout: io.Discard, Stderr: &stderr, Dir: t.TempDir(), Drivers: all.Definitions(),
		Env: func(name string) (string, bool) { return dir, name == "WEIR_FLEET_DIR" },
	}
	code := Main(t.Context(), w)
	says := stderr.String()
	if code != int(Usage) || !strings.HasPrefix(says, "weir: --resume: the stored state of run abc holds 0 runs") || !strings.Contains(says, "nonsense") {
		t.Errorf("%d: %s", code, says)
	}
}
