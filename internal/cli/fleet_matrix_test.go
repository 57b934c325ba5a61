package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// TestMatrixVariesNumberOfAgents: one of two, with its producers, and then both.
func TestMatrixVariesNumberOfAgents(t *testing.T) {
	t.Parallel()
	server := meeting(t)
	where := "nats://" + strings.TrimPrefix(server, "nats://")
	agents(t, where, map[string]string{"a": "", "b": ""})
	dir := t.TempDir()
	const file = "weir: 1\nname: m\nsystem: {driver: nats}\nload: {rate: 200/s}\nwarmup: 200ms\nmeasure: 1s\nmatrix: {fleet.agents: [1, 2], fleet.producers: [3]}\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(file), 0o600))
	stdout, stderr := &watch{}, &watch{}
	code := Main(t.Context(), World{
		Args:   []string{"run", "m.yaml", "--fleet", "2", "--nats", where, "--address", server, "--consumers", "2", "--out", "m", "--quiet"},
		Env:    func(name string) (string, bool) { return filepath.Join(dir, "fleet"), name == admission.VariableDir },
		Stdout: stdout, Stderr: stderr, Dir: dir, Drivers: all.Definitions(),
	})
	if code != int(OK) && code != int(Invalid) { // a busy host may make the figures invalid
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for n, folder := range map[int]string{1: "01-m-agents-1-producers-3", 2: "02-m-agents-2-producers-3"} {
		saved := must.Get(result.Read(filepath.Join(dir, "m", folder)))(t)
		r := saved.Result
		if len(r.Agents) != n {
			t.Errorf("%s: %d agents; want %d", folder, len(r.Agents), n)
		}
		for _, a := range r.Agents {
			if a.Producers != 3 {
				t.Errorf("%s: agent %s has %d producers; want 3", folder, a.Name, a.Producers)
			}
		}
		if m := r.MessagesAll; m.Sent != 240 || m.Delivered != 240 {
			t.Errorf("%s: %+v; want 240 sent and delivered", folder, m)
		}
	}
}
