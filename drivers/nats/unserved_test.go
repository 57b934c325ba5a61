//go:build !systems

package nats

// servedMain is for the tests against servers that weir installs.
func servedMain() {}
