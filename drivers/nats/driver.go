// Package nats drives core NATS: publish and subscribe without storage.
//
// page.md says what weir's terms mean here, and package natsconn how the client behaves.
//
// With confirm: none (the default) a message is lost when the connection breaks before
// the client's flusher has written it. With confirm: flush up to four flushes are in
// flight at a time, each for everything published before it, so that none waits for the
// one before. They make the client write at once what it would gather otherwise.
//
// A subscriber that is too slow loses messages, in the server (its pending limit, 64 MiB,
// then it is cut off) or in the client (option pending-bytes), which reports it as a
// fault. Order is one publisher's, to each subscriber.
//
// A request is a message with a reply subject below the requester's one inbox
// (https://docs.nats.io/nats-concepts/core-nats/reqreply). It fails when the server says
// that no responder takes it, when no reply came within request-timeout (by up to an
// eighth later), or when its connection was lost. A responder is a consumer, member of
// the queue group, which answers from the client's callback. The option confirm does not
// matter then: a reply says that the server had the message, and a consumer too.
package nats

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/internal/natsd"
)

// Confirmation modes.
const (
	confirmNone  = "none"
	confirmFlush = "flush"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files, natsconn.Recipe())

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "nats",
		Title:   "NATS (core)",
		Summary: "Publish and subscribe without storage, at most once.",
		Client:  "github.com/nats-io/nats.go",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Subscriptions: true,
			Competing:     true,
			PublishBlocks: true,
			Requests:      true,
			Settle:        []driver.Settle{driver.SettleNone},
			Guarantees:    []driver.Guarantee{driver.Buffered, driver.Received},
			Delivery:      driver.AtMostOnce,
			Ordering:      driver.PerDestination,
			MaxPayload:    natsd.MaxPayload,
		},
		New: func() driver.Config {
			return &Config{
				Options:        natsconn.Defaults(),
				Confirm:        confirmNone,
				ConfirmTimeout: 30 * time.Second,
				RequestTimeout: 5 * time.Second,
				PendingBytes:   256 << 20,
				Interest:       Interest{Form: formLiteral},
			}
		},
		Serve: func(ctx context.Context, s driver.Service) error {
			for name := range s.Options {
				return &driver.OptionError{Name: driver.ServerPrefix + name, Err: errors.New("unknown option (this driver has none for its server)")}
			}
			return natsconn.Serve(ctx, s, natsd.Options{})
		},
		Nodes: natsconn.CheckNodes,
		Page:  page,
	}
}

// Config holds the driver's settings.
type Config struct {
	natsconn.Options
	Confirm        string        `option:"confirm" allowed:"none,flush" firm:"flush" help:"When a message completes: when the client has taken it, or when the server has answered a PING sent behind it."`
	ConfirmTimeout time.Duration `option:"confirm-timeout" min:"1ms" help:"With confirm: flush, how long to wait for that answer."`
	RequestTimeout time.Duration `option:"request-timeout" min:"1ms" help:"With mode request, how long to wait for a reply; then the request has failed."`
	Interest       Interest      `option:"interest"`
	PendingBytes   int64         `option:"pending-bytes" min:"1B" size:"bytes" help:"Most bytes of one subject that a client may hold undelivered. Further messages are lost, and reported. With mode request, the limit for a requester's replies."`
}

// Open connects, within ctx and 4 s.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	if c.Interest.Subscriptions > 0 && run.Existing {
		return nil, errInterest
	}
	link, err := natsconn.Connect(ctx, &c.Options, run, "control", natsconn.Events{})
	if err != nil {
		return nil, err
	}
	return &conn{cfg: *c, run: run, link: link}, nil
}

// A conn is one run's connection to the servers.
type conn struct {
	cfg      Config
	run      driver.Run
	link     *natsconn.Link
	requests atomic.Bool // a requester was opened
	ends     natsconn.Ends
	dropped  dropped

	mu       sync.Mutex
	interest *natsconn.Link // nil: no other subscriptions
}

// Declare creates only the other subscriptions, if the options ask for some.
func (c *conn) Declare(ctx context.Context, _ ...driver.Destination) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Interest.Subscriptions > 0 && c.interest == nil {
		c.interest, err = c.cfg.Interest.hold(ctx, &c.cfg.Options, c.run)
	}
	return err
}

// Delete does nothing: there is nothing to remove.
func (c *conn) Delete(context.Context, ...driver.Destination) error { return nil }

// Facts asks the server it is connected to.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.link.Base(ctx)
	if err != nil {
		return f, err
	}
	f.Settings["confirm"] = c.cfg.Confirm
	if c.requests.Load() {
		f.Settings["confirm"] = "reply"
	}
	if i := c.cfg.Interest; i.Subscriptions > 0 {
		f.Settings["interest"] = fmt.Sprintf("%d %s", i.Subscriptions, i.Form)
	}
	f.Discarded = []driver.Discarded{c.dropped.total()}
	f.Confirms = page.Confirmations.Of(c.cfg.Known(driver.Servers{Requests: c.requests.Load()}))
	return f, nil
}

// Known implements driver.GuaranteePredictor. A reply confirms its request.
func (c *Config) Known(s driver.Servers) driver.Known {
	if s.Requests {
		return driver.Known{"confirm": "reply"}
	}
	return driver.KnownOf(c, "confirm")
}

// Backlog implements driver.Backlogger. The server stores nothing.
func (c *conn) Backlog(ctx context.Context, subscription string, _ []string) (uint64, error) {
	return c.ends.Backlog(ctx, subscription)
}

// Close closes the control connection, and the one with the other subscriptions.
func (c *conn) Close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interest != nil {
		return errors.Join(c.interest.Close(ctx), c.link.Close(ctx))
	}
	return c.link.Close(ctx)
}
