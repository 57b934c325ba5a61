package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/proctree"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/result/resulttest"
)

// Runs beside a shell that keeps a core busy, in place of the system, and finds it in the result, in the
// host's course and on the page.
func TestUserProcessIsMonitored(t *testing.T) {
	if _, ok := proctree.One(proctree.Host(), os.Getpid()); !ok {
		needs.Host(t, "proc", "no process in /proc")
	}
	busy := exec.Command("sh", "-c", "while :; do :; done")
	must.Do(t, busy.Start())
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	}()
	dir := t.TempDir()
	run := func(args ...string) (Code, string) {
		out := &watch{}
		code := Main(t.Context(), World{
			Args: append([]string{"run", "--driver", "chan", "--rate", "500/s", "--warmup", "100ms", "--measure", "1500ms", "--full", "--quiet"}, args...),
			Env:  func(string) (string, bool) { return "", false }, Stdout: out, Stderr: out, Dir: dir, Drivers: all.Definitions(),
		})
		return Code(code), out.String()
	}
	code, said := run("--watch-pid", "4194304", "--out", "none")
	if want := "watch_pid: no process has the number 4194304 (that of a process that runs on this host)"; code != Usage || !strings.Contains(said, want) {
		t.Errorf("a process that is not there: exit code %d, %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error("it left a folder")
	}
	pid := busy.Process.Pid
	// A busy host may make the figures invalid; what is counted it does not.
	code, said = run("--watch-pid", fmt.Sprint(pid), "--price-per-hour", "1.8", "--out", "r")
	if code != OK && code != Invalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if err := resulttest.Check(filepath.Join(dir, "r")); err != nil {
		t.Error(err)
	}
	saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
	name, r := fmt.Sprintf("pid %d (sh)", pid), saved.Result
	if r.Servers == nil || len(r.Servers.Processes) != 1 || r.Servers.Processes[0].Name != name || *r.Servers.Processes[0].CPUSeconds <= 0 {
		t.Fatalf("servers %+v", r.Servers)
	}
	if x := r.Efficiency; x == nil || x.MessagesPerCPUS == nil || *x.MessagesPerCPUS <= 0 || x.CostPerMillion == nil || *x.CostPerMillion < 0.5 {
		t.Errorf("efficiency %+v", x)
	}
	seconds, from := 0, int64(-1e9)
	for x, err := range saved.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		if seconds++; len(x.Processes) != 2 || x.Processes[0].Name != "weir" || x.Processes[1].Name != name || x.FromNS < from {
			t.Errorf("a sample of %+v", x.Processes)
		}
		from = x.ToNS
	}
	if seconds < 2 {
		t.Errorf("%d samples", seconds)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "r", result.FileReport)); err != nil || !strings.Contains(string(page), "processor: the host over time") {
		t.Errorf("the page does not draw the host (%v)", err)
	}
	if !strings.Contains(said, "host        ") && !strings.Contains(said, "processor") {
		t.Errorf("the report does not speak of the host:\n%s", said)
	}
}
