package liftbridge

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	client "github.com/liftbridge-io/go-liftbridge/v2"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A consumer reads its partitions on its own connection.
type consumer struct {
	conn   *conn
	run    driver.Run
	client client.Client
	parts  []*part
}

// A part reads one partition.
type part struct {
	stream    string
	partition int32
	source    int32
	place     atomic.Int64 // offset of the next message

	mu    sync.Mutex // held while a message is delivered
	ended bool
	ds    [1]driver.Delivery
}

// name returns the name for a subscription's position in a partition.
func name(subscription, destination string, partition int32) string {
	return fmt.Sprintf("%q %q %d", subscription, destination, partition)
}

// Consumer connects, and determines where the subscription begins or continues.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{conn: c, run: c.run.For(&spec)}
	err := each.Name(spec.Destinations, func(source int, d string) error {
		n, err := c.partitions(ctx, c.stream(d))
		for i := int32(0); i < n && err == nil; i++ {
			p := &part{stream: c.stream(d), partition: i, source: int32(source)}
			var place int64
			if before, ok := c.parts.Get(name(spec.Subscription, d, i)); ok {
				place = before.place.Load()
			} else {
				place, err = c.next(ctx, p.stream, i)
			}
			p.place.Store(place)
			c.parts.Note(name(spec.Subscription, d, i), p)
			x.parts = append(x.parts, p)
		}
		return err
	})
	if err == nil {
		x.client, err = c.cfg.connect(ctx)
	}
	return x, err
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	return blocking.Together(ctx, sink, len(x.parts), func(ctx context.Context, i int, sink driver.Sink) error {
		p, once, lost := x.parts[i], sync.OnceFunc(sink.Ready), false
		ready := func() {
			if once(); lost {
				lost = false
				x.run.Tell(driver.Reconnect, fmt.Sprintf("consumer of %s, partition %d", p.stream, p.partition))
			}
		}
		defer p.end()
		for {
			err := p.receive(ctx, x.client, sink, ready)
			switch {
			case ctx.Err() != nil:
				return nil
			case failure.Hopeless(err):
				return fmt.Errorf("subscription lost: %w", err)
			}
			lost = true
			sink.Fault(err)
			retry.Pause(ctx, x.conn.cfg.ReconnectWait)
		}
	})
}

// receive delivers from place on, until ctx or the subscription ends, and returns why.
func (p *part) receive(ctx context.Context, k client.Client, sink driver.Sink, ready func()) error {
	lost := make(chan error, 1)
	if err := k.Subscribe(ctx, p.stream, func(m *client.Message, err error) {
		if err != nil {
			lost <- words.Lost(err)
			return
		}
		p.deliver(m, sink)
	}, client.Partition(p.partition), client.StartAtOffset(p.place.Load()), client.Resume()); err != nil {
		return words.Lost(err)
	}
	ready()
	select {
	case <-ctx.Done():
		return nil
	case err := <-lost:
		return err
	}
}

// deliver delivers a message. Nothing is settled.
func (p *part) deliver(m *client.Message, sink driver.Sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended && m.Offset() >= p.place.Load() {
		p.ds[0] = driver.Delivery{Key: m.Key(), Payload: m.Value(), Partition: p.partition, Source: p.source}
		_ = sink.Deliver(p.ds[:])
		p.place.Store(m.Offset() + 1)
	}
}

// end stops deliveries.
func (p *part) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// Close implements driver.Consumer.
func (x *consumer) Close(context.Context) error {
	end(x.client)
	return nil
}
