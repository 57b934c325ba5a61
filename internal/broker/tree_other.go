//go:build unix && !linux

package broker

import (
	"os"
	"syscall"
)

// descendants returns only the process itself: listing its children would require another program
// here.
func descendants(pid int) []int { return []int{pid} }

// dieWithParent does nothing: this kernel has no equivalent.
func dieWithParent(*syscall.SysProcAttr) {}

// beginIn does nothing: only Linux has control groups.
func beginIn(*syscall.SysProcAttr, *os.File) {}

// inSpace calls f: only Linux has network namespaces.
func inSpace(_ string, f func() error) error { return f() }
