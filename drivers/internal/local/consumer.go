package local

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// Consumer subscribes: from now on, messages are kept for the subscription until the destination is
// deleted, even while no consumer runs.
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

// consumer takes from its subscription's queues, one per destination.
type consumer struct {
	cell   int
	queues []Queue
}

// Run delivers messages one by one until ctx ends, and returns nil, or until a destination is
// deleted, and returns ErrGone. It uses one goroutine per destination beyond the first. Nothing is
// settled, so Deliver's result is ignored.
func (c *consumer) Run(ctx context.Context, sink driver.Sink) error {
	sink.Ready()
	return blocking.Together(ctx, sink, len(c.queues), c.drain)
}

// drain delivers the messages of queue i.
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

// Close does nothing: the subscription remains, like a durable one.
func (c *consumer) Close(context.Context) error { return nil }
