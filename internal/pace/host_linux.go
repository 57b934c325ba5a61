package pace

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// hostMonotonic reads CLOCK_MONOTONIC, from which Go's monotonic time is read too
// (runtime.nanotime1 of Go for Linux).
func hostMonotonic() (ns int64, ok bool) {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0, false
	}
	return ts.Nano(), true
}

// BootID returns the kernel's identifier of the current boot, or "" if it cannot be read. It reads
// one small file.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
