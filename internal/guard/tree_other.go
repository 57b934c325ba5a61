//go:build unix && !linux

package guard

import "syscall"

// adopt does nothing: there are no subreapers here.
func adopt() error { return nil }

// childAttributes puts the child into its own process group, by which tree finds its members.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// tree returns the child's process group as a negative number, as kill takes it, while the group has
// members. It misses descendants that left the group.
func tree(pid int, _ *reaper) []int {
	if syscall.Kill(-pid, 0) == syscall.ESRCH {
		return nil
	}
	return []int{-pid}
}
