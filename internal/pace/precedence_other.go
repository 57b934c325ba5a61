//go:build !linux

package pace

import (
	"fmt"
	"runtime"
)

// A precedence is unavailable on these platforms.
type precedence struct{}

func precede() (*precedence, error) {
	return nil, fmt.Errorf("%w: it is Linux's, and this is %s", ErrNoFIFO, runtime.GOOS)
}

func (*precedence) take() error { return ErrNoFIFO }
func (*precedence) give() error { return nil }
func (*precedence) end() error  { return nil }
func (*precedence) used() int64 { return 0 }
