package broker

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/proctree"
)

// descendants returns a process and all its descendants whose parents are still alive.
func descendants(pid int) []int {
	below := proctree.Below(proctree.All(proctree.Host()), pid)
	slices.Sort(below)
	return append([]int{pid}, below...)
}

// dieWithParent makes the kernel kill a child when the thread that started it ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// beginIn starts a child, and everything that it starts, in a control group.
func beginIn(a *syscall.SysProcAttr, group *os.File) {
	a.UseCgroupFD, a.CgroupFD = true, int(group.Fd())
}

// inSpace calls f in the network namespace at path; "" is the thread's own. The calling goroutine is
// locked to its thread.
func inSpace(path string, f func() error) error {
	if path == "" {
		return f()
	}
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(own) }()
	other, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(other) }()
	if err := unix.Setns(other, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network of a node: %w", err)
	}
	err = f()
	return errors.Join(err, unix.Setns(own, unix.CLONE_NEWNET))
}
