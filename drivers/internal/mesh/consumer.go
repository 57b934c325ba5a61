package mesh

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// Consumer opens a socket for each destination of spec.
func (c *Conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{conn: c}
	for _, d := range spec.Destinations {
		n, err := c.join(ctx, d, spec.Subscription, receives)
		if err != nil {
			_ = x.leave()
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.nodes = append(x.nodes, n)
	}
	return x, nil
}

// A consumer has a goroutine for each of its sockets.
type consumer struct {
	conn  *Conn
	nodes []*node
}

// Run implements driver.Consumer. It closes the sockets when ctx ends, because only that interrupts
// a library's receive.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	defer context.AfterFunc(ctx, func() { _ = x.leave() })()
	sink.Ready()
	err := blocking.Together(ctx, sink, len(x.nodes), func(_ context.Context, i int, sink driver.Sink) error {
		defer func() { _ = x.leave() }()
		return x.receive(i, sink)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receive delivers one socket's messages until it is closed.
func (x *consumer) receive(i int, sink driver.Sink) error {
	n := x.nodes[i]
	ds := make([]driver.Delivery, 1)
	take := func(payload []byte) {
		if number := x.conn.marking.number(payload); number > 0 {
			n.markers.add(number)
			return
		}
		n.busy.Store(true)
		defer n.busy.Store(false)
		ds[0] = driver.Delivery{Payload: payload, Partition: -1, Source: int32(i)}
		_ = sink.Deliver(ds) // nothing is settled
		n.count.Add(1)
	}
	for {
		if err := n.socket.Receive(take); err != nil {
			return err
		}
	}
}

// leave closes the sockets.
func (x *consumer) leave() error {
	var errs []error
	for _, n := range x.nodes {
		errs = append(errs, x.conn.leave(n))
	}
	return errors.Join(errs...)
}

func (x *consumer) Close(context.Context) error { return x.leave() }
