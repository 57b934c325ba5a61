package pace

import "golang.org/x/sys/unix"

// hostMonotonic reads CLOCK_UPTIME_RAW: mach_absolute_time in nanoseconds,
// which Go's monotonic time is read from too and which, as Linux's
// CLOCK_MONOTONIC and unlike macOS's, stands still while the host sleeps.
func hostMonotonic() (ns int64, ok bool) {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_UPTIME_RAW, &ts) != nil {
		return 0, false
	}
	return ts.Nano(), true
}

// BootID returns the kernel's identifier of the boot that the host runs in,
// or the empty string where it cannot be read.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
