// Package signals is how a program heeds those that ask for its end: at once, or when what
// is in flight is through and not before a second one. A nil channel never has one.
package signals

import (
	"context"
	"os"
)

// Stoppable returns a context that the first signal ends.
func Stoppable(ctx context.Context, from <-chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-from:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Await returns what f returns, and false where a signal came or ctx ended before: f, which
// heeds neither, is then left to itself, for the process ends.
func Await[T any](ctx context.Context, from <-chan os.Signal, f func() T) (v T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case v := <-done:
		return v, true
	case <-from:
	case <-ctx.Done():
	}
	return v, false
}

// Through does f until it ends. The first signal is told, and ends the context of f; at the
// second, f is left to itself. signalled says whether there was one.
func Through(ctx context.Context, from <-chan os.Signal, f func(context.Context) error, first func(os.Signal)) (signalled bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	for {
		select {
		case s, ok := <-from:
			if !ok || signalled {
				return true, nil
			}
			signalled = true
			first(s)
			cancel()
		case err := <-ended:
			return signalled, err
		}
	}
}

// A Halting is how signals end runs.
type Halting struct {
	Stop   chan struct{} // closed by the first
	Cancel context.CancelFunc
	from   <-chan os.Signal
	heard  int
}

// Halt has signals end what is done under the context that it returns.
func Halt(ctx context.Context, from <-chan os.Signal) (context.Context, *Halting) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, &Halting{Stop: make(chan struct{}), Cancel: cancel, from: from}
}

// Listen takes signals until end is called: the first closes Stop, the second cancels.
func (h *Halting) Listen(note func(format string, args ...any)) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case _, ok := <-h.from:
				if !ok {
					return
				}
				if h.heard++; h.heard > 1 {
					note("stopping now")
					h.Cancel()
					return
				}
				note("stopping: waiting for messages in flight; press Ctrl-C again to stop now")
				close(h.Stop)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// Asked reports whether several runs are to end between two of them, when nothing listens.
func (h *Halting) Asked(ctx context.Context) bool {
	select {
	case _, ok := <-h.from:
		return ok
	case <-h.Stop:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
