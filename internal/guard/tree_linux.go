package guard

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/proctree"
)

// adopt makes this process the subreaper of its descendants.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// childAttributes puts the child into its own process group, so that terminal signals do not reach it,
// and has it killed if the guard is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// tree returns the living descendants of this process, which as a subreaper has all descendants of the
// child. It excludes zombies, which collect reaps.
func tree(_ int, _ *reaper) []int {
	all := proctree.All(proctree.Host())
	return slices.DeleteFunc(proctree.Below(all, os.Getpid()), func(pid int) bool { return all[pid].Dead() })
}
