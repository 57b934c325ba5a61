//go:build !linux

package netpartition

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

// Path refuses every host but Linux.
func Path(string) (string, error) {
	return "", fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Check does what Path does.
func Check(context.Context, string) error { return refused() }

func refused() error {
	_, err := Path("")
	return err
}

// Make does what Path does.
func Make(string, int) error { return refused() }

// Open does what Path does.
func Open(string, int) (*os.File, error) { return nil, refused() }

func enter(string) error { return refused() }

// A Cutter is never made here.
type Cutter struct{}

// New does what Path does.
func New(string, int) (*Cutter, error) { return nil, refused() }

// Part does what Path does.
func (*Cutter) Part([][2]int) error { return refused() }

// Close does nothing.
func (*Cutter) Close() error { return nil }
