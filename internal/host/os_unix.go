//go:build linux || darwin

package host

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// osFacts fills in what the system calls of any Unix tell.
func osFacts(f *Facts) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		f.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		f.OpenFiles, f.OpenFilesHard = &limit.Cur, &limit.Max
	}
}

// readProcess reads what this process has used since it began.
func readProcess() process {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return process{}
	}
	return process{
		userNS:      known(u.Utime.Nano()),
		systemNS:    known(u.Stime.Nano()),
		majorFaults: known(u.Majflt),
		voluntary:   known(u.Nvcsw),
		involuntary: known(u.Nivcsw),
	}
}

// known is a counter that the system told; its type differs between systems.
func known[T int32 | int64](n T) counter { return counter{uint64(max(0, n)), true} }

// allocated is what a file takes on its disk: holes take nothing.
func allocated(info fs.FileInfo) uint64 {
	const block = 512 // whatever the file system's own is
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(max(0, s.Blocks)) * block
	}
	return uint64(max(0, info.Size()))
}
