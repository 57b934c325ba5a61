//go:build !linux

package wire

import (
	"fmt"
	"runtime"
)

// A tap cannot be opened on this platform.
type tap struct{ beside int }

func openTap() (*tap, error) {
	return nil, fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Opened returns no sockets on this platform.
func Opened() Sockets { return nil }

func (*tap) ignore(Sockets)            {}
func (*tap) enable(bool) error         { return nil }
func (*tap) scan() int                 { return 0 }
func (*tap) read(func(*segment)) error { return nil }
func (*tap) lost() uint64              { return 0 }
func (*tap) close() error              { return nil }

func processorTime() int64 { return 0 }

func threadTime() int64 { return 0 }
