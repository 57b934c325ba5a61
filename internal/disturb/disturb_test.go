//go:build unix

package disturb

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/proctree"
)

// role makes the test binary start two spinning programs, print the process IDs of their guards, and wait.
const role = "WEIR_DISTURB_TEST_SPIN"

func TestMain(m *testing.M) {
	if code, handled := guard.Main(os.Args); handled {
		os.Exit(code)
	}
	if os.Getenv(role) != "" {
		os.Exit(spinAndWait())
	}
	os.Exit(m.Run())
}

func spinAndWait() int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	_ = os.Unsetenv(role)
	d, err := New(self, Spec{Kind: Spin})
	if err == nil {
		_, err = d.Start(context.Background(), 0)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	select {}
}

func self(t *testing.T) string {
	t.Helper()
	return must.Get(os.Executable())(t)
}

// spinning returns the spinning programs below a process.
func spinning(pid int) (pids []int) {
	all := proctree.All(proctree.Host())
	for _, p := range proctree.Below(all, pid) {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(p) + "/cmdline")
		if strings.Contains(string(line), "while :") && !strings.Contains(string(line), "__guard") && !all[p].Dead() {
			pids = append(pids, p)
		}
	}
	return pids
}

func TestSpinnersEndWithDisturbance(t *testing.T) {
	needs.Time(t)
	d := must.Get(New(self(t), Spec{Kind: Spin}))(t)
	end := must.Get(d.Start(t.Context(), os.Getpid()))(t)
	if got := spinning(os.Getpid()); len(got) != spinners {
		t.Errorf("%d programs spin; want %d", len(got), spinners)
	}
	must.Get(end())(t)
	if got := spinning(os.Getpid()); len(got) != 0 {
		t.Errorf("processes %v still spin", got)
	}
}

func TestSpinnersEndWhenDisturberIsKilled(t *testing.T) {
	needs.Time(t)
	cmd := exec.CommandContext(t.Context(), self(t))
	cmd.Env = append(os.Environ(), role+"=yes")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	pids := spinning(cmd.Process.Pid)
	if len(pids) != spinners {
		t.Errorf("%d programs spin; want %d", len(pids), spinners)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil && !dead(pid) {
			if t.Context().Err() != nil {
				t.Fatalf("process %d still spins", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func dead(pid int) bool {
	p, ok := proctree.All(proctree.Host())[pid]
	return !ok || p.Dead()
}

// The stopped process continues when the disturbance ends.
func TestStoppedProcessGoesOn(t *testing.T) {
	needs.Time(t)
	p := must.Get(guard.Start(t.Context(), self(t), guard.Spec{Args: []string{"sleep", "300"}, Dir: t.TempDir(), Grace: time.Second}))(t)
	defer func() {
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	d := must.Get(New(self(t), Spec{Kind: Stop, Every: 25 * time.Millisecond}))(t)
	end := must.Get(d.Start(t.Context(), p.Pid()))(t)
	state := func() string {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/stat")
		_, after, _ := strings.Cut(string(stat), ") ")
		return after[:min(1, len(after))]
	}
	for state() != "T" && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	effect, err := end()
	if err != nil || effect.Stops < 1 || effect.StoppedNS < int64(effect.Stops)*int64(stopFor) {
		t.Errorf("%+v, %v", effect, err)
	}
	for state() != "S" && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// A folder stands for a hierarchy of control groups.
func TestGroupHasQuota(t *testing.T) {
	for _, tc := range []struct {
		name  string
		v2    bool
		files map[string]string
	}{
		{"version 2", true, map[string]string{"cpu.max": "5000 20000"}},
		{"version 1", false, map[string]string{"cpu.cfs_period_us": "20000", "cpu.cfs_quota_us": "5000"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(root, members), nil, 0o600))
			in := Groups{V1: []string{filepath.Join(root, "none"), root}}
			if tc.v2 {
				in = Groups{V2: []string{filepath.Join(root, "none"), root}}
			}
			group, err := throttled(in, 0.25)
			if err != nil || filepath.Dir(group) != root {
				t.Fatalf("%q, %v", group, err)
			}
			for name, want := range tc.files {
				if got, err := os.ReadFile(filepath.Join(group, name)); string(got) != want {
					t.Errorf("%s: %q, %v; want %q", name, got, err, want)
				}
			}
		})
	}
	t.Run("nowhere", func(t *testing.T) {
		if group, err := throttled(Groups{V2: []string{t.TempDir()}}, 0.25); group != "" || err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q, %v; want one line that says what is missing", group, err)
		}
	})
}

func TestThrottledCommandJoinsItsGroup(t *testing.T) {
	group := t.TempDir()
	d := &Disturbance{group: group}
	command := d.Command("sh", "-c", "echo $$ $0", "word")
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).Output()
	joined, _ := os.ReadFile(filepath.Join(group, members))
	if pid := strings.TrimSpace(string(joined)); err != nil || string(out) != pid+" word\n" {
		t.Errorf("%q, %v; process %q joined", out, err, pid)
	}
	if got := d.Outside(); got != filepath.Dir(group) {
		t.Errorf("outside is %q", got)
	}
}
