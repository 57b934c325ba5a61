//go:build !linux && !darwin

package host

import "io/fs"

func osFacts(*Facts) {}

// readProcess returns nothing: this platform is not supported.
func readProcess() process { return process{} }

// allocated returns the size of a file: its disk usage is not known on this platform.
func allocated(info fs.FileInfo) uint64 { return uint64(max(0, info.Size())) }
