package guard

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/proctree"
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
	all := proctree.All(proctree.Host())
	return slices.DeleteFunc(proctree.Below(all, os.Getpid()), func(pid int) bool { return all[pid].Dead() })
}
