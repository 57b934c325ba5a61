package rabbitmq

import (
	"context"
	"crypto/tls"
	_ "embed" // of the page and the recipe
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
)

// recipe says how real servers are had and started, page what the driver says to a
// reader.
var (
	//go:embed recipe.yaml
	recipe string
	//go:embed page.md
	page string
)

// Definition returns the driver.
func Definition() driver.Definition {
	return driver.Definition{
		Name:    "rabbitmq",
		Title:   "RabbitMQ",
		Summary: "Queues behind exchanges, classic on one node or quorum with replicas, over AMQP 0-9-1.",
		Client:  "github.com/rabbitmq/amqp091-go",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Replicas:      true,
			Subscriptions: true,
			Competing:     true,
			Nack:          true,
			Retains:       true, // the queue is made when the consumer is opened
			Resumes:       true,
			Settle:        []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto},
			Guarantees:    []driver.Guarantee{driver.Written, driver.Received, driver.Persisted},
			Delivery:      driver.AtLeastOnce,
			Ordering:      driver.PerDestination,
			// The largest message is each server's own (max_message_size), which a
			// producer tries when it is opened.
		},
		New:    func() driver.Config { return newConfig() },
		Recipe: []byte(recipe),
		Page:   driver.MustPage(page),
	}
}

// A conn is one run's hold on the cluster.
type conn struct {
	cfg       Config
	run       driver.Run
	tls       *tls.Config // nil: none
	addresses []string
	release   [2]int // of the oldest node's version, the first two numbers
	admin     admin
	http      *management // nil: none

	mu       sync.Mutex
	declared map[string]queueKind     // by destination
	made     map[string][]string      // queues of subscriptions, by destination
	only     map[string]string        // the subscription of a destination that can have one
	held     map[string]*atomic.Int64 // what a subscription's consumers have and have not settled
	unsubs   map[string]bool          // queues behind what is not weir's, to be removed by Close

	durable map[string]bool // subscriptions whose names are the system's

	closing sync.Once
}

// Open connects to every node once, within ctx and 4 s each.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	x := &conn{
		cfg: *c, run: run, addresses: c.addresses(), admin: admin{lock: make(chan struct{}, 1)},
		declared: map[string]queueKind{}, made: map[string][]string{}, only: map[string]string{}, held: map[string]*atomic.Int64{},
		unsubs: map[string]bool{}, durable: map[string]bool{},
	}
	t, err := c.TLS.Config()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	if c.secure() {
		x.tls = t
	}
	if err := x.meet(ctx); err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	if len(c.Management) > 0 {
		x.http = newManagement(c, t)
		if _, err := x.http.nodes(ctx); err != nil {
			_ = x.Close(ctx)
			return nil, fmt.Errorf("rabbitmq: option management: %w", err)
		}
	}
	return x, nil
}

// meet connects to every address, and refuses what cannot be driven. The
// connection to the first stays.
func (c *conn) meet(ctx context.Context) error {
	links, errs := make([]*link, len(c.addresses)), make([]error, len(c.addresses))
	var all sync.WaitGroup
	for i, a := range c.addresses {
		all.Go(func() {
			if links[i], errs[i] = c.dial(ctx, a, "admin", overheard(nil, nil)); errs[i] != nil {
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

// floor is the oldest server that is driven: the first one with quorum queues.
const floorMajor, floorMinor = 3, 8

// check refuses servers that are no RabbitMQ, or too old.
func (c *conn) check(links []*link) error {
	for i, l := range links {
		r, ok := release(l.version())
		if !ok {
			return fmt.Errorf("%s: %w: %q %q is not a version of RabbitMQ", l.address, driver.ErrUnsupported, l.product(), l.version())
		}
		if i == 0 || slices.Compare(r[:], c.release[:]) < 0 {
			c.release = r // of nodes that are upgraded one by one, the oldest
		}
		if c.before(floorMajor, floorMinor) {
			return fmt.Errorf("%s: %w: version %s is too old (%d.%d or later)", l.address, driver.ErrUnsupported, l.version(), floorMajor, floorMinor)
		}
	}
	return nil
}

// release reads the first two numbers of a version.
func release(version string) (out [2]int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return out, false
	}
	for i := range out {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return out, false
		}
		out[i] = n
	}
	return out, true
}

// before reports whether the server is older than a release.
func (c *conn) before(major, minor int) bool {
	return slices.Compare(c.release[:], []int{major, minor}) < 0
}

// remembers a queue of a subscription.
func (c *conn) note(destination, queue string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.made[destination], queue) {
		c.made[destination] = append(c.made[destination], queue)
	}
}

// Close removes the queues made behind exchanges that exist without weir.
func (c *conn) Close(ctx context.Context) error {
	c.mu.Lock()
	left := slices.Sorted(maps.Keys(c.unsubs))
	clear(c.unsubs)
	c.mu.Unlock()
	var errs []error
	for _, q := range left {
		err := c.ask(ctx, func(ch *client.Channel) error {
			_, err := ch.QueueDelete(q, false, false, false)
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("rabbitmq: queue %s stays: %w", q, err))
		}
	}
	c.closing.Do(func() {
		c.admin.lock <- struct{}{} // for ever: it is over
		if c.admin.link != nil {
			c.admin.link.end()
		}
		if c.http != nil {
			c.http.close()
		}
	})
	return errors.Join(errs...)
}

// event tells a reader of the result.
func (c *conn) event(kind, text string) {
	if c.run.Event != nil {
		c.run.Event(kind, text)
	}
}

var (
	_ driver.Conn       = (*conn)(nil)
	_ driver.Backlogger = (*conn)(nil)
)
