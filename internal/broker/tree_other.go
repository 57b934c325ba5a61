//go:build unix && !linux

package broker

import (
	"os"
	"syscall"
)

// descendants returns the process alone: who stems from it cannot be asked here
// without running another program.
func descendants(pid int) []int { return []int{pid} }

// dieWithParent does nothing: the kernel has no such service here.
func dieWithParent(*syscall.SysProcAttr) {}

// beginIn does nothing: only Linux has control groups.
func beginIn(*syscall.SysProcAttr, *os.File) {}

// inSpace calls f: only Linux has network namespaces.
func inSpace(_ string, f func() error) error { return f() }
