//go:build !systems

package jetstream

// servedMain is for the tests against servers that weir installs.
func servedMain() {}
