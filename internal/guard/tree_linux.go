package guard

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopt makes this process the one that orphans among its descendants come to.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// childAttributes: a process group of its own, so that the terminal's signals
// pass it by, and death with the guard, should that be killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// tree returns the living descendants of this process, which as subreaper has
// all that stem from the child. Zombies are left out: reaping is collect's.
func tree(_ int, _ *reaper) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	dead := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // gone meanwhile
		}
		// "pid (name) state ppid ...": the name may hold anything, so from its end.
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(f) < 2 {
			continue
		}
		ppid, err := strconv.Atoi(string(f[1]))
		if err != nil {
			continue
		}
		children[ppid] = append(children[ppid], pid)
		dead[pid] = f[0][0] == 'Z' || f[0][0] == 'X'
	}
	var found []int
	next := []int{os.Getpid()}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		for _, c := range children[at] {
			next = append(next, c)
			if !dead[c] {
				found = append(found, c)
			}
		}
	}
	return found
}
