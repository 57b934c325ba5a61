//go:build !linux && !darwin

package host

import "io/fs"

func osFacts(*Facts) {}

// readProcess reads what this process has used since it began: not known here.
func readProcess() process { return process{} }

// allocated is what a file takes, as far as is known here.
func allocated(info fs.FileInfo) uint64 { return uint64(max(0, info.Size())) }
