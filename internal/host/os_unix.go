//go:build linux || darwin

package host

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// osFacts fills in what system calls common to Unix report.
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

// readProcess reads this process's usage since it started.
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

// known returns a counter with a value; its type differs between systems.
func known[T int32 | int64](n T) counter { return counter{uint64(max(0, n)), true} }

// allocated returns a file's disk usage: holes use nothing.
func allocated(info fs.FileInfo) uint64 {
	const block = 512 // independent of the file system's block size
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(max(0, s.Blocks)) * block
	}
	return uint64(max(0, info.Size()))
}
