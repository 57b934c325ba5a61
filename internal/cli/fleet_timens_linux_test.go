package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// One of two agents of this host is in a time namespace, where the kernel's monotonic clock is 5,000 s
// ahead: it must count as a different clock, and its messages must have end-to-end times.
func TestAnAgentInATimeNamespace(t *testing.T) {
	t.Parallel()
	unshare := []string{"unshare", "--time", "--fork", "--kill-child", "--monotonic", "5000", "--boottime", "5000"}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		needs.Host(t, "timens", fmt.Sprintf("%v: %s", err, out))
	}
	server := meeting(t)
	where := "nats://" + strings.TrimPrefix(server, "nats://")
	agents(t, where, map[string]string{"b": ""})
	dir := t.TempDir()
	far := exec.Command(unshare[0], append(unshare[1:], filepath.Join(withWeir(t), "weir"), "agent", "--join", where, "--name", "a")...)
	far.Dir, far.Env = dir, append(os.Environ(), "TMPDIR="+t.TempDir())
	said := &watch{}
	far.Stdout, far.Stderr = said, said
	must.Do(t, startTied(far, func() error { return nil }))
	t.Cleanup(func() {
		_ = far.Process.Kill()
		_ = far.Wait()
	})
	stdout, stderr := &watch{}, &watch{}
	code := Main(t.Context(), World{
		Args: []string{
			"run", "--fleet", "2", "--nats", where, "--driver", "jetstream", "--address", server, "--placement", "{producers: [a], consumers: [b]}",
			"--rate", "200/s", "--warmup", "500ms", "--measure", "2s", "--drain", "60s", "--out", "r", "--quiet",
		},
		Env:    func(name string) (string, bool) { return filepath.Join(dir, "fleet"), name == admission.VariableDir },
		Stdout: stdout, Stderr: stderr, Dir: dir, Drivers: all.Definitions(),
	})
	if code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s%s\n%s", code, stdout, stderr, said)
	}
	saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
	r := saved.Result
	if m := r.MessagesAll; m.Scheduled != 500 || m.Delivered != 500 {
		t.Errorf("%+v", m)
	}
	const ahead = int64(5000e9)
	a, b := r.Agents[0].Clock, r.Agents[1].Clock
	if bound := a.BoundNS; a.Same || bound == nil || max(a.OffsetNS+ahead, -a.OffsetNS-ahead) > *bound {
		t.Errorf("its clock is %+v; want 5,000 s ahead, within a bound", a)
	}
	if !b.Same {
		t.Errorf("the other's is %+v; want the coordinator's own", b)
	}
	if d := r.Latency.E2E.Response; d == nil || d.Count != 400 || d.ClockBoundNS == nil {
		t.Errorf("e2e %+v; want 400 with a bound", d)
	}
}
