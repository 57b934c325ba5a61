// Package redispubsub drives publish and subscribe of Redis, and of Valkey: messages to those
// subscribed at that moment. page.md says what is what.
//
// Messages leave by a redisconn.Pipe. The client copies the payload into its write buffer on a
// goroutine of its own, so that the bytes are its until the message completes. Retries are off. A
// subscriber reads the socket itself (PubSub.Receive): the client's Channel drops messages that are
// not taken in time. It subscribes again when a connection is lost. A slow subscriber is cut off, by
// default, at 32 MiB, or 8 MiB for a minute.
package redispubsub

import (
	"context"
	"embed"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/redisconn"
	"github.com/weirmq/weir/drivers/internal/redisserver"
)

//go:embed page.md
var files embed.FS

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
		Page: driver.MustPage(files, redisserver.Recipe()),
	}
}

// Config holds the driver's settings. Validate is that of the Options.
type Config struct {
	redisconn.Options
	PingInterval time.Duration `option:"ping-interval" min:"1ns" help:"How often a consumer pings the server. After two pings without an answer the connection ends."`
}

// Open connects, within ctx and 10 s.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	link, err := redisconn.Open(ctx, &c.Options, run)
	if err != nil {
		return nil, err
	}
	return &conn{cfg: *c, run: run, link: link}, nil
}

// A conn is one run's connection to the server.
type conn struct {
	cfg       Config
	run       driver.Run
	link      *redisconn.Link
	consumers known.Table[*consumer, string]
}

// Declare does nothing: there is nothing to create.
func (c *conn) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete does nothing: there is nothing to remove.
func (c *conn) Delete(context.Context, ...driver.Destination) error { return nil }

// Facts asks the server.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	s, err := c.link.State(ctx, "client-output-buffer-limit")
	if err != nil {
		return driver.Facts{}, err
	}
	f := s.Facts()
	f.Confirms = driver.Confirms{Guarantee: driver.Received, Copies: driver.CopiesOne, Stable: driver.StableNone}
	return f, nil
}

// Close closes the control connection.
func (c *conn) Close(ctx context.Context) error { return c.link.Close(ctx) }
