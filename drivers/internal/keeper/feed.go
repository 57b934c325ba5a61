package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A Feed takes one message at a time on its own connection, and settles it there: a blocking.Feed.
type Feed[C any] struct {
	Link   *Keeper[C]
	Source int32 // as in driver.Delivery

	// Take asks for a message, whose payload it writes to d, and reports whether there was one. It
	// returns before Plan.Limit, also without a message.
	Take func(c C, d *driver.Delivery) (ok bool, err error)
	// Settle settles the message taken last, or gives it back if Deliver has refused it.
	Settle func(c C, refused bool) error
	// Idle is the pause after Take had no message.
	Idle time.Duration

	// Renew, if not nil, is called every RenewEvery while Deliver has a message; 0: never.
	Renew      func(c C) error
	RenewEvery time.Duration
}

// Close implements blocking.Feed.
func (f *Feed[C]) Close() { f.Link.Close() }

// Run implements blocking.Feed. It ends when the connection is permanently lost.
func (f *Feed[C]) Run(ctx context.Context, sink driver.Sink) error {
	var ds [1]driver.Delivery
	ok := false
	take := func(c C) (err error) {
		ds[0] = driver.Delivery{Partition: -1, Source: f.Source}
		ok, err = f.Take(c, &ds[0])
		return err
	}
	for ctx.Err() == nil {
		if err := f.Link.Await(ctx); failure.Hopeless(err) {
			return fmt.Errorf("subscription lost: %w", err)
		}
		switch err := f.Link.Do(ctx, take); {
		case ctx.Err() != nil: // unsettled messages return with the connection
		case err != nil:
			sink.Fault(err)
			retry.Pause(ctx, f.Link.plan.Wait)
		case !ok:
			retry.Pause(ctx, f.Idle)
		default:
			f.deliver(sink, ds[:])
		}
	}
	return nil
}

// deliver delivers the message taken, and settles it.
func (f *Feed[C]) deliver(sink driver.Sink, ds []driver.Delivery) {
	// Settlement reveals the fate of a message that could not be renewed.
	stop := retry.Every(f.RenewEvery, func() { _ = f.Link.Do(context.Background(), f.Renew) })
	refused := sink.Deliver(ds) != nil
	stop()
	// Independent of Run's context: accepted messages are settled.
	err := f.Link.Do(context.Background(), func(c C) error { return f.Settle(c, refused) })
	if err != nil {
		sink.Fault(err)
	}
	if !refused {
		sink.Settled(ds, err)
	}
}
