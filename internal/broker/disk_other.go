//go:build unix && !linux

package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// ErrNoDisks is returned when this host does not let weir give servers their own disks.
var ErrNoDisks = errors.New("this host does not let weir give servers disks of their own")

const diskBytes = 0

// CheckDisks returns an error: only Linux is supported.
func CheckDisks(context.Context) error {
	return fmt.Errorf("%w: it needs Linux, and this is %s", ErrNoDisks, runtime.GOOS)
}

// CheckSlowDisks returns an error: only Linux is supported.
func CheckSlowDisks() error { return CheckDisks(context.Background()) }

func apartMounts() error { return CheckDisks(context.Background()) }

func mountDisk(ctx context.Context, _ *host, _, _ string, _ int64) error { return CheckDisks(ctx) }

type filler struct{}

func fill(string) (*filler, error) { return nil, CheckDisks(context.Background()) }

func (*filler) empty() error { return nil }
