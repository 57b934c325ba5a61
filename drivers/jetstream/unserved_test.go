//go:build !systems

package jetstream

// servedMain does nothing without servers to install.
func servedMain() {}
