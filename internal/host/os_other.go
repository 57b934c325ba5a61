//go:build !linux && !darwin

package host

func osFacts(*Facts) {}

// readProcess reads what this process has used since it began: not known here.
func readProcess() process { return process{} }
