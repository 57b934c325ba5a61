//go:build !linux

package sever

import (
	"fmt"
	"runtime"
)

// Check refuses every host but Linux.
func Check() error {
	return fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Reset does what Check does.
func Reset(Group, []int, []int) (int, error) { return 0, Check() }
