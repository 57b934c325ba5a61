package blocking

import (
	"context"
	"sync/atomic"
	"time"
)

// An Outstanding counts a producer's messages that were published and have not completed, for its
// Flush. It takes no locks and allocates nothing. It can be used without a Pool.
type Outstanding struct {
	n    atomic.Int64
	idle chan struct{} // has a token after n fell to 0
}

// NewOutstanding returns an Outstanding of 0.
func NewOutstanding() *Outstanding {
	return &Outstanding{idle: make(chan struct{}, 1)}
}

// Add counts n messages that are being published. The publishing goroutine must call it before the
// first of them can complete.
func (o *Outstanding) Add(n int) { o.n.Add(int64(n)) }

// Done subtracts n messages, after they have completed. Any goroutine may call it.
func (o *Outstanding) Done(n int) {
	if o.n.Add(int64(-n)) == 0 {
		select {
		case o.idle <- struct{}{}:
		default:
		}
	}
}

// lastLimit is how long the end of a producer waits for its messages.
const lastLimit = 2 * time.Second

// WaitLast is Wait for the Close of a producer: it waits at most 2 s. The producer must fail what
// has not completed then.
func (o *Outstanding) WaitLast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastLimit)
	defer cancel()
	return o.Wait(ctx)
}

// Wait returns when every message has completed, or with ctx's error. Only the publishing goroutine
// may call it.
func (o *Outstanding) Wait(ctx context.Context) error {
	for o.n.Load() > 0 {
		select {
		case <-o.idle: // possibly a stale token: look again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
