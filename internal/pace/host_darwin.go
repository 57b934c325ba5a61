package pace

import "golang.org/x/sys/unix"

// hostMonotonic reads CLOCK_UPTIME_RAW: mach_absolute_time in nanoseconds, from which Go's
// monotonic time is read too. It stands still while the host sleeps, as Linux's CLOCK_MONOTONIC
// does and macOS's does not.
func hostMonotonic() (ns int64, ok bool) {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_UPTIME_RAW, &ts) != nil {
		return 0, false
	}
	return ts.Nano(), true
}

// BootID returns the kernel's identifier of the current boot, or "" if it cannot be read.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
