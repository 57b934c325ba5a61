package nats

import (
	"context"
	"fmt"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// ends are the producers and consumers that are open.
type ends struct {
	mu        sync.Mutex
	producers map[*natsconn.Link]bool
	consumers map[*consumer]bool
}

func newEnds() *ends {
	return &ends{producers: map[*natsconn.Link]bool{}, consumers: map[*consumer]bool{}}
}

// sends notes the connection of a producer; over notes its end.
func (e *ends) sends(l *natsconn.Link) (over func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.producers[l] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.producers, l)
	}
}

// receives notes a consumer; over notes its end.
func (e *ends) receives(x *consumer) (over func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.consumers[x] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.consumers, x)
	}
}

// of returns the connections of all producers, and the consumers of a subscription.
func (e *ends) of(subscription string) (out, in []*natsconn.Link, xs []*consumer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.producers {
		out = append(out, l)
	}
	for x := range e.consumers {
		if x.spec.Subscription == subscription {
			in, xs = append(in, x.link), append(xs, x)
		}
	}
	return out, in, xs
}

// Backlog implements driver.Backlogger. The server keeps nothing, so it is asked
// twice for a PONG: behind all that the producers have published, which it has
// passed on by then, and behind all that it has sent to the consumers. What their
// clients hold after that is all there is.
func (c *conn) Backlog(ctx context.Context, subscription string, _ []string) (uint64, error) {
	out, in, xs := c.ends.of(subscription)
	for _, links := range [][]*natsconn.Link{out, in} {
		if err := natsconn.RoundTrips(ctx, links); err != nil {
			return 0, fmt.Errorf("nats: backlog of %s: %w", subscription, err)
		}
	}
	var n uint64
	for _, x := range xs {
		n += x.held.Messages()
	}
	return n, nil
}

var _ driver.Backlogger = (*conn)(nil)
