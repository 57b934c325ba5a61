//go:build !linux

package network

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/weirmq/weir/result"
)

// Check refuses every host but Linux.
func Check() error {
	return fmt.Errorf("%w: it needs Linux, and this is %s", ErrMissing, runtime.GOOS)
}

// Inside is false: no process is in a namespace here.
func Inside() bool { return false }

// Enter does what Check does.
func Enter(string, []byte) error { return Check() }

// OnHost calls f.
func OnHost(f func() error) error { return f() }

// Main does what Check does.
func Main(context.Context, []string, io.Writer) error { return Check() }

// Fail does nothing.
func Fail(io.Writer, error) {}

// A Link is never made here.
type Link struct{}

// Start does what Check does.
func Start(context.Context, string, Spec) (*Link, error) { return nil, Check() }

// Network is of no use here.
func (*Link) Network() result.Network { return result.Network{} }

// Within is of no use here.
func (*Link) Within(f func() error) error { return f() }

// Done is of no use here.
func (*Link) Done() <-chan struct{} { return nil }

// Stop is of no use here.
func (*Link) Stop(context.Context) error { return nil }

// Cut is of no use here.
func (*Link) Cut(bool, bool) error { return Check() }

// Nodes is of no use here.
func (*Link) Nodes() []Node { return nil }

// Sever is of no use here.
func (*Link) Sever([]Pair) error { return Check() }

// Carried is of no use here.
func (*Link) Carried() (to, from Counts, err error) { return to, from, Check() }
