package drivertest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// recorded reads what a test has recorded.
func recorded(t *testing.T, path string) []tested.Entry {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	return must.Get(tested.Parse(b))(t)
}

func TestPassedSuiteIsRecordedOnRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tested.yaml")
	other := tested.Entry{Driver: "other", Test: "T", Server: "s", Version: "1", Date: "2020-01-02"}
	forerunner := tested.Entry{Driver: "memory", Test: t.Name() + "/suite", Server: "s", Version: "0", Date: "2020-01-02"}
	b := must.Get(tested.Format([]tested.Entry{other, forerunner}))(t)
	must.Do(t, os.WriteFile(path, b, 0o644))
	t.Setenv(tested.VariablePath, path)
	t.Setenv(tested.VariableRecipe, "a-recipe")
	m := newMemory("", memCapabilities())
	h := m.harness()
	h.Quiet = 10 * time.Millisecond // on the host's clock
	def := m.definition()
	def.Client = "github.com/google/go-cmp" // any module that tests are built with
	before := time.Now().UTC().Format(time.DateOnly)
	t.Run("suite", func(t *testing.T) { Run(t, def, h) })
	after := time.Now().UTC().Format(time.DateOnly)

	facts := must.Get(newSuite(def, h).facts())(t)
	es := recorded(t, path)
	if len(es) != 2 || !slices.Contains([]string{before, after}, es[0].Date) || es[0].Client == "" || es[0].Client[0] != 'v' {
		t.Fatalf("recorded: %+v", es)
	}
	want := tested.Entry{
		Driver: "memory", Test: t.Name() + "/suite", Recipe: "a-recipe", Server: facts.Name, Version: facts.Version, Nodes: facts.Nodes,
		Client: es[0].Client, Passed: len(checks()), Date: es[0].Date,
	}
	golden.Equal(t, []tested.Entry{want, other}, es, "")
}

func TestOnlyCompletePassedSuiteIsRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tested.yaml")
	t.Setenv(tested.VariablePath, path)
	m := newMemory("", memCapabilities())
	def := m.definition()
	def.Client = "" // there is no module to ask about
	s := newSuite(def, m.harness())
	s.recordTested(t) // nothing was reached
	for _, c := range checks() {
		s.seen[c.name] = passed
	}
	s.seen["Order"] = failed
	s.recordTested(t)
	delete(s.seen, "Order")
	s.recordTested(t)
	if _, err := os.Stat(path); err == nil {
		t.Errorf("recorded: %+v", recorded(t, path))
	}
	s.seen["Order"], s.seen["Ready"], s.seen["LostConnectionReported"] = inapplicable, waived, waived
	s.recordTested(t)
	if es := recorded(t, path); len(es) != 1 || es[0].Passed != len(checks())-3 || es[0].Client != "" || es[0].Recipe != "" ||
		!slices.Equal(es[0].Waived, []string{"Ready", "LostConnectionReported"}) {
		t.Errorf("recorded: %+v", es)
	}
}

func TestUnreadableRecordIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tested.yaml")
	const was = "- {driver: a, verion: 1}\n"
	must.Do(t, os.WriteFile(path, []byte(was), 0o644))
	m := newMemory("", memCapabilities())
	if err := newSuite(m.definition(), m.harness()).noteIn(path, "T"); err == nil {
		t.Error("no error")
	}
	if b, _ := os.ReadFile(path); string(b) != was {
		t.Errorf("it is now: %s", b)
	}
}

// A versionless is a driver whose system does not report its version.
type versionless struct{ *memConfig }

func (c *versionless) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	conn, err := c.memConfig.Open(ctx, run)
	return &versionlessConn{conn}, err
}

type versionlessConn struct{ driver.Conn }

func (c *versionlessConn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.Conn.Facts(ctx)
	f.Version = "unknown (nobody answers)"
	return f, err
}

func TestUnknownSystemVersionIsNotRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tested.yaml")
	m := newMemory("", memCapabilities())
	def := m.definition()
	def.New = func() driver.Config { return &versionless{&memConfig{m: m, Address: "here"}} }
	if err := newSuite(def, Harness{}).noteIn(path, "T"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Errorf("recorded: %+v", recorded(t, path))
	}
}

func TestUnreachableSystemFailsRecording(t *testing.T) {
	m := newMemory("", memCapabilities())
	h := m.harness()
	h.Options = map[string][]string{"address": {"there"}}
	if err := newSuite(m.definition(), h).noteIn(filepath.Join(t.TempDir(), "tested.yaml"), "T"); err == nil {
		t.Error("no error")
	}
}

func TestClientOutsideDependenciesIsAnError(t *testing.T) {
	def := driver.Definition{Client: "example.com/nosuch/client"}
	if v, err := clientVersion(def); err == nil || !strings.Contains(err.Error(), "version of example.com/nosuch/client: ") || !strings.Contains(err.Error(), "not a known dependency") {
		t.Errorf("%q, %v", v, err)
	}
}
