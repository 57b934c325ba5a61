package cli

import (
	"context"
	"errors"
	"os"
)

// stoppable returns a context that the first signal ends.
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

// interruptible returns what f returns. A signal, or the end of ctx, does not end f, which
// is left to itself, since the process ends.
func (e *env) interruptible(ctx context.Context, f func() Code) Code {
	done := make(chan Code, 1)
	go func() { done <- f() }()
	select {
	case code := <-done:
		return code
	case <-e.Signals:
	case <-ctx.Done():
	}
	return e.told(Interrupted, errors.New("interrupted"))
}

// through does f until it ends. The first signal is told, and ends the context of f; at the
// second, f is left to itself. signalled says whether there was one.
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

// A halting is how signals end runs: the first when what is in flight has arrived, and the
// second at once.
type halting struct {
	stop   chan struct{} // closed by the first
	cancel context.CancelFunc
	from   <-chan os.Signal
	heard  int
}

// halt has signals end what is done under the context that it returns.
func (e *env) halt(ctx context.Context) (context.Context, *halting) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, &halting{stop: make(chan struct{}), cancel: cancel, from: e.Signals}
}

// listen takes signals until end is called: the first closes stop, the second cancels.
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

// asked reports whether several runs are to end between two of them, when nothing listens.
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
