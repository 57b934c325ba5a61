//go:build !linux && !darwin

package host

func platformFacts(*Facts) {}
