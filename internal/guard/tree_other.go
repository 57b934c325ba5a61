//go:build unix && !linux

package guard

import "syscall"

// adopt does nothing: there is no subreaper here.
func adopt() error { return nil }

// childAttributes: a process group of its own, by which tree finds its members.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// tree returns the child's process group, as the negative number that kill
// takes, while anybody is in it. A descendant that left the group is missed.
func tree(pid int, _ *reaper) []int {
	if syscall.Kill(-pid, 0) == syscall.ESRCH {
		return nil
	}
	return []int{-pid}
}
