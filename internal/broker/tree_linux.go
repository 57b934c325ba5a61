package broker

import (
	"slices"
	"syscall"

	"github.com/weirmq/weir/internal/proctree"
)

// descendants returns a process and all that stem from it, as long as their
// parents live.
func descendants(pid int) []int {
	below := proctree.Below(proctree.All(proctree.Host()), pid)
	slices.Sort(below)
	return append([]int{pid}, below...)
}

// dieWithParent has the kernel kill a child when the thread that started it ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
