package natsstreaming

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// heldHere is Backlog without a monitoring address: nothing else tells what a group
// has still to get. It has the streaming server make a session, and the server answer
// a PING behind all that it has sent to the consumers. What their clients hold after
// that is all that is known; what the server holds for a consumer that has left
// messages without an acknowledgement is not.
func (c *conn) heldHere(ctx context.Context, subscription string) (uint64, error) {
	made := make(chan error, 1)
	// Not within ctx: the end of that would close the control connection.
	go func() { made <- c.with(context.WithoutCancel(ctx), func(*session) error { return nil }) }()
	var err error
	select {
	case err = <-made:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("nats-streaming: backlog of %s: %w: %w", subscription, driver.ErrUnreachable, cause(err))
	}
	var links []*natsconn.Link
	var xs []*consumer
	c.mu.Lock()
	for x := range c.consumers {
		if x.spec.Subscription == subscription {
			links, xs = append(links, x.link), append(xs, x)
		}
	}
	c.mu.Unlock()
	if err := natsconn.RoundTrips(ctx, links); err != nil {
		return 0, fmt.Errorf("nats-streaming: backlog of %s: %w", subscription, err)
	}
	var n uint64
	for _, x := range xs {
		n += x.held.Messages()
	}
	return n, nil
}

// opened and closed note a consumer.
func (c *conn) opened(x *consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.consumers[x] = true
}

func (c *conn) closed(x *consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.consumers, x)
}
