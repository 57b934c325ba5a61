// Package mailbox is a driver outside weir's repository. Its system is a Go channel for
// each destination, in the process that measures.
package mailbox

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/weirmq/weir/driver"
)

// largest is how many messages a mailbox may have room for.
const largest = 1 << 20

// Definition returns what the driver is and can do.
func Definition() driver.Definition {
	return driver.Definition{
		Name:    "mailbox",
		Title:   "Mailbox",
		Summary: "A Go channel, by a driver from another repository.",
		Capabilities: driver.Capabilities{
			Consume:       true,
			Competing:     true,
			PublishBlocks: true, // while a mailbox is full
			InProcess:     true,
			Retains:       true,
			Settle:        []driver.Settle{driver.SettleNone},
			Guarantees:    []driver.Guarantee{driver.Buffered},
			Delivery:      driver.ExactlyOnce,
			Ordering:      driver.PerDestination,
		},
		New: func() driver.Config { return &config{Room: 1024} },
		Page: driver.Page{
			About:    "Producers and consumers share a buffered Go channel for each destination.",
			Features: driver.Features{Persistence: "memory of the process", Replication: "none", Protocol: "none"},
			Maps: []driver.Mapping{
				{Word: "destination", To: "a mailbox"},
				{Word: "subscription", To: "the only reader of a mailbox; its consumers compete"},
				{Word: "guarantee", To: "the mailbox has a copy of the message"},
			},
			Confirmations: driver.Confirmations{{Confirms: driver.Confirms{Guarantee: driver.Buffered}}},
		},
	}
}

// config is the driver's options.
type config struct {
	Room int `option:"room" help:"How many messages a mailbox holds before Publish blocks."`
}

// Validate reports what is out of bounds.
func (c *config) Validate() error {
	if c.Room < 1 || c.Room > largest {
		return &driver.OptionError{Name: "room", Err: fmt.Errorf("is %d (1 to %d)", c.Room, largest)}
	}
	return nil
}

// Holds implements driver.Bounded.
func (c *config) Holds() (messages int, option string) { return c.Room, "room" }

// Open returns a Conn without mailboxes.
func (c *config) Open(context.Context, driver.Run) (driver.Conn, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &conn{room: c.Room, boxes: map[string]*box{}}, nil
}

// conn holds the mailboxes of one run.
type conn struct {
	room  int
	mu    sync.Mutex
	boxes map[string]*box // by destination
}

// box is a mailbox. It discards what comes before its first consumer.
type box struct {
	owner string // the only subscription; under conn.mu
	mail  chan []byte
}

func (c *conn) Declare(_ context.Context, ds ...driver.Destination) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range ds {
		if d.Partitions > 1 || d.Replicas > 1 {
			return fmt.Errorf("mailbox %s with partitions or replicas: %w", d.Name, driver.ErrUnsupported)
		}
		if c.boxes[d.Name] == nil {
			c.boxes[d.Name] = &box{mail: make(chan []byte, c.room)}
		}
	}
	return nil
}

func (c *conn) Delete(_ context.Context, ds ...driver.Destination) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range ds {
		delete(c.boxes, d.Name)
	}
	return nil
}

// open returns the mailbox of a destination, nil where it has no subscription. With a
// subscription's name, the mailbox is that subscription's from now on.
func (c *conn) open(name, subscription string) (chan []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.boxes[name]
	switch {
	case b == nil:
		return nil, fmt.Errorf("mailbox %s was not declared", name)
	case subscription == "" && b.owner == "":
		return nil, nil
	case subscription != "" && b.owner != "" && b.owner != subscription:
		return nil, fmt.Errorf("a second subscription of mailbox %s: %w", name, driver.ErrUnsupported)
	case b.owner == "":
		b.owner = subscription
	}
	return b.mail, nil
}

func (c *conn) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{Name: "Mailbox", Version: runtime.Version(), Confirms: driver.Confirms{Guarantee: driver.Buffered}}, nil
}

// Backlog implements driver.Backlogger.
func (c *conn) Backlog(_ context.Context, subscription string, destinations []string) (n uint64, err error) {
	for _, name := range destinations {
		b, err := c.open(name, subscription)
		if err != nil {
			return 0, err
		}
		n += uint64(len(b))
	}
	return n, nil
}

func (c *conn) Close(context.Context) error { return nil }

func (c *conn) Producer(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &producer{conn: c, done: done}, nil
}

func (c *conn) Consumer(_ context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	if spec.Settle != driver.SettleNone {
		return nil, fmt.Errorf("settle %v of a mailbox: %w", spec.Settle, driver.ErrUnsupported)
	}
	r := &consumer{}
	for _, name := range spec.Destinations {
		b, err := c.open(name, spec.Subscription)
		if err != nil {
			return nil, err
		}
		r.boxes = append(r.boxes, b)
	}
	return r, nil
}
