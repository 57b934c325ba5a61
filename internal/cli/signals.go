package cli

import (
	"context"
	"errors"
	"os"
)

// stoppable returns a context that the first signal cancels.
func (e *env) stoppable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-e.Signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// interruptible returns what f returns. On a signal, or the end of ctx, it abandons f, since the process
// ends.
func (e *env) interruptible(ctx context.Context, f func() Code) Code {
	done := make(chan Code, 1)
	go func() { done <- f() }()
	select {
	case code := <-done:
		return code
	case <-e.Signals:
	case <-ctx.Done():
	}
	return e.because(Interrupted, errors.New("interrupted"))
}

// through runs f to its end. The first signal is reported, and cancels f's context; at the second, f is
// abandoned. signalled reports whether there was one.
func through(ctx context.Context, from <-chan os.Signal, f func(context.Context) error, first func(os.Signal)) (signalled bool, err error) {
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

// A halting is how signals end runs: the first after messages in flight have arrived, the second at once.
type halting struct {
	stop   chan struct{} // closed by the first
	cancel context.CancelFunc
	from   <-chan os.Signal
	heard  int
}

// halt lets signals end what runs under the returned context.
func (e *env) halt(ctx context.Context) (context.Context, *halting) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, &halting{stop: make(chan struct{}), cancel: cancel, from: e.Signals}
}

// listen handles signals until end is called: the first closes stop, the second cancels.
func (h *halting) listen(note func(format string, args ...any)) (end func()) {
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
					h.cancel()
					return
				}
				note("stopping: waiting for messages in flight; press Ctrl-C again to stop now")
				close(h.stop)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// asked reports whether to end between two runs, when nothing listens.
func (h *halting) asked(ctx context.Context) bool {
	select {
	case _, ok := <-h.from:
		return ok
	case <-h.stop:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
