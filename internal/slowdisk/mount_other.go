//go:build !linux

package slowdisk

import (
	"fmt"
	"runtime"
)

// Check returns an error: only Linux is supported.
func Check(string, string) error {
	return fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

type mounted struct{ lag lag }

func mount(below, at string) (*mounted, error) { return nil, Check(below, at) }

func (*mounted) end() {}

func alone() {}
