//go:build unix

// Package guard starts child processes that cannot outlive this process.
//
// Between weir and a child stands a guard: weir's own binary, started with a hidden argument in its
// own session. It holds the read end of a pipe of which only weir has the write end. However weir ends
// (a return, a panic, kill -9), the kernel closes the write end and the guard reads EOF. It then sends
// SIGTERM to the whole tree, SIGKILL after a grace period, reaps everything and removes the child's
// folder. On Linux the guard is a child subreaper, so that it adopts processes that double-forked away
// from their parent. Elsewhere it reaches only those that stayed in the child's process group.
//
// PR_SET_PDEATHSIG alone is not enough: it follows the thread that forked, is cleared by set-user-ID
// programs and misses grandchildren. It is only the fallback in case the guard itself is killed.
//
// A program that starts guards must call Main before anything else.
package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// argument is the hidden first argument that turns a process into a guard.
const argument = "__guard"

// DefaultGrace is the time from SIGTERM to SIGKILL if Spec.Grace is 0.
const DefaultGrace = 5 * time.Second

// endLimit is how long a guard may take, beyond the grace, to end its tree.
const endLimit = 30 * time.Second

// Default output files in Spec.Dir, used if Spec.Stdout or Spec.Stderr is nil.
const (
	StdoutFile = "stdout.log"
	StderrFile = "stderr.log"
)

// Exit codes of a guard that failed. A child's own code may be the same; Process.Err distinguishes
// them by the line that the guard printed.
const (
	codeBadGuard = 125 // the guard was called wrongly or failed
	codeNotFound = 127 // the child could not be started
)

// A Spec describes a child process.
type Spec struct {
	Args      []string      // the program, looked up in PATH, and its arguments
	Env       []string      // as in os.Environ; nil: that of this process
	Dir       string        // the working folder, which must exist
	RemoveDir bool          // remove Dir and its content when the tree is gone
	Group     string        // path of a control group that the tree creates; removed with the tree; "": none
	Stdout    *os.File      // nil: StdoutFile in Dir; the caller may close it after Start
	Stderr    *os.File      // nil: StderrFile in Dir; likewise
	Grace     time.Duration // from SIGTERM to SIGKILL; 0: DefaultGrace
	Orderly   bool          // the program ends its own children: only those left behind get SIGTERM
}

// validate returns every fault in s, joined.
func (s *Spec) validate() error {
	var errs []error
	if len(s.Args) == 0 || s.Args[0] == "" {
		errs = append(errs, errors.New("no program"))
	}
	if s.Dir == "" {
		errs = append(errs, errors.New("no folder"))
	} else if st, err := os.Stat(s.Dir); err != nil {
		errs = append(errs, err)
	} else if !st.IsDir() {
		errs = append(errs, fmt.Errorf("%s is not a folder", s.Dir))
	}
	if s.Grace < 0 {
		errs = append(errs, fmt.Errorf("grace %v is negative", s.Grace))
	}
	return errors.Join(errs...)
}

// A Process is a child under its guard. Its methods are safe for concurrent use.
type Process struct {
	pid     int
	command string
	remove  string // folder to remove if the guard dies before it could; "" for none
	group   string // likewise, the control group
	cmd     *exec.Cmd
	done    chan struct{}
	err     error // written before done is closed

	mu      sync.Mutex
	life    *os.File // write end; closing it ends the tree
	stopped bool
}

// An ExitError reports that a child ended by itself, unsuccessfully.
type ExitError struct {
	Command string
	Code    int // exit code of the child; 128 + signal if it was killed
}

// Error returns the command and its exit code.
func (e *ExitError) Error() string { return fmt.Sprintf("%s: exit code %d", e.Command, e.Code) }

// Start starts spec's program under a guard. self is the path of a binary whose main calls Main first,
// usually os.Executable's. ctx bounds the start only; if it ends, Start returns once everything it
// started is gone, as after Stop. The process runs until it ends by itself, Stop is called, or this
// process is gone. The goroutine that waits for it ends with it.
func Start(ctx context.Context, self string, spec Spec) (_ *Process, err error) {
	if err := errors.Join(spec.validate(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	dir, err := filepath.Abs(spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if dir == "/" && spec.RemoveDir {
		return nil, errors.New("guard: will not remove /")
	}
	program, err := exec.LookPath(spec.Args[0])
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	grace := spec.Grace
	if grace == 0 {
		grace = DefaultGrace
	}

	var close3 []io.Closer // this process's copies of the guard's descriptors
	defer func() {
		for _, c := range close3 {
			_ = c.Close()
		}
	}()
	output := func(f *os.File, name string) (*os.File, error) {
		if f != nil {
			return f, nil
		}
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			close3 = append(close3, f)
		}
		return f, err
	}
	stdout, err := output(spec.Stdout, StdoutFile)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	stderr, err := output(spec.Stderr, StderrFile)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	// os.Pipe sets close-on-exec on both ends, so that no other child of this process keeps the write end
	// open.
	lifeR, lifeW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	close3 = append(close3, lifeR)
	defer func() {
		if err != nil {
			_ = lifeW.Close()
		}
	}()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	close3 = append(close3, statusW)

	cmd := exec.Command(self, append([]string{argument, grace.String(), dir, strconv.FormatBool(spec.RemoveDir), strconv.FormatBool(spec.Orderly), spec.Group, program}, spec.Args...)...)
	cmd.Dir = "/" // so that the guard keeps no folder busy
	cmd.Env = spec.Env
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.ExtraFiles = []*os.File{lifeR, statusW} // 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = statusR.Close()
		return nil, fmt.Errorf("guard: starting: %w", err)
	}
	p := &Process{command: filepath.Base(spec.Args[0]), cmd: cmd, done: make(chan struct{}), life: lifeW, group: spec.Group}
	if spec.RemoveDir {
		p.remove = dir
	}
	// Close our copy now, or EOF would never arrive.
	_ = statusW.Close()
	first := make(chan string, 1)
	status := bufio.NewReader(statusR)
	go func() {
		line, _ := status.ReadString('\n')
		first <- line
		rest, _ := io.ReadAll(status)
		_ = statusR.Close()
		p.finish(cmd.Wait(), strings.TrimSpace(string(rest)))
	}()
	select {
	case line := <-first:
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "pid" {
			p.mu.Lock()
			p.pid, err = strconv.Atoi(rest)
			p.mu.Unlock()
			if err == nil {
				return p, nil
			}
		}
		_ = lifeW.Close()
		<-p.done
		if rest == "" {
			rest = "the guard ended without a message; does the program call guard.Main?"
		}
		return nil, fmt.Errorf("guard: starting %s: %s", p.command, rest)
	case <-ctx.Done():
		// A guard ends when it reads EOF. A program that is not a guard may never do so.
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+endLimit)
		defer cancel()
		err := errors.Join(ctx.Err(), p.Stop(limit))
		_ = cmd.Process.Kill() // usually gone by now
		return nil, fmt.Errorf("guard: starting %s: %w", p.command, err)
	}
}

// finish records how the guard ended and closes done.
func (p *Process) finish(waited error, trouble string) {
	p.mu.Lock()
	stopped, pid := p.stopped, p.pid
	p.stopped = true
	_ = p.life.Close()
	p.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case trouble != "":
		p.err = fmt.Errorf("guard: %s: %s", p.command, trouble)
	case stopped || waited == nil:
	case errors.As(waited, &exit) && exit.Exited():
		p.err = &ExitError{p.command, exit.ExitCode()}
	default:
		// The guard itself was killed: clean up here, as far as the child's process group reaches.
		p.err = fmt.Errorf("guard: %w", waited)
		if pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		if p.remove != "" {
			p.err = errors.Join(p.err, os.RemoveAll(p.remove))
		}
		p.err = errors.Join(p.err, removeGroup(p.group))
	}
	close(p.done)
}

// Pid returns the process ID of the child, not of the guard.
func (p *Process) Pid() int { return p.pid }

// GuardPid returns the process ID of the guard.
func (p *Process) GuardPid() int { return p.cmd.Process.Pid }

// Done is closed when the child and all its descendants are gone and, if requested, its folder is
// removed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns, after Done, nil if the child was stopped or ended with code 0, an *ExitError if it
// ended by itself otherwise, and any other error if the guard could not do all of its work. Before
// Done it returns nil.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop ends the child and all its descendants: SIGTERM, then SIGKILL after the grace. It returns when
// they are gone, or with ctx's error while they are still ending. It is idempotent.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	if !p.stopped {
		p.stopped = true
		_ = p.life.Close()
	}
	p.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("guard: stopping %s: %w", p.command, ctx.Err())
	}
}

// removeGroup removes a control group with its subgroups. It retries for a while, since killed
// processes may still be in one. A missing group is not an error.
func removeGroup(path string) error {
	if path == "" {
		return nil
	}
	var err error
	for range 100 {
		below, _ := filepath.Glob(filepath.Join(path, "*/"))
		for _, one := range append(below, path) {
			if err = syscall.Rmdir(one); errors.Is(err, syscall.ENOENT) {
				err = nil
			}
		}
		if err == nil {
			return nil
		}
		time.Sleep(killPause)
	}
	return fmt.Errorf("removing control group %s: %w", path, err)
}
