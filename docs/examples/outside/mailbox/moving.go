package mailbox

import (
	"bytes"
	"context"
	"sync"

	"github.com/weirmq/weir/driver"
)

// producer puts copies of messages into mailboxes that have a subscription. A message completes before Publish
// returns.
type producer struct {
	conn   *conn
	done   driver.Completer
	closed bool
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) { p.done.Complete(m, p.put(ctx, m)) }

func (p *producer) put(ctx context.Context, m *driver.Message) error {
	b, err := p.conn.open(m.Destination, "")
	switch {
	case p.closed:
		return driver.ErrClosed
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case b == nil:
		return nil
	}
	select {
	case b <- bytes.Clone(m.Payload): // the bytes are the caller's again
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *producer) Flush(context.Context) error { return nil }

func (p *producer) Close(context.Context) error {
	p.closed = true
	return nil
}

// consumer takes messages from mailboxes, with a goroutine for each.
type consumer struct {
	boxes []chan []byte // in the order of ConsumerSpec.Destinations
}

func (c *consumer) Run(ctx context.Context, sink driver.Sink) error {
	sink.Ready()
	var one sync.Mutex // one Deliver at a time
	var all sync.WaitGroup
	for i, b := range c.boxes {
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case payload := <-b:
					one.Lock()
					// A mailbox cannot take a message back, whatever Deliver returns.
					_ = sink.Deliver([]driver.Delivery{{Payload: payload, Partition: -1, Source: int32(i)}})
					one.Unlock()
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
	return nil
}

func (c *consumer) Close(context.Context) error { return nil }
