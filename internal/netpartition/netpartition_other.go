//go:build !linux

package netpartition

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

// Path returns an error: only Linux is supported.
func Path(string) (string, error) {
	return "", fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Check returns Path's error.
func Check(context.Context, string) error { return refused() }

func refused() error {
	_, err := Path("")
	return err
}

// Make returns Path's error.
func Make(string, int) error { return refused() }

// Open returns Path's error.
func Open(string, int) (*os.File, error) { return nil, refused() }

func enter(string) error { return refused() }

// A Cutter cannot be created on this platform.
type Cutter struct{}

// New returns Path's error.
func New(string, int) (*Cutter, error) { return nil, refused() }

// Part returns Path's error.
func (*Cutter) Part([][2]int) error { return refused() }

// Close does nothing.
func (*Cutter) Close() error { return nil }
