//go:build unix

package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Inherited descriptors of a guard.
const (
	fdLife   = 3 // read end: EOF when weir is gone
	fdStatus = 4 // write end: "pid N", then nothing or an error
)

// killPasses bounds the attempts to kill processes that fork as fast as they are killed. A pass takes
// at least killPause: 5 s in total.
const (
	killPasses = 500
	killPause  = 10 * time.Millisecond
)

// Main turns this process into a guard if args (os.Args) say so, and then returns its exit code and
// true. It must be called before flags are parsed, goroutines are started or signals are caught. The
// code is that of a child that ended by itself, or 128 + signal if a signal killed it.
func Main(args []string) (code int, handled bool) {
	if len(args) < 2 || args[1] != argument {
		return 0, false
	}
	status := os.NewFile(fdStatus, "status")
	life := os.NewFile(fdLife, "life")
	if status == nil || life == nil || len(args) < 9 {
		fmt.Fprintln(os.Stderr, "weir guard: not started by guard.Start")
		return codeBadGuard, true
	}
	// The child must inherit neither: it would keep the status pipe open, and has no use for the other.
	syscall.CloseOnExec(fdLife)
	syscall.CloseOnExec(fdStatus)
	grace, err1 := time.ParseDuration(args[2])
	remove, err2 := strconv.ParseBool(args[4])
	orderly, err3 := strconv.ParseBool(args[5])
	if err := errors.Join(err1, err2, err3); err != nil {
		fmt.Fprintln(status, "error", err)
		return codeBadGuard, true
	}
	g := &warden{dir: args[3], remove: remove, orderly: orderly, group: args[6], grace: grace, life: life, status: status}
	return g.run(args[7], args[8:]), true
}

// A warden is the state of a guard process.
type warden struct {
	dir     string
	remove  bool
	orderly bool
	group   string // control group to remove; "": none
	grace   time.Duration
	life    *os.File
	status  io.WriteCloser
}

// run starts the child, waits until it or weir ends, and cleans up.
func (w *warden) run(program string, args []string) int {
	// PDEATHSIG follows the forking thread, so that thread must stay.
	runtime.LockOSThread()
	// Caught rather than ignored, because the child would inherit an ignored signal. weir decides when the
	// tree ends: Ctrl-C or a service stop reaches weir too, which drains first.
	catch := make(chan os.Signal, 8)
	signal.Notify(catch, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGABRT)
	go func() {
		for range catch {
		}
	}()
	reap := make(chan os.Signal, 1)
	signal.Notify(reap, syscall.SIGCHLD)
	if err := adopt(); err != nil {
		fmt.Fprintln(w.status, "error", oneLine(err))
		return codeBadGuard
	}
	// The guard's standard input is the null device (os/exec), and so is the child's.
	child, err := os.StartProcess(program, args, &os.ProcAttr{
		Dir: w.dir, Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: childAttributes(),
	})
	if err != nil {
		w.clear()
		fmt.Fprintln(w.status, "error", oneLine(err))
		return codeNotFound
	}
	pid := child.Pid
	_ = child.Release() // reaped below, with all others
	fmt.Fprintln(w.status, "pid", pid)

	gone := make(chan struct{})
	go func() {
		// weir never writes: this returns when weir's end is closed.
		_, _ = io.Copy(io.Discard, w.life)
		close(gone)
	}()
	r := &reaper{child: pid}
	for !r.ended {
		select {
		case <-reap:
			r.collect()
		case <-gone:
			w.end(pid, r, reap)
			return 0
		}
	}
	// The child ended by itself; remove what it left behind.
	code := r.code
	w.end(pid, r, reap)
	return code
}

// end stops what is left of the tree and removes the folder.
func (w *warden) end(pid int, r *reaper, reap <-chan os.Signal) {
	r.collect()
	deadline := time.NewTimer(w.grace)
	defer deadline.Stop()
	poll := time.NewTicker(killPause)
	defer poll.Stop()
	asked := map[int]bool{} // one SIGTERM each: a process may take a second one as "at once"
	for expired := false; !expired; {
		left := tree(pid, r)
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			if w.orderly && p != pid && slices.Contains(left, pid) {
				continue // the child ends it
			}
			if !asked[p] {
				asked[p] = true
				_ = syscall.Kill(p, syscall.SIGTERM)
				// A stopped process handles signals only once continued.
				_ = syscall.Kill(p, syscall.SIGCONT)
			}
		}
		select {
		case <-reap:
		case <-poll.C:
		case <-deadline.C:
			expired = true
		}
		r.collect()
	}
	for range killPasses {
		left := tree(pid, r)
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		select {
		case <-reap:
		case <-poll.C:
		}
		r.collect()
	}
	if left := tree(pid, r); len(left) > 0 {
		fmt.Fprintf(w.status, "processes %v could not be ended\n", left)
	}
	w.clear()
}

// clear removes the control group and the folder, if requested. It retries a few times, since a dying
// process may still create files.
func (w *warden) clear() {
	if err := removeGroup(w.group); err != nil {
		fmt.Fprintln(w.status, oneLine(err))
	}
	if !w.remove || !filepath.IsAbs(w.dir) || w.dir == "/" {
		return
	}
	var err error
	for range 20 {
		if err = os.RemoveAll(w.dir); err == nil {
			return
		}
		time.Sleep(killPause)
	}
	fmt.Fprintln(w.status, oneLine(err))
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// A reaper collects ended children, including adopted ones.
type reaper struct {
	child int
	ended bool // whether the child proper has ended
	code  int  // its exit code
}

// collect reaps all ended children without waiting.
func (r *reaper) collect() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if pid == r.child {
			r.ended = true
			r.code = ws.ExitStatus()
			if ws.Signaled() {
				r.code = 128 + int(ws.Signal())
			}
		}
	}
}
