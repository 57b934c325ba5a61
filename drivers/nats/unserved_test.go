//go:build !systems

package nats

// servedMain does nothing without servers to install.
func servedMain() {}
