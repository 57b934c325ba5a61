// Package redispubsub drives publish and subscribe of Redis, and of Valkey: messages
// to whoever is subscribed at that moment.
//
// # What is what here
//
// A destination is a channel, weir:<run>:<destination>; nothing is made in the
// server for it (https://redis.io/docs/latest/develop/pubsub/). Where destinations
// exist already their names are the channels as they are. A subscription is one
// subscriber with a connection of its own: every subscriber gets every message, so
// that two consumers of one subscription would each get all of it, and more than
// one is refused. Producers have one connection each.
//
// # What a confirmation means
//
// A message completes when the server has answered its PUBLISH
// (https://redis.io/docs/latest/commands/publish/): it has read it, and put it into
// the output buffers of the subscribers that it had then, whose number is the
// answer. That is received, in the memory of that server; none is as good an answer
// as many. Nothing is stored, and nothing of it depends on appendonly or replicas.
//
// Delivery is at most once: no subscriber, no message; one too slow is cut off by
// the server when its output buffer exceeds client-output-buffer-limit pubsub, by
// default 32 MiB, or 8 MiB for a minute, which is reported as a fault, and what was
// in that buffer is lost. There is nothing to settle. Order is one publisher's, to
// each subscriber.
//
// # What the client does behind one's back
//
// Messages leave by go-redis's deferred autopipeliner in full duplex, which writes
// on one connection as they come, several in one write where several are waiting,
// and reads on another goroutine. It copies the payload into its write buffer on
// that goroutine, so that the bytes are its until the message completes. Retries
// are off. A subscriber reads the socket itself (PubSub.Receive): the client's
// Channel, which drops messages where nobody takes them in time, is not used. It
// subscribes again when a connection is lost. A server that is silent for two of
// ping-interval, though asked by PING, is given up.
package redispubsub

import (
	"context"
	_ "embed" // of the page
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
	"github.com/weirmq/weir/drivers/internal/redisserver"
)

// page is what the driver says to a reader.
//
//go:embed page.md
var page string

// Definition returns the driver.
func Definition() driver.Definition {
	return driver.Definition{
		Name:    "redis-pubsub",
		Title:   "Redis Pub/Sub",
		Summary: "Publish and subscribe without storage, at most once.",
		Client:  "github.com/redis/go-redis/v9",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Subscriptions: true,
			Settle:        []driver.Settle{driver.SettleNone},
			Guarantees:    []driver.Guarantee{driver.Received},
			Delivery:      driver.AtMostOnce,
			Ordering:      driver.PerDestination,
		},
		New: func() driver.Config {
			return &Config{Options: redisconn.Defaults(), PingInterval: 10 * time.Second}
		},
		Recipe: redisserver.Recipe(),
		Page:   driver.MustPage(page),
	}
}

// Config is the driver's settings.
type Config struct {
	redisconn.Options
	PingInterval time.Duration `option:"ping-interval" help:"How often a consumer asks whether the server is there; two silences end the connection."`
}

// Validate reports every fault in the settings, joined.
func (c *Config) Validate() error {
	errs := []error{c.Options.Validate()}
	if c.PingInterval <= 0 {
		errs = append(errs, &driver.OptionError{Name: "ping-interval", Err: fmt.Errorf("%v is not positive", c.PingInterval)})
	}
	return errors.Join(errs...)
}

// Open connects, within ctx and 10 s.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	link, err := redisconn.Open(ctx, &c.Options, run)
	if err != nil {
		return nil, fmt.Errorf("redis-pubsub: %w", err)
	}
	return &conn{cfg: *c, run: run, link: link, consumers: map[*consumer]bool{}}, nil
}

// A conn is one run's hold on the server.
type conn struct {
	cfg  Config
	run  driver.Run
	link *redisconn.Link

	mu        sync.Mutex
	consumers map[*consumer]bool // that are open
}

// Declare has nothing to make, and refuses what Redis does not have.
func (c *conn) Declare(_ context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		if err := redisconn.CheckDestination(d); err != nil {
			return fmt.Errorf("redis-pubsub: %w", err)
		}
	}
	return nil
}

// Delete has nothing to remove.
func (c *conn) Delete(context.Context, ...driver.Destination) error { return nil }

// Facts asks the server.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	s, err := c.link.State(ctx, "client-output-buffer-limit")
	if err != nil {
		return driver.Facts{}, fmt.Errorf("redis-pubsub: %w", err)
	}
	f := s.Facts()
	f.Confirms = driver.Confirms{Guarantee: driver.Received, Copies: driver.CopiesOne, Stable: driver.StableNone}
	return f, nil
}

// Close ends the control connection.
func (c *conn) Close(ctx context.Context) error { return c.link.Close(ctx) }

var (
	_ driver.Conn     = (*conn)(nil)
	_ driver.Producer = (*producer)(nil)
	_ driver.Consumer = (*consumer)(nil)
)
