package blocking

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
)

// An Outgoing is the client-independent part of a driver.Producer: it tracks which messages are in
// flight, completes them, and implements Flush and the wait in Close. Embed it in a producer that
// is not a Pool. It takes no locks and allocates nothing.
type Outgoing struct {
	*Outstanding
	done   driver.Completer
	closed bool        // touched by the publishing goroutine only
	ending atomic.Bool // Close has given up waiting
}

// NewOutgoing returns an Outgoing without messages. They complete at done.
func NewOutgoing(done driver.Completer) *Outgoing {
	return &Outgoing{Outstanding: NewOutstanding(), done: done}
}

// Admit counts a message that is being published, and returns true: Complete must follow. If err is
// not nil, or after Close, it completes the message and returns false.
func (o *Outgoing) Admit(m *driver.Message, err error) bool {
	if o.closed {
		err = driver.ErrClosed
	}
	if err != nil {
		o.done.Complete(m, err)
		return false
	}
	o.Add(1)
	return true
}

// Complete completes a message. An error caused by the end of the producer becomes
// driver.ErrClosed.
func (o *Outgoing) Complete(m *driver.Message, err error) {
	if err != nil && o.ending.Load() && !errors.Is(err, driver.ErrClosed) {
		err = fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	o.done.Complete(m, err)
	o.Done(1)
}

// Ending reports whether the producer is ending and must send nothing more.
func (o *Outgoing) Ending() bool { return o.ending.Load() }

// Flush implements driver.Producer.
func (o *Outgoing) Flush(ctx context.Context) error { return o.Wait(ctx) }

// End implements Close for a producer. It waits for what is in flight, within ctx and 2 s, and
// calls end, which must end the client and complete the rest. late says that there is a rest. End
// returns end's error; a second call does nothing.
func (o *Outgoing) End(ctx context.Context, end func(late bool) error) error {
	if o.closed {
		return nil
	}
	o.closed = true
	late := o.WaitLast(ctx) != nil
	o.ending.Store(true)
	return end(late)
}
