package local

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// Consumer subscribes: from now on messages are kept for the subscription,
// until the destination is deleted, whether a consumer runs or not.
func (c *Conn) Consumer(_ context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	r := &consumer{cell: c.cell}
	for _, name := range spec.Destinations {
		q, err := c.subscribe(name, spec.Subscription)
		if err != nil {
			return nil, fmt.Errorf("subscribe %s: %w", spec.Subscription, err)
		}
		r.queues = append(r.queues, q)
	}
	return r, nil
}

// consumer takes from the queues of its subscription, one a destination.
type consumer struct {
	cell   int
	queues []Queue
}

// Run delivers message by message until ctx ends, then returns nil, or until a
// destination is deleted, then returns ErrGone. It has a goroutine for each
// destination beyond the first. What Deliver returns is ignored: nothing is
// settled here.
func (c *consumer) Run(ctx context.Context, sink driver.Sink) error {
	sink.Ready()
	return blocking.Together(ctx, sink, len(c.queues), c.drain)
}

// drain delivers what queue i yields.
func (c *consumer) drain(ctx context.Context, i int, sink driver.Sink) error {
	q := c.queues[i]
	buf := make([]byte, c.cell)
	ds := make([]driver.Delivery, 1)
	for {
		n, err := q.Take(ctx, buf)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		ds[0] = driver.Delivery{Payload: buf[:n:n], Partition: -1, Source: int32(i)}
		_ = sink.Deliver(ds)
	}
}

// Close does nothing: the subscription stays, as a durable one would.
func (c *consumer) Close(context.Context) error { return nil }
