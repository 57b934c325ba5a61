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

// A feed takes the items of one queue, on a connection of its own. It holds at most one:
// the server allows a connection no more of a queue.
type feed struct {
	link   *link
	cfg    *Config
	key    string // of the queue
	open   string // key of a get that opens an item
	source int32
	has    bool // an item
	ds     [1]driver.Delivery
}

// Consumer connects once for each destination. The child queues of its subscription
// begin before it returns.
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

// Close implements blocking.Feed. The server gives an item that is still open to others.
func (f *feed) Close() { f.link.Close() }

// Run implements blocking.Feed. It ends when there is never a connection again.
func (f *feed) Run(ctx context.Context, sink driver.Sink) error {
	for ctx.Err() == nil {
		if err := f.link.Await(ctx); failure.Hopeless(err) {
			return fmt.Errorf("subscription lost: %w", err)
		}
		switch err := f.link.Do(ctx, f.take); {
		case ctx.Err() != nil: // what it got goes back with the connection
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

// deliver hands over the item that the feed holds, and settles it.
func (f *feed) deliver(sink driver.Sink) {
	refused := sink.Deliver(f.ds[:])
	end := "/close"
	if refused != nil {
		end = "/abort"
	}
	// Not ended by the context of Run: what was accepted is settled.
	err := f.link.Do(context.Background(), func(s *session) error { _, _, err := s.get(f.key + end); return err })
	if err != nil {
		sink.Fault(err)
	}
	if refused == nil {
		sink.Settled(f.ds[:], err)
	}
}
