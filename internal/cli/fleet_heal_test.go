package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// Two agents execute two runs. One is ended in the warm-up of the first run, so that the spare takes its place
// from the run's beginning; the spare is ended after that run, and another agent joins.
func TestReplacementAgentForLostOne(t *testing.T) {
	server := meeting(t)
	where := "nats://" + strings.TrimPrefix(server, "nats://")
	oneAgent(t, where, "a", "")
	endB, endC := oneAgent(t, where, "b", ""), oneAgent(t, where, "c", "")
	dir := t.TempDir()
	stdout, stderr := &watch{}, &watch{}
	stderr.when("warming up", endB)
	code := make(chan int, 1)
	go func() {
		code <- Main(t.Context(), World{
			Args: []string{
				"run", "--fleet", "2", "--spare", "1", "--nats", where, "--driver", "jetstream", "--address", server,
				"--rate", "200/s", "--producers", "2", "--consumers", "2", "--warmup", "4s", "--measure", "1s", "--drain", "60s", "--repeat", "2", "--out", "r",
			},
			Env:    func(name string) (string, bool) { return filepath.Join(dir, "fleet"), name == admission.VariableDir },
			Stdout: stdout, Stderr: stderr, Dir: dir, Drivers: all.Definitions(),
		})
	}()
	must.Until(t, "the first run's result", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "r", "*", result.FileResult))
		return len(found) > 0
	})
	endC()
	oneAgent(t, where, "d", "")
	if code := <-code; code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	folders, err := filepath.Glob(filepath.Join(dir, "r", "*", result.FileResult))
	if err != nil || len(folders) != 2 {
		t.Fatalf("%d runs (%v)\n%s%s", len(folders), err, stdout, stderr)
	}
	slices.Sort(folders)
	for i, want := range []string{"a c", "a d"} {
		saved := must.Get(result.Read(filepath.Dir(folders[i])))(t)
		r := saved.Result
		var names []string
		for _, a := range r.Agents {
			names = append(names, a.Name)
			if a.Missing || len(a.Absences) > 0 {
				t.Errorf("run %d: %+v", i+1, a)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("run %d is by %s; want %s", i+1, got, want)
		}
		if m := r.MessagesAll; m.Scheduled != 1000 || m.Sent+m.Unsent != 1000 || m.Delivered != m.Sent || m.Duplicated+m.Foreign > 0 {
			t.Errorf("run %d: %+v", i+1, m)
		}
		lost := 0
		for e, err := range saved.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == "agent-lost" {
				lost++
			}
		}
		if (lost == 1) != (i == 0) {
			t.Errorf("run %d has %d events of a lost agent\n%s", i+1, lost, stderr)
		}
	}
}
