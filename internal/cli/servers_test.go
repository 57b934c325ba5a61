package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

func TestRunReportsServerUsage(t *testing.T) {
	t.Parallel()
	f := &flight{args: []string{"run", "--driver", "jetstream", "--rate", "500/s", "--warmup", "100ms", "--measure", "1s", "--full", "--out", "r"}}
	if code := f.fly(t); code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d; want 0 or 5\n%s", code, &f.stderr)
	}
	saved := must.Get(result.Read(filepath.Join(f.dir, "r")))(t)
	env := must.Get(saved.Environment())(t)
	started, s := env.System.Started.Processes[0], saved.Result.Servers
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		if s != nil {
			t.Errorf("without /proc: %+v", s)
		}
		return
	}
	if s == nil || len(s.Processes) != 1 || s.SpanS <= 0 {
		t.Fatalf("servers: %+v", s)
	}
	p := s.Processes[0]
	if p.Name != started.Name || p.Node != 1 || len(p.Pids) == 0 || p.Pids[0] != started.Pids[0] {
		t.Errorf("%+v; started was %+v", p, started)
	}
	if p.CPUSeconds == nil || p.RSSMaxBytes == nil || p.DiskBytes == nil {
		t.Fatalf("it used %+v", p)
	}
	// 550 messages of 1 KiB are sent. On a busy host some are stored after the window, when its disk was looked at.
	if *p.RSSMaxBytes < 1<<20 || *p.DiskBytes < 64<<10 {
		t.Errorf("it had %d bytes of memory and %d on its disk", *p.RSSMaxBytes, *p.DiskBytes)
	}
	if !strings.Contains(f.stdout.String(), "\nservers     used ") {
		t.Errorf("the report does not say so:\n%s", &f.stdout)
	}
}

func TestKilledServerIsRecordedAsEvent(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	var pid int
	f := &flight{
		args: []string{"run", "--driver", "jetstream", "--rate", "100/s", "--warmup", "500ms", "--measure", "2s", "--drain", "1s", "--out", "r"},
		on:   "measuring",
	}
	f.then = func(*os.Process) {
		saved, err := result.Open(filepath.Join(f.dir, "r"))
		if err != nil {
			t.Error(err)
			return
		}
		env, err := saved.Environment()
		if err != nil {
			t.Error(err)
			return
		}
		pid = env.System.Started.Processes[0].Pids[0]
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	code := f.fly(t)
	if code == int(OK) {
		t.Errorf("exit code %d", code)
	}
	saved := must.Get(result.Open(filepath.Join(f.dir, "r")))(t)
	want := fmt.Sprintf("jetstream on node 1 (pid %d) ended: signal: killed", pid)
	found := 0
	for ev, err := range saved.Events() {
		if err != nil {
			t.Error(err)
		}
		if ev.Kind == "server" {
			found++
			if ev.Text != want || ev.TNS <= 0 {
				t.Errorf("event %+v; want %q, in the run", ev, want)
			}
		}
	}
	if found != 1 || strings.Count(f.stderr.String(), "the system: "+want) != 1 {
		t.Errorf("%d events of the server; said\n%s", found, &f.stderr)
	}
	line := regexp.MustCompile(`(?m)^weir: jetstream ended by itself \d+\.\d s into the run: killed \(signal 9\)$`)
	if n := len(line.FindAllString(f.stderr.String(), -1)); n != 1 || strings.Contains(f.stderr.String(), "stopping jetstream") {
		t.Errorf("told of %d times at the end:\n%s", n, &f.stderr)
	}
}
