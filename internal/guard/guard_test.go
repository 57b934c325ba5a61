//go:build unix

package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// The test binary plays every role: guard, weir, and the children, selected by this variable.
const role = "GUARD_TEST_ROLE"

// quick removes the 1 s pause at the exit of binaries built with the race detector.
const quick = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if code, ok := Main(os.Args); ok {
		os.Exit(code)
	}
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
	case "weir":
		playWeir()
	default:
		playChild(os.Getenv(role))
	}
}

// playWeir starts the child named by its argument, reports where, and waits to be killed.
func playWeir() {
	self, _ := os.Executable()
	dir, err := os.MkdirTemp(os.Args[2], "child")
	if err == nil {
		var p *Process
		p, err = Start(context.Background(), self, Spec{
			Args: []string{self}, Env: append(os.Environ(), role+"="+os.Args[1], quick), Dir: dir, RemoveDir: true, Grace: 200 * time.Millisecond,
		})
		if err == nil {
			fmt.Println(dir, p.Pid(), p.GuardPid())
			select {}
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// playChild writes its pid, and those of its children, to files in its folder.
func playChild(part string) {
	write := func(name string, pid int) {
		_ = os.WriteFile(name+".tmp", []byte(strconv.Itoa(pid)), 0o600)
		_ = os.Rename(name+".tmp", name)
	}
	fork := func(as string) {
		self, _ := os.Executable()
		c := exec.Command(self)
		c.Env = append(os.Environ(), role+"="+as, quick)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			panic(err)
		}
	}
	switch part {
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		write("pid", os.Getpid())
	case "parent": // with a grandchild that is not waited for, in its own session
		fork("middle")
		write("pid", os.Getpid())
	case "leaver": // leaves a daemon behind
		fork("grandchild")
		for exists("grandpid") != nil {
			time.Sleep(time.Millisecond)
		}
		os.Exit(7)
	case "orderly": // records which other processes get a signal before it ends
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fork("asked")
		for exists("grandpid") != nil {
			time.Sleep(time.Millisecond)
		}
		write("pid", os.Getpid())
		<-asked
		time.Sleep(100 * time.Millisecond)
		if exists("term") == nil {
			write("early", os.Getpid())
		}
		os.Exit(0)
	case "asked":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		write("grandpid", os.Getpid())
		<-asked
		write("term", os.Getpid())
		os.Exit(0)
	case "middle":
		fork("grandchild")
		os.Exit(0)
	case "grandchild":
		write("grandpid", os.Getpid())
	case "exit7":
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		os.Exit(7)
	case "exit0":
		os.Exit(0)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	default:
		write("pid", os.Getpid())
	}
	time.Sleep(5 * time.Minute) // so that a failed test leaves nothing for long
}

func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

// alive reports whether the process is running; zombies are not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	return !strings.Contains(string(b), ") Z")
}

func readPid(t *testing.T, path string) int {
	t.Helper()
	var pid int
	must.Until(t, path, func() bool {
		b, err := os.ReadFile(path)
		if err == nil {
			pid, err = strconv.Atoi(string(b))
		}
		return err == nil
	})
	return pid
}

// start starts a child with the given role and returns it with its folder.
func start(t *testing.T, part string, remove bool) (*Process, string) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	dir := filepath.Join(t.TempDir(), "child")
	must.Do(t, os.Mkdir(dir, 0o700))
	p := must.Get(Start(t.Context(), self, Spec{
		Args: []string{self}, Env: append(os.Environ(), role+"="+part, quick), Dir: dir, RemoveDir: remove, Grace: 200 * time.Millisecond,
	}))(t)
	t.Cleanup(func() {
		// The test may have killed the guard itself.
		if err := p.Stop(context.Background()); err != nil && part != "exit7" && part != "leaver" && part != "killed" && !strings.Contains(err.Error(), "signal: killed") {
			t.Error(err)
		}
	})
	return p, dir
}

// TestWellBehavedChildOnlyGetsSIGTERM: what it leaves behind gets its signal afterwards.
func TestWellBehavedChildOnlyGetsSIGTERM(t *testing.T) {
	if runtime.GOOS != "linux" {
		needs.Host(t, "linux", "processes that left their parent's group are found")
	}
	self := must.Get(os.Executable())(t)
	dir := t.TempDir()
	p := must.Get(Start(t.Context(), self, Spec{Args: []string{self}, Env: append(os.Environ(), role+"=orderly", quick), Dir: dir, Grace: time.Minute, Orderly: true}))(t)
	child, other := readPid(t, filepath.Join(dir, "pid")), readPid(t, filepath.Join(dir, "grandpid"))
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if exists(filepath.Join(dir, "early")) == nil || exists(filepath.Join(dir, "term")) != nil {
		t.Errorf("the other process was asked early (%v), or never (%v)", exists(filepath.Join(dir, "early")), exists(filepath.Join(dir, "term")))
	}
	if alive(child) || alive(other) {
		t.Error("a process is alive after Stop")
	}
}

func TestStopKillsProcessTreeAndRemovesFolder(t *testing.T) {
	for _, c := range []struct {
		part, name string
		grand      bool
	}{
		{"plain", "a child", false},
		{"stubborn", "a child that ignores SIGTERM", false},
		{"parent", "a grandchild that double-forked into a session of its own", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.grand && runtime.GOOS != "linux" {
				needs.Host(t, "linux", "a subreaper finds processes that left their group")
			}
			p, dir := start(t, c.part, true)
			pids := []int{readPid(t, filepath.Join(dir, "pid")), p.GuardPid()}
			if pids[0] != p.Pid() {
				t.Errorf("Pid() = %d; want %d", p.Pid(), pids[0])
			}
			if c.grand {
				pids = append(pids, readPid(t, filepath.Join(dir, "grandpid")))
			}
			must.Do(t, p.Stop(t.Context()))
			if err := p.Err(); err != nil {
				t.Errorf("Err() = %v; want nil after Stop", err)
			}
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %d is alive after Stop", pid)
				}
			}
			if err := exists(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("folder after Stop: %v; want none", err)
			}
			if err := p.Stop(t.Context()); err != nil {
				t.Errorf("second Stop: %v", err)
			}
		})
	}
}

func TestKilledGuardLeavesNothing(t *testing.T) {
	p, dir := start(t, "plain", true)
	must.Do(t, syscall.Kill(p.GuardPid(), syscall.SIGKILL))
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("not done within a minute")
	}
	if p.Err() == nil {
		t.Error("Err() = nil; want that the guard was killed")
	}
	must.Until(t, "the child is gone", func() bool { return !alive(p.Pid()) })
	if err := exists(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder: %v; want none", err)
	}
}

func TestKillingWeirKillsTreeAndRemovesFolder(t *testing.T) {
	self, _ := os.Executable()
	for _, part := range []string{"plain", "stubborn", "parent"} {
		t.Run(part, func(t *testing.T) {
			if part == "parent" && runtime.GOOS != "linux" {
				needs.Host(t, "linux", "a subreaper finds processes that left their group")
			}
			weir := exec.Command(self, part, t.TempDir())
			weir.Env = append(os.Environ(), role+"=weir", quick)
			out := must.Get(weir.StdoutPipe())(t)
			must.Do(t, weir.Start())
			line, _ := bufio.NewReader(out).ReadString('\n')
			f := strings.Fields(line)
			if len(f) != 3 {
				t.Fatalf("weir said %q", line)
			}
			pids := []int{readPid(t, filepath.Join(f[0], "pid"))}
			if part == "parent" {
				pids = append(pids, readPid(t, filepath.Join(f[0], "grandpid")))
			}
			guard, _ := strconv.Atoi(f[2])
			pids = append(pids, guard)
			// The guard must survive the signals of a terminal or a service manager.
			for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM} {
				_ = syscall.Kill(guard, s)
			}
			time.Sleep(20 * time.Millisecond)
			for _, pid := range pids {
				if !alive(pid) {
					t.Errorf("process %d is gone before weir is", pid)
				}
			}
			_ = weir.Process.Kill()
			_ = weir.Wait()
			must.Until(t, "all processes gone", func() bool {
				for _, pid := range pids {
					if alive(pid) {
						return false
					}
				}
				return true
			})
			if err := exists(f[0]); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("folder after kill -9 of weir: %v; want none", err)
			}
		})
	}
}

func TestChildExitIsReported(t *testing.T) {
	for _, c := range []struct {
		part string
		code int
	}{{"exit0", 0}, {"exit7", 7}, {"killed", 128 + 9}, {"leaver", 7}} {
		t.Run(c.part, func(t *testing.T) {
			if c.part == "leaver" && runtime.GOOS != "linux" {
				needs.Host(t, "linux", "a subreaper finds processes that left their group")
			}
			p, dir := start(t, c.part, c.part != "exit7")
			var grand int
			if c.part == "leaver" {
				b, _ := os.ReadFile(filepath.Join(dir, "grandpid"))
				grand, _ = strconv.Atoi(string(b))
			}
			select {
			case <-p.Done():
			case <-time.After(time.Minute):
				t.Fatal("Done is not closed")
			}
			code := 0
			var exit *ExitError
			if errors.As(p.Err(), &exit) {
				code = exit.Code
			} else if p.Err() != nil {
				t.Fatal(p.Err())
			}
			if code != c.code {
				t.Errorf("exit code %d; want %d", code, c.code)
			}
			if grand != 0 && alive(grand) {
				t.Errorf("the daemon %d that it left is alive", grand)
			}
			if c.part != "exit7" {
				if err := exists(dir); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("folder: %v; want none", err)
				}
				return
			}
			for file, want := range map[string]string{StdoutFile: "to stdout\n", StderrFile: "to stderr\n"} {
				if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(b) != want {
					t.Errorf("%s = %q, %v; want %q", file, b, err, want)
				}
			}
		})
	}
}

// Cancelling a start leaves nothing behind, whether the guard was running yet or not.
func TestAbandonedStartLeavesNothing(t *testing.T) {
	self := must.Get(os.Executable())(t)
	given := 0
	for i := range 40 {
		before, dir := children(t), t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*500*time.Microsecond)
		p, err := Start(ctx, self, Spec{Args: []string{self}, Env: append(os.Environ(), role+"=plain", quick), Dir: dir, Grace: 200 * time.Millisecond})
		cancel()
		switch {
		case err == nil:
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("given up after %d half milliseconds: %v; want the context's error", i, err)
		default:
			given++
		}
		for _, pid := range children(t) {
			if !slices.Contains(before, pid) {
				t.Errorf("given up after %d half milliseconds: process %s is left", i, pid)
			}
		}
	}
	if given == 0 {
		t.Error("no start was given up")
	}
}

// children returns the processes started by this one that have not been waited for, if the kernel
// reports them.
func children(t *testing.T) []string {
	t.Helper()
	all := must.Get(filepath.Glob("/proc/self/task/*/children"))(t)
	var pids []string
	for _, path := range all {
		b, _ := os.ReadFile(path) // a thread may have ended
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}

func TestStartRefuses(t *testing.T) {
	self, _ := os.Executable()
	dir := t.TempDir()
	notProgram := filepath.Join(dir, "text")
	must.Do(t, os.WriteFile(notProgram, []byte("no program"), 0o700))
	for _, c := range []struct {
		name, self, want string
		spec             Spec
	}{
		{"no program", self, "no program", Spec{Dir: dir}},
		{"no folder", self, "no folder", Spec{Args: []string{self}}},
		{"a folder that does not exist", self, "no such file", Spec{Args: []string{self}, Dir: dir + "/none"}},
		{"a program that does not exist", self, "executable file not found", Spec{Args: []string{"no-such-program-here"}, Dir: dir}},
		{"a program that cannot run", self, "exec format error", Spec{Args: []string{notProgram}, Dir: dir}},
		{"removal of the root", self, "will not remove /", Spec{Args: []string{self}, Dir: "/", RemoveDir: true}},
		{"a self that is not a guard", "/bin/true", "guard.Main", Spec{Args: []string{self}, Dir: dir}},
		{"a negative grace", self, "negative", Spec{Args: []string{self}, Dir: dir, Grace: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Start(t.Context(), c.self, c.spec)
			if err == nil {
				_ = p.Stop(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Start: %v; want an error with %q", err, c.want)
			}
		})
	}
}

// TestProcessGroupDiesWithTree uses a folder in place of a control group. Both are removed by rmdir.
func TestProcessGroupDiesWithTree(t *testing.T) {
	for name, end := range map[string]func(*Process){
		"stopped":             func(p *Process) { _ = p.Stop(t.Context()) },
		"the guard is killed": func(p *Process) { _ = syscall.Kill(p.GuardPid(), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			self := must.Get(os.Executable())(t)
			dir, group := t.TempDir(), filepath.Join(t.TempDir(), "group")
			p := must.Get(Start(t.Context(), self, Spec{Args: []string{self}, Env: append(os.Environ(), role+"=plain", quick), Dir: dir, Group: group, Grace: 200 * time.Millisecond}))(t)
			for _, one := range []string{"1", "shared"} { // created by the tree
				must.Do(t, os.MkdirAll(filepath.Join(group, one), 0o700))
			}
			end(p)
			select {
			case <-p.Done():
			case <-time.After(time.Minute):
				t.Fatal("not done within a minute")
			}
			if err := exists(group); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the group: %v; want none", err)
			}
		})
	}
}
