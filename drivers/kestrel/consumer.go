package kestrel

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A feed takes the items of one queue, on its own connection. It holds at most one item, because
// the server allows no more per connection and queue.
type feed struct {
	link   *link
	cfg    *Config
	key    string // of the queue
	open   string // key of a get that opens an item
	source int32
	has    bool // holds an item
	ds     [1]driver.Delivery
}

// Consumer connects once for each destination. Its subscription's child queues have begun when it
// returns.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	var x blocking.Feeds // a queue keeps its items until a consumer takes them
	for i, d := range spec.Destinations {
		f, err := c.feed(ctx, spec, d, int32(i))
		if f != nil {
			x = append(x, f)
		}
		if err != nil {
			_ = x.Close(ctx)
			return nil, each.About(d, err)
		}
	}
	return x, nil
}

// feed connects for one destination.
func (c *conn) feed(ctx context.Context, spec driver.ConsumerSpec, destination string, source int32) (*feed, error) {
	queue, err := c.queue(destination)
	if err != nil {
		return nil, err
	}
	key := c.child(queue, spec.Subscription)
	l, err := c.cfg.connect(ctx, c.run.For(&spec), fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index))
	if err != nil {
		return nil, err
	}
	f := &feed{link: l, cfg: &c.cfg, key: key, open: fmt.Sprintf("%s/t=%d/open", key, c.cfg.Wait.Milliseconds()), source: source}
	if !c.cfg.Fanout {
		return f, nil
	}
	return f, l.Ask(ctx, func(s *session) error { _, _, err := s.get(key + "/peek"); return err })
}

// Close implements blocking.Feed. The server gives an item that is still open to another consumer.
func (f *feed) Close() { f.link.Close() }

// Run implements blocking.Feed. It ends when the connection is permanently lost.
func (f *feed) Run(ctx context.Context, sink driver.Sink) error {
	for ctx.Err() == nil {
		if err := f.link.Await(ctx); failure.Hopeless(err) {
			return fmt.Errorf("subscription lost: %w", err)
		}
		switch err := f.link.Do(ctx, f.take); {
		case ctx.Err() != nil: // unsettled messages return with the connection
		case err != nil:
			sink.Fault(err)
			retry.Pause(ctx, f.cfg.ReconnectWait)
		case !f.has:
			retry.Pause(ctx, f.cfg.Poll)
		default:
			f.deliver(sink)
		}
	}
	return nil
}

// take opens an item.
func (f *feed) take(s *session) error {
	item, ok, err := s.get(f.open)
	f.has = ok
	f.ds[0] = driver.Delivery{Payload: item, Partition: -1, Source: f.source}
	return err
}

// deliver delivers the item that the feed holds, and settles it.
func (f *feed) deliver(sink driver.Sink) {
	refused := sink.Deliver(f.ds[:])
	end := "/close"
	if refused != nil {
		end = "/abort"
	}
	// Independent of Run's context: accepted messages are settled.
	err := f.link.Do(context.Background(), func(s *session) error { _, _, err := s.get(f.key + end); return err })
	if err != nil {
		sink.Fault(err)
	}
	if refused == nil {
		sink.Settled(f.ds[:], err)
	}
}
