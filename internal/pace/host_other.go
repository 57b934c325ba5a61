//go:build !linux && !darwin

package pace

// hostMonotonic reports that this platform has no known clock that processes share.
func hostMonotonic() (ns int64, ok bool) { return 0, false }

// BootID returns "": the boot is unknown on this platform.
func BootID() string { return "" }
