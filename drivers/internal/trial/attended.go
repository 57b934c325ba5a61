package trial

import (
	"context"
	"sync"

	"github.com/weirmq/weir/driver"
)

// Attend returns c with a discarding consumer on each destination without a consumer. It is for
// running the suite on a system that accepts no messages without a consumer. If c is a Requester,
// the result is too.
func Attend(c driver.Conn) driver.Conn {
	x := &attendedConn{Conn: c, Backlogger: c.(driver.Backlogger), discards: map[string]func(){}}
	if r, ok := c.(driver.Requester); ok {
		return attendedRequester{x, r}
	}
	return x
}

type attendedConn struct {
	driver.Conn
	driver.Backlogger
	mu       sync.Mutex
	discards map[string]func() // by destination; stops it
}

// attend gives each destination a discarding consumer.
func (c *attendedConn) attend(destinations ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range destinations {
		if c.discards == nil || c.discards[d] != nil {
			continue
		}
		x, err := c.Conn.Consumer(context.Background(), driver.ConsumerSpec{Subscription: "discard", Destinations: []string{d}})
		if err != nil {
			continue // the destination was deleted
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = x.Run(ctx, discard{}) }()
		c.discards[d] = func() { cancel(); <-ended; _ = x.Close(context.Background()) }
	}
}

// desert stops the discarding consumers.
func (c *attendedConn) desert(destinations ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range destinations {
		if end := c.discards[d]; end != nil {
			end()
			delete(c.discards, d)
		}
	}
}

func (c *attendedConn) Declare(ctx context.Context, ds ...driver.Destination) error {
	err := c.Conn.Declare(ctx, ds...)
	for _, d := range ds {
		c.attend(d.Name)
	}
	return err
}

func (c *attendedConn) Delete(ctx context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		c.desert(d.Name)
	}
	return c.Conn.Delete(ctx, ds...)
}

func (c *attendedConn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return c.instead(ctx, spec, c.Conn.Consumer)
}

// instead opens a consumer in place of the discarding ones.
func (c *attendedConn) instead(ctx context.Context, spec driver.ConsumerSpec, open func(context.Context, driver.ConsumerSpec) (driver.Consumer, error)) (driver.Consumer, error) {
	c.desert(spec.Destinations...)
	x, err := open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &attendedConsumer{x, func() { c.attend(spec.Destinations...) }}, nil
}

type attendedConsumer struct {
	driver.Consumer
	attend func()
}

func (x *attendedConsumer) Close(ctx context.Context) error {
	err := x.Consumer.Close(ctx)
	x.attend()
	return err
}

func (c *attendedConn) Close(ctx context.Context) error {
	c.mu.Lock()
	ends := c.discards
	c.discards = nil
	c.mu.Unlock()
	for _, end := range ends {
		end()
	}
	return c.Conn.Close(ctx)
}

// discard is a sink that accepts everything.
type discard struct{ driver.Sink }

func (discard) Ready()                          {}
func (discard) Deliver([]driver.Delivery) error { return nil }

// An attendedRequester is an attendedConn for a system with requests.
type attendedRequester struct {
	*attendedConn
	requests driver.Requester
}

func (c attendedRequester) Responder(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return c.instead(ctx, spec, c.requests.Responder)
}

func (c attendedRequester) Requester(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	c.desert(spec.Destinations...) // the suite also sends requests without a responder
	return c.requests.Requester(ctx, spec, done)
}
