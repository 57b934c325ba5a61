package host

import (
	"io/fs"
	"os"
)

// MemoryAvailable returns how many bytes of memory a process may still take
// without swapping, as the kernel reckons; 0 where the host does not tell.
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
