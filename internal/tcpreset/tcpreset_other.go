//go:build !linux

package tcpreset

import (
	"fmt"
	"net/netip"
	"runtime"
)

// Check returns an error: only Linux is supported.
func Check() error {
	return fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Reset returns Check's error.
func Reset(Group, []int, []int) (int, error) { return 0, Check() }

// ResetTo returns Check's error.
func ResetTo(Group, []int, []netip.AddrPort) (int, error) { return 0, Check() }

// Ports returns nothing on this platform.
func Ports([]int) []uint16 { return nil }
