package host

import (
	"io/fs"
	"os"
)

// MemoryAvailable returns the kernel's estimate of how many bytes a process can still allocate without
// swapping; 0 if the host does not report it.
func MemoryAvailable() uint64 {
	b, err := fs.ReadFile(os.DirFS("/"), "proc/meminfo")
	if err != nil {
		return 0
	}
	if kb := kilobytes(string(b), "MemAvailable"); kb != nil {
		return *kb
	}
	return 0
}
