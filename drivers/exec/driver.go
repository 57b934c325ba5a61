// Package exec drives a driver in any language: a process of its own, which connects to a
// Unix socket of weir's. page.md says what is what, docs/examples/exec/README.md describes
// the protocol.
//
// Each producer and each consumer has a connection of its own, so that a slow one holds
// up no other. What is published while a frame is being written leaves in the next one.
// The child says of each message how long its client took; the engine subtracts that from
// what it measured itself, which is the cost of the way there and back (driver.Message.Took).
package exec

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
)

//go:embed page.md
var files embed.FS

// largest is the most bytes of a payload.
const largest = 64 << 20

// Definition returns the driver, with every capability that a child may have.
func Definition() driver.Definition {
	return driver.Definition{
		Name:    "exec",
		Title:   "a driver in any language",
		Summary: "A process that you write drives the system; weir speaks to it by a documented protocol over a Unix socket. The tests use the examples for Redis and Kafka.",
		Capabilities: driver.Capabilities{
			Consume: true, Partitions: true, Replicas: true, Keys: true, Subscriptions: true, Competing: true,
			Nack: true, SettleConfirmed: true, Retains: true,
			Settle:     []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto, driver.SettleNone},
			Guarantees: []driver.Guarantee{driver.Buffered, driver.Written, driver.Received, driver.Replicated, driver.Persisted},
			Delivery:   driver.AtLeastOnce,
			Ordering:   driver.PerDestination,
			MaxPayload: largest,
		},
		New: func() driver.Config {
			return &Config{Order: "none", StartLimit: 10 * time.Second, Timeout: 10 * time.Second}
		},
		Page: driver.MustPage(files),
	}
}

// Config holds the driver's settings.
type Config struct {
	Command    []string      `option:"command" command:"yes" help:"Program to start and its arguments, one word each. It is started as weir's user, in weir's working folder, and ends with the run."`
	Retains    bool          `option:"retains" help:"The system keeps messages for a subscription while its consumers do not receive yet. Mode backlog needs it. The child must state it, too."`
	Order      string        `option:"order" allowed:"none,key,partition,destination" help:"Order that the verdict holds the system to. The child must state at least this order."`
	StartLimit time.Duration `option:"start-limit" min:"100ms" max:"5m" help:"Longest time from the start of the child to its first connection."`
	Timeout    time.Duration `option:"timeout" min:"100ms" max:"5m" help:"Longest time that the child may take to answer a request, or to finish a producer or a consumer."`
}

// Validate returns nil: the options' bounds check everything.
func (c *Config) Validate() error { return nil }

// orders lists the values of the option order, narrowest first.
var orders = []string{"none", "key", "partition", "destination"}

func (c *Config) Narrow(can driver.Capabilities) driver.Capabilities {
	can.Retains = can.Retains && c.Retains
	can.Ordering = min(can.Ordering, driver.Ordering(max(0, slices.Index(orders, c.Order))))
	return can
}

// Open starts the child and waits until it has connected, within ctx and the option
// start-limit.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	child, err := start(ctx, c.Command, c.StartLimit, c.Timeout)
	if err != nil {
		return nil, err
	}
	x := &conn{child: child, run: run, can: map[string]bool{}, takes: map[string]string{}}
	for _, word := range child.hello["can"] {
		x.can[word] = true
	}
	if err := x.states(c); err != nil {
		_ = child.stop(ctx)
		return nil, err
	}
	existing := "no"
	if run.Existing {
		existing = "yes"
	}
	if _, err := child.ask(ctx, "open", fields{"run": {run.ID}, "existing": {existing}}); err != nil {
		_ = child.stop(ctx)
		return nil, err
	}
	return x, nil
}

// A conn is a child that has been told about the run.
type conn struct {
	child *child
	run   driver.Run
	can   map[string]bool // what the child supports

	mu    sync.Mutex
	takes map[string]string // by destination: its only possible subscription
}

// states returns an error for options that claim more than the child supports.
func (c *conn) states(cfg *Config) error {
	if order := c.child.hello.get("order"); slices.Index(orders, cfg.Order) > max(0, slices.Index(orders, order)) {
		return fmt.Errorf("option order: %s, but the child states %q: %w", cfg.Order, order, driver.ErrUnsupported)
	}
	return c.needs("retains", cfg.Retains)
}

// needs returns an error if the child does not support a needed capability.
func (c *conn) needs(word string, needed bool) error {
	if !needed || c.can[word] {
		return nil
	}
	have := slices.Sorted(func(yield func(string) bool) {
		for w := range c.can {
			if !yield(w) {
				return
			}
		}
	})
	return fmt.Errorf("the child does not state %s (it states %s): %w", word, strings.Join(have, ", "), driver.ErrUnsupported)
}

// share returns an error for a second subscription of a destination if the child supports only one.
func (c *conn) share(spec driver.ConsumerSpec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range spec.Destinations {
		have, taken := c.takes[d]
		if err := c.needs("subscriptions", taken && have != spec.Subscription); err != nil {
			return err
		}
	}
	for _, d := range spec.Destinations {
		c.takes[d] = spec.Subscription
	}
	return nil
}

// Declare makes the child create the destinations.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		err := c.needs("partitions", d.Partitions > 1)
		if err == nil {
			err = c.needs("replicas", d.Replicas > 1)
		}
		if err == nil {
			_, err = c.child.ask(ctx, "declare", fields{
				"destination": {d.Name}, "partitions": {strconv.Itoa(d.Partitions)}, "replicas": {strconv.Itoa(d.Replicas)},
			})
		}
		return err
	})
}

// Delete makes the child remove the destinations.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		_, err := c.child.ask(ctx, "delete", fields{"destination": {d.Name}})
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.takes, d.Name)
		}
		return err
	})
}

// settingPrefix begins the names of facts fields that are settings of the system.
const settingPrefix = "setting."

// Facts asks the child.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	got, err := c.child.ask(ctx, "facts", fields{})
	if err != nil {
		return driver.Facts{}, err
	}
	f := driver.Facts{
		Name: got.get("name"), Version: got.get("version"),
		Settings: map[string]string{
			"child": c.child.hello.get("name"), "child.client": c.child.hello.get("client"), "child.order": c.child.hello.get("order"),
		},
	}
	nodes, err := number(got, "nodes", 0, 10_000)
	if err == nil {
		f.Nodes = int(nodes)
		f.Confirms, err = confirms(got)
	}
	if err == nil && (f.Name == "" || f.Version == "") {
		err = fmt.Errorf("%w: facts without name or version", errMalformed)
	}
	for name, values := range got {
		if s, is := strings.CutPrefix(name, settingPrefix); is {
			f.Settings[s] = strings.Join(values, ", ")
		}
	}
	return f, err
}

// confirms parses what a confirmation means.
func confirms(got fields) (c driver.Confirms, err error) {
	if c.Guarantee, err = driver.ParseGuarantee(got.get("guarantee")); err != nil {
		return c, fmt.Errorf("%w: %w", errMalformed, err)
	}
	for name, to := range map[string]struct {
		words []string
		set   func(int)
	}{
		"copies": {[]string{"1", "quorum", "all"}, func(i int) { c.Copies = driver.Copies(i) }},
		"stable": {[]string{"none", "os", "fsync"}, func(i int) { c.Stable = driver.Stable(i) }},
	} {
		i := slices.Index(to.words, got.get(name))
		if i < 0 {
			return c, fmt.Errorf("%w: %s is %q (%s)", errMalformed, name, got.get(name), strings.Join(to.words, ", "))
		}
		to.set(i)
	}
	return c, nil
}

// number parses a field in the range 0 to most; a missing field is preset.
func number(got fields, name string, preset, most int64) (int64, error) {
	if got.get(name) == "" {
		return preset, nil
	}
	n, err := strconv.ParseInt(got.get(name), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%w: %s is %q (0 to %d)", errMalformed, name, got.get(name), most)
	}
	return n, nil
}

// Backlog implements driver.Backlogger: the child asks the system.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	got, err := c.child.ask(ctx, "backlog", fields{"subscription": {subscription}, "destination": destinations})
	if err != nil {
		return 0, err
	}
	n, err := number(got, "count", 0, 1<<62)
	return uint64(n), err
}

// Close stops the child.
func (c *conn) Close(ctx context.Context) error { return c.child.stop(ctx) }
