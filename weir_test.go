package weir_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir"
	"github.com/weirmq/weir/drivers/nats"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

const (
	example = "docs/examples/outside"
	twice   = "WEIR_TEST_TWICE" // variable that makes the test binary a program with two drivers of one name
)

func TestMain(m *testing.M) {
	if os.Getenv(twice) != "" {
		os.Exit(weir.Main(nats.Definition()))
	}
	os.Exit(m.Run())
}

// outside runs go in the example's folder. A workspace may read more modules than weir alone.
func outside(t *testing.T, args ...string) {
	t.Helper()
	needs.Time(t)
	needs.NoRace(t)
	work := must.Get(filepath.Abs(filepath.Join(example, "go.work")))(t)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = example, append(os.Environ(), "GOFLAGS=", "GOWORK="+work)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), example, err, out)
	}
}

// start runs the binary in an empty folder, which it returns.
func start(t *testing.T, binary string, args ...string) (dir, stdout, stderr string, code int) {
	t.Helper()
	dir = t.TempDir()
	var out, said strings.Builder
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &said
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return dir, out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// TestAProgramAddsADriver builds the example as another repository would, and measures
// with the driver that it adds.
func TestAProgramAddsADriver(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "weir")
	outside(t, "build", "-ldflags=-s -w", "-o", binary, ".")

	_, out, said, code := start(t, binary, "drivers")
	if code != 0 || !strings.Contains(out, "mailbox") || !strings.Contains(out, "jetstream") {
		t.Errorf("weir drivers: exit code %d; want the added driver and weir's\n%s%s", code, out, said)
	}

	// A closed loop: a busy host does not make it invalid.
	dir, _, said, code := start(t, binary, "run", "--driver", "mailbox", "--rate", "max", "--messages", "5000", "--warmup", "0s", "--out", "r", "--quiet")
	if code != 0 {
		t.Errorf("weir run --driver mailbox: exit code %d\n%s", code, said)
	}
	books(t, filepath.Join(dir, "r"), 5000)

	// Its children are this binary too: the guard, the embedded server, two agents. The
	// host decides whether their figures are good (0) or not (5).
	dir, _, said, code = start(t, binary, "run", "--placement", "split", "--producers", "1", "--consumers", "1",
		"--rate", "max", "--messages", "500", "--warmup", "0s", "--out", "r", "--quiet")
	if code != 0 && code != 5 {
		t.Errorf("weir run --placement split: exit code %d\n%s", code, said)
	}
	books(t, filepath.Join(dir, "r"), 500)
}

// books checks that a run sent this many messages and that each one was delivered once.
func books(t *testing.T, folder string, sent uint64) {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(folder, "result.json")))(t)
	var r struct{ Messages map[string]any }
	must.Do(t, json.Unmarshal(b, &r))
	for name, want := range map[string]uint64{"sent": sent, "confirmed": sent, "delivered": sent, "lost": 0, "duplicated": 0} {
		if got, ok := r.Messages[name].(float64); !ok || uint64(got) != want {
			t.Errorf("%s %v; want %d", name, r.Messages[name], want)
		}
	}
}

// TestTheAddedDriverKeepsTheContract runs the conformance suite as the example's own
// repository would.
func TestTheAddedDriverKeepsTheContract(t *testing.T) {
	outside(t, "test", "-count=1", "./...")
}

// TestDuplicateDriverNameIsRejected: TestMain adds a driver that weir has already.
func TestDuplicateDriverNameIsRejected(t *testing.T) {
	self := must.Get(os.Executable())(t)
	t.Setenv(twice, "yes")
	_, out, said, code := start(t, self, "drivers")
	if want := "weir: collecting the drivers: two drivers have the name \"nats\": rename one\n"; code != 1 || out != "" || said != want {
		t.Errorf("exit code %d; want 1\n%s%s; want %s", code, out, said, want)
	}
}

// TestExampleIsOwnModule: what weir needs does not grow by an example.
func TestExampleIsOwnModule(t *testing.T) {
	out := must.Get(exec.CommandContext(t.Context(), "go", "list", "./...").Output())(t)
	if s := string(out); strings.Contains(s, "docs/examples") || !strings.Contains(s, "/cmd/weir\n") {
		t.Errorf("go list ./... has the example, or lost weir:\n%s", s)
	}
}
