//go:build !linux

package network

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/weirmq/weir/result"
)

// Check returns an error: only Linux is supported.
func Check() error {
	return fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Inside returns false: there are no namespaces here.
func Inside() bool { return false }

// Enter returns Check's error.
func Enter(string, []byte) error { return Check() }

// OnHost calls f.
func OnHost(f func() error) error { return f() }

// Main returns Check's error.
func Main(context.Context, []string, io.Writer) error { return Check() }

// Fail does nothing.
func Fail(io.Writer, error) {}

// A Link cannot be created on this platform.
type Link struct{}

// Start returns Check's error.
func Start(context.Context, string, Spec) (*Link, error) { return nil, Check() }

// Network is never called on this platform.
func (*Link) Network() result.Network { return result.Network{} }

// Within is never called on this platform.
func (*Link) Within(f func() error) error { return f() }

// Done is never called on this platform.
func (*Link) Done() <-chan struct{} { return nil }

// Stop is never called on this platform.
func (*Link) Stop(context.Context) error { return nil }

// Cut is never called on this platform.
func (*Link) Cut(bool, bool) error { return Check() }

// Nodes is never called on this platform.
func (*Link) Nodes() []Node { return nil }

// Sever is never called on this platform.
func (*Link) Sever([]Pair) error { return Check() }

// Carried is never called on this platform.
func (*Link) Carried() (to, from Counts, err error) { return to, from, Check() }
