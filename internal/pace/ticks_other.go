//go:build !(linux && (amd64 || arm64))

package pace

func ticksOrdered() uint64   { return 0 }
func ticksUnordered() uint64 { return 0 }

// counterName: no counter of this platform has been tried.
func counterName() string { return "" }
