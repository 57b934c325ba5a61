// Package rabbitmq drives RabbitMQ: classic and quorum queues behind exchanges, over AMQP 0-9-1.
// page.md says what weir's terms mean here. This comment adds details.
//
// Names are the same in every process, so that no process needs to know another. A message without
// a subscription goes by the exchange's alternate exchange to a queue of the destination's name
// (https://www.rabbitmq.com/docs/ae), so that it is confirmed and kept as the rest is. Behind an
// existing exchange weir makes queues weir.<run>.<destination>.<subscription>, which Conn.Close
// removes. The management plugin reports the type of an existing queue. Without it, the driver
// declares the queue again with an impossible type, and reads the server's refusal. What is not
// known of a queue counts as the lesser.
//
// A message larger than the server's max_message_size ends the channel, and all that is in flight on
// it. The server does not report its limit. A producer that knows its largest message therefore
// sends one of that size to nowhere when it is opened.
//
// # What the client does, and what is done below it
//
// The client reports returned messages without saying which they are, and confirmations only in the
// order of the messages. A wire below the client therefore reads the frames that come in: a
// confirmation counts when its bytes are read.
//
// Package retry connects again, to the next address. After the leader of a quorum queue was killed,
// a channel may keep refusing what the cluster takes again. When a channel has refused every
// message of a destination for reopen-after, the producer opens another
// (docs/adr/0031-the-label-says-what-publishes.md).
package rabbitmq

import (
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files, rabbitserver.Recipe(), rabbitserver.Three())

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "rabbitmq",
		Title:   "RabbitMQ",
		Summary: "Queues behind exchanges, classic on one node or quorum with replicas, over AMQP 0-9-1.",
		Client:  "github.com/rabbitmq/amqp091-go",
		Capabilities: driver.Capabilities{
			Leaders:       true,
			Consume:       true,
			Replicas:      true,
			Subscriptions: true,
			Competing:     true,
			Nack:          true,
			DeadLetters:   true, // for quorum queues
			Retains:       true, // the queue is created when the consumer is opened
			Resumes:       true,
			PublishBlocks: true,
			Settle:        []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto},
			Guarantees:    []driver.Guarantee{driver.Written, driver.Received, driver.Persisted},
			Delivery:      driver.AtLeastOnce,
			Ordering:      driver.PerDestination,
			// Each server's own limit applies (max_message_size), which a producer probes when it
			// is opened.
		},
		New:  func() driver.Config { return newConfig() },
		Page: page,
	}
}

// A conn is one run's connection to the cluster.
type conn struct {
	cfg       Config
	run       driver.Run
	tls       *tls.Config // nil: none
	addresses []string
	release   rabbitserver.Version // of the oldest node
	lavinMQ   bool                 // not RabbitMQ: the release is 0, and says nothing
	admin     admin
	http      *management // nil: none
	metrics   *metrics    // nil: none

	kinds known.Table[string, queueKind] // of queues declared or inspected, by destination

	mu      sync.Mutex
	made    map[string][]string // subscription queues that Delete or Close removes, by destination
	only    map[string]string   // the subscription of a destination that can have only one
	durable map[string]bool     // subscriptions with queues under their own names, which remain

	sessions known.Table[*session, string]
}

// Open connects to every node once, within ctx and 4 s each.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	x := &conn{
		cfg: *c, run: run, addresses: []string{defaultAddress}, admin: admin{lock: make(chan struct{}, 1)},
		made: map[string][]string{}, only: map[string]string{}, durable: map[string]bool{},
	}
	t, err := c.TLS.Config()
	if err != nil {
		return nil, err
	}
	list, err := brokers.All("address", c.Address)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		x.addresses = list.HostPorts()
	}
	if list.Secure() || c.TLS != (driver.TLSOptions{}) {
		x.tls = t
	}
	urls, err := plugins.All("management", c.Management)
	if err != nil {
		return nil, err
	}
	if x.metrics, err = newMetrics(c, t); err != nil {
		return nil, err
	}
	if err := x.meet(ctx); err != nil {
		return nil, err
	}
	if len(urls) > 0 {
		x.http = newManagement(c, urls, t)
		if _, err := x.http.nodes(ctx); err != nil {
			_ = x.Close(ctx)
			return nil, fmt.Errorf("option management: %w", err)
		}
	}
	if _, err := x.metrics.discarded(ctx); err != nil {
		_ = x.Close(ctx)
		return nil, fmt.Errorf("option metrics: %w", err)
	}
	return x, nil
}

// meet connects to every address, and rejects unsupported servers. The connection to the first is
// kept.
func (c *conn) meet(ctx context.Context) error {
	links, errs := make([]*link, len(c.addresses)), make([]error, len(c.addresses))
	var all sync.WaitGroup
	for i, a := range c.addresses {
		all.Go(func() {
			if links[i], errs[i] = c.dial(ctx, a, "admin", nil); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", a, errs[i])
			}
		})
	}
	all.Wait()
	err := errors.Join(errs...)
	if err == nil {
		err = c.check(links)
	}
	for i, l := range links {
		if l != nil && (i > 0 || err != nil) {
			l.end()
		}
	}
	if err == nil {
		c.admin.link = links[0]
	}
	return err
}

// check returns an error for servers that are neither RabbitMQ nor LavinMQ, or too old. During a rolling upgrade,
// the oldest node decides.
func (c *conn) check(links []*link) error {
	for i, l := range links {
		if l.property("product") == "LavinMQ" { // numbers its releases differently
			c.lavinMQ = true
			continue
		}
		r, err := rabbitserver.Release(l.property("version"))
		if err != nil {
			return fmt.Errorf("%s: %w: %q: %w", l.address, driver.ErrUnsupported, l.property("product"), err)
		}
		if i == 0 || r.Before(c.release[0], c.release[1]) {
			c.release = r
		}
		if err := r.AtLeast(3, 8); err != nil { // the first one with quorum queues
			return fmt.Errorf("%s: %w", l.address, err)
		}
	}
	if v, only := c.cfg.ClassicVersion, c.onlyVersion(); v != server && only != "" && v != only {
		return fmt.Errorf("option classic-version: %s: classic queues of RabbitMQ %d.%d have only version %s: %w", v, c.release[0], c.release[1], only, driver.ErrUnsupported)
	}
	return nil
}

// Close removes the queues bound to existing exchanges.
func (c *conn) Close(ctx context.Context) error {
	var errs []error
	if c.run.Existing {
		c.mu.Lock()
		left := slices.Sorted(maps.Keys(c.made))
		c.mu.Unlock()
		for _, d := range left {
			for _, q := range c.forget(d) {
				err := c.ask(ctx, func(ch *client.Channel) error {
					_, err := ch.QueueDelete(q, false, false, false)
					return err
				})
				if err != nil {
					errs = append(errs, fmt.Errorf("queue %s stays: %w", q, err))
				}
			}
		}
	}
	c.admin.end()
	if c.http != nil {
		c.http.Close()
	}
	return errors.Join(errs...)
}

var _ driver.Labelled = (*Config)(nil)
