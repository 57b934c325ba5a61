// Package kestrel drives a server that speaks Kestrel's text protocol. page.md says what weir's
// terms mean here. No client for Go has reliable reads: this package speaks the protocol itself, and
// package keeper connects again.
package kestrel

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/keeper"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
)

//go:embed page.md
var files embed.FS

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "kestrel",
		Title:   "Kestrel",
		Summary: "A queue server with the text protocol of memcache; tested against a stand-in, and by hand against Siberite.",
		Capabilities: driver.Capabilities{
			Consume:         true,
			Competing:       true,
			Subscriptions:   true, // with the option fanout
			Nack:            true,
			SettleConfirmed: true,
			Retains:         true,
			Settle:          []driver.Settle{driver.SettleEach},
			Guarantees:      []driver.Guarantee{driver.Received},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.PerDestination,
		},
		New: func() driver.Config {
			return &Config{Address: servers.Like, Wait: time.Second, Poll: time.Millisecond, Timeout: 10 * time.Second, ReconnectWait: 250 * time.Millisecond}
		},
		Page: driver.MustPage(files),
	}
}

// Config holds the driver's settings.
type Config struct {
	Address       string        `option:"address" help:"Server, as host:port."`
	Fanout        bool          `option:"fanout" help:"Each subscription reads a child queue of its own (queue+subscription). no: all consumers compete for the items of the queue."`
	Expiry        time.Duration `option:"expiry" min:"1s" unit:"1s" zero:"yes" help:"After this time the server drops an item that no consumer has taken; 0: never."`
	Wait          time.Duration `option:"wait" min:"1ms" max:"2s" unit:"1ms" help:"How long the server waits for an item before it answers a get of an empty queue. Siberite does not wait."`
	Poll          time.Duration `option:"poll" min:"100us" max:"1s" help:"Pause of a consumer after an empty answer."`
	Timeout       time.Duration `option:"timeout" min:"3s" max:"5m" help:"Longest time to connect, and longest time of one command."`
	ReconnectWait time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause before each attempt to reconnect. The attempts never end."`
}

// longest is the protocol's maximum key length in bytes, minus the options of a get.
const longest = 200

// servers describes valid addresses.
var servers = endpoint.Kind{Schemes: []string{"tcp"}, Port: "22133", Like: "127.0.0.1:22133"}

// Validate reports every invalid setting, joined.
func (c *Config) Validate() error {
	_, err := servers.All("address", []string{c.Address})
	return err
}

func (c *Config) Narrow(to driver.Capabilities) driver.Capabilities {
	to.Subscriptions = c.Fanout
	to.Retains = !c.Fanout // a child begins when its subscription does
	return to
}

// A link is a maintained connection.
type link = keeper.Keeper[*session]

// connect opens and maintains a connection for the run.
func (c *Config) connect(ctx context.Context, run driver.Run, name string) (*link, error) {
	at, err := servers.Parse(c.Address)
	if err != nil {
		return nil, err
	}
	return keeper.Open(ctx, keeper.Plan[*session]{
		Name: name, Run: run, Limit: c.Timeout, Wait: c.ReconnectWait, Answer: answers.Find,
		Address: at.HostPort(), Client: newSession,
	})
}

// Open connects, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	l, err := c.connect(ctx, run, "control")
	if err != nil {
		return nil, err
	}
	x := &conn{cfg: *c, run: run, link: l}
	// An open port does not prove that a server answers. This uses Do, because a wrong answer would
	// not improve on retry.
	if err := l.Do(ctx, func(s *session) error { _, err := s.stats(); return err }); err != nil {
		l.Close()
		return nil, fmt.Errorf("asking for the server's figures: %w", failure.Map{}.Unreachable(err))
	}
	return x, nil
}

// A conn is one run's connection to the server.
type conn struct {
	cfg  Config
	run  driver.Run
	link *link // for requests

	children known.Table[string, string] // queues of subscriptions: the queue of each
}

// queue returns the queue of a destination. Its name has no dot, which Siberite would read as the
// name of a cursor.
func (c *conn) queue(destination string) (string, error) {
	if c.run.Existing && (len(destination) > longest || strings.ContainsAny(destination, " /+.~\t\r\n") || destination == "") {
		return "", fmt.Errorf("a queue cannot have this name: %w", driver.ErrUnsupported)
	}
	return strings.ReplaceAll(names.Of(c.run, longest, destination), ".", "-"), nil
}

func (c *conn) child(queue, subscription string) string {
	if !c.cfg.Fanout {
		return queue
	}
	key := queue + "+" + names.Token(subscription)
	c.children.Note(key, queue)
	return key
}

// Declare does nothing: the server creates a queue when a client names it.
func (c *conn) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete deletes the queues, and their child queues of this Conn's subscriptions.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		queue, err := c.queue(d.Name)
		for _, key := range append(known.Having(&c.children, queue), queue) {
			if err == nil {
				err = c.link.Ask(ctx, func(s *session) error { _, err := s.tell("delete", key); return err })
			}
		}
		return err
	})
}

// Backlog implements driver.Backlogger: items that wait, plus items that consumers hold.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	figures, err := c.stats(ctx)
	if err != nil {
		return 0, err
	}
	return each.Sum(destinations, func(d string) (sum uint64, err error) {
		queue, err := c.queue(d)
		if err != nil {
			return 0, err
		}
		key := c.child(queue, subscription)
		for _, figure := range []string{"_items", "_open_transactions"} {
			n, _ := strconv.ParseUint(figures["queue_"+key+figure], 10, 64)
			sum += n
		}
		return sum, nil
	})
}

// stats asks the server for its statistics.
func (c *conn) stats(ctx context.Context) (figures map[string]string, err error) {
	err = c.link.Ask(ctx, func(s *session) (err error) { figures, err = s.stats(); return err })
	return figures, err
}

// Facts asks the server.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	figures, err := c.stats(ctx)
	return driver.Facts{
		Name: "kestrel", Version: figures["version"], Nodes: 1,
		Confirms: driver.Confirms{Guarantee: driver.Received, Copies: driver.CopiesOne, Stable: driver.StableNone},
		Settings: map[string]string{"journal": "not told by the protocol"},
	}, err
}

// Close ends the connection.
func (c *conn) Close(context.Context) error {
	c.link.Close()
	return nil
}

var _ driver.Narrowed = (*Config)(nil)
