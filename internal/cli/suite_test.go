package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/series/suite"
)

func TestSuiteDocListsEveryField(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "formats", "suite.md")))(t)
	for _, f := range fields(reflect.TypeFor[suite.Report](), "") {
		if !strings.Contains(string(page), "`"+f+"`") {
			t.Errorf("docs/formats/suite.md does not list %s", f)
		}
	}
}

// The table has the completed runs, without the interrupted one.
func TestInterruptedSuiteNamesResumeCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = `{weir-suite: 1, name: own, title: x, source: y, systems: [{driver: chan}], run: {warmup: 0s}, rows: [
  {name: short, run: {measure: 100ms}, figures: [sent]},
  {name: long, run: {measure: 60s}, figures: [sent]}, {name: last, run: {measure: 100ms}, figures: [sent]}]}`
	must.Do(t, os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(text), 0o600))
	signals := make(chan os.Signal, 1)
	stderr := &watch{on: "run 2 of 3: long-chan", then: func() { signals <- os.Interrupt }}
	code, stdout, _ := do(t, World{Dir: dir, Signals: signals, Stderr: stderr}, "suite", "run", "own.yaml", "-o", "o")
	if code != int(Interrupted) || !strings.Contains(stdout.String(), "2 of 3") {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr.String(), "1 of 3 runs are done; weir suite run --resume o continues") {
		t.Errorf("no word of --resume:\n%s", stderr)
	}
}

// Before anything starts, with the row, and how to leave it out.
func TestSuiteWithUnsupportedFaultIsRejected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, stdout, stderr := do(t, World{Dir: dir, Self: filepath.Join(dir, "no-such-program"), Drivers: all.Definitions()}, "suite", "run", "commit-log", "--rows", "clock")
	if code != int(Usage) || stdout.String() != "" {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	for _, want := range []string{"clock-nats-streaming-fsync: clock: this host does not let weir step the clock of a process", "--rows runs other rows without it"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is not in\n%s", want, stderr)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
