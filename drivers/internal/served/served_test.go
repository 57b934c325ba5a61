//go:build unix

package served

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/drivers/nats"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) {
	Main(jetstream.Definition(), nats.Definition())
	os.Exit(m.Run())
}

// facts connects as a driver's test would.
func facts(t *testing.T, def driver.Definition, s *System) driver.Facts {
	t.Helper()
	cfg := def.New()
	for name, values := range s.Options {
		must.Do(t, driver.SetOption(cfg, name, values...))
	}
	c := must.Get(cfg.Open(t.Context(), driver.Run{ID: "t", Log: slog.New(slog.DiscardHandler)}))(t)
	defer c.Close(t.Context())
	f := must.Get(c.Facts(t.Context()))(t)
	return f
}

func TestServersAreReal(t *testing.T) {
	def := jetstream.Definition()
	for _, nodes := range []int{1, 3} {
		s := Up(t, def, nodes, With{Settings: map[string]string{"sync-always": "true"}})
		f := facts(t, def, s)
		t.Log(f, s.Pids, s.Options)
		if f.Name != "nats-server" || f.Nodes != nodes || len(s.Pids) != nodes || len(s.Address) != nodes {
			t.Errorf("%d nodes: %+v, processes %v at %v", nodes, f, s.Pids, s.Address)
		}
	}
}

func TestServersCanBeRestartedAndStalled(t *testing.T) {
	def := jetstream.Definition()
	s := Up(t, def, 1)
	before := s.Pids[0]
	must.Do(t, s.Restart())
	if s.Pids[0] == before {
		t.Error("the process is the same")
	}
	facts(t, def, s)
	before = s.Pids[0]
	must.Do(t, s.KillAndRestart())
	if s.Pids[0] == before {
		t.Error("the process is the same after it was killed")
	}
	facts(t, def, s)
	resume := must.Get(s.Stall())(t)
	if running(s.Pids[0]) {
		t.Error("the server runs while it is stalled")
	}
	resume()
	facts(t, def, s)
}

func TestServersThatRanAreLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	t.Setenv(VariableLog, path)
	s := Up(t, jetstream.Definition(), 1)
	note(t, Line{Recipe: "other", Nodes: 3, Lacks: "no apt-get\n  here"})
	got := must.Get(ReadLog(path))(t)
	want := []Line{{Recipe: "nats", Nodes: 1, Version: facts(t, jetstream.Definition(), s).Version}, {Recipe: "other", Nodes: 3, Version: "?", Lacks: "no apt-get here"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ReadLog(path + "x"); err == nil {
		t.Error("a log that there is not is read")
	}
}
