package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/driver"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/result"
)

// TestKilledRunLeavesItsScenario reads the folder in mid-run.
func TestKilledRunLeavesItsScenario(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	found := map[string][]byte{}
	signals := make(chan os.Signal, 2)
	stderr := &watch{on: "warming up", then: func() {
		for _, name := range []string{result.FileScenario, result.FileEnvironment} {
			found[name], _ = os.ReadFile(filepath.Join(dir, "r", name))
		}
		signals <- syscall.SIGHUP
	}}
	code, stdout, _ := do(t, World{Dir: dir, Stderr: stderr, Signals: signals}, "run", "--driver", "chan", "--warmup", "20s", "--out", "r")
	if code != int(Interrupted) {
		t.Errorf("exit code %d; want 130\n%s", code, stderr)
	}
	if got := string(found[result.FileScenario]); !strings.Contains(got, "warmup: 20s") {
		t.Errorf("scenario.yaml in mid-run:\n%s", got)
	}
	var e struct {
		Hosts  []struct{ GOMAXPROCS int }
		System struct{ Driver string }
	}
	if err := json.Unmarshal(found[result.FileEnvironment], &e); err != nil {
		t.Fatalf("environment.json in mid-run: %v\n%s", err, found[result.FileEnvironment])
	}
	if e.System.Driver != "chan" || len(e.Hosts) != 1 || e.Hosts[0].GOMAXPROCS <= runtime.NumCPU() {
		t.Errorf("environment.json in mid-run: %+v; want driver chan and GOMAXPROCS beyond the cores", e)
	}
	if !strings.Contains(stdout.String(), "nothing was measured") || !strings.HasPrefix(stdout.String(), "INVALID") {
		t.Errorf("interrupted in the warm-up, it does not say that nothing was measured:\n%s", stdout)
	}
}

type refusingConfig struct {
	driver.Config
	err error
}

func (c *refusingConfig) Open(context.Context, driver.Run) (driver.Conn, error) { return nil, c.err }

func TestUnsupportedByDriverIsUsageError(t *testing.T) {
	for _, cause := range []error{driver.ErrUnsupported, driver.ErrTooLarge} {
		d := channel.Definition()
		inner := d.New
		d.New = func() driver.Config {
			return &refusingConfig{inner(), errors.Join(fmt.Errorf("a thing: %w", cause), errors.New("and another"))}
		}
		dir := t.TempDir()
		code, _, stderr := do(t, World{Dir: dir, Drivers: []driver.Definition{d}}, "run", "--driver", "chan", "--out", "r")
		if code != int(Usage) {
			t.Errorf("%v: exit code %d; want 2\n%s", cause, code, stderr)
		}
		if lines := strings.Count(stderr.String(), "\n"); lines != 1 {
			t.Errorf("%v is told in %d lines; want one:\n%s", cause, lines, stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, "r")); err == nil {
			t.Errorf("%v leaves a folder behind", cause)
		}
	}
}

func TestRunWithoutConfirmationsIsInvalid(t *testing.T) {
	t.Parallel()
	stuck := broken0(func(uint64) fate { return swallow })
	code, stdout, stderr := do(t, World{Drivers: []driver.Definition{stuck}},
		"run", "--driver", "odd", "--rate", "100/s", "--warmup", "0s", "--measure", "200ms", "--drain", "100ms", "--full", "--out", "r")
	if code != int(Refused) { // which wins over Invalid
		t.Errorf("exit code %d; want 7\n%s", code, stderr)
	}
	for _, want := range []string{"INVALID", "run: nothing was confirmed"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, stdout)
		}
	}
	if s := stdout.String(); !strings.Contains(s, "of 20 messages") {
		t.Errorf("it does not say what became of the messages:\n%s", s)
	}
}
