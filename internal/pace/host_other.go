//go:build !linux && !darwin

package pace

// hostMonotonic reports that no clock is known here that processes share.
func hostMonotonic() (ns int64, ok bool) { return 0, false }

// BootID returns the kernel's identifier of the boot that the host runs in,
// or the empty string where it cannot be read: here.
func BootID() string { return "" }
