//go:build !linux

package tcpreset

import (
	"fmt"
	"net/netip"
	"runtime"
)

// Check refuses every host but Linux.
func Check() error {
	return fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Reset does what Check does.
func Reset(Group, []int, []int) (int, error) { return 0, Check() }

// ResetTo does what Check does.
func ResetTo(Group, []int, []netip.AddrPort) (int, error) { return 0, Check() }

// Ports finds none.
func Ports([]int) []uint16 { return nil }
