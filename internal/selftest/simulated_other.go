//go:build !linux

package selftest

import "errors"

// SystemMain runs a simulated system in a process of its own, on Linux only.
func SystemMain([]string) error { return errors.New("internal simulated: only on Linux") }
