// Package local implements what the in-process drivers share: destinations and subscriptions inside
// one Conn. Each subscription of a destination has its own bounded queue, which the driver
// provides.
package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
)

// A Queue is a bounded FIFO queue of byte strings. Any goroutine may call its methods. Put and Take
// do not allocate.
type Queue interface {
	// Put copies payload, which fits, into the queue. It waits for room until ctx ends or the queue
	// is closed, and then returns ctx's error or ErrGone.
	Put(ctx context.Context, payload []byte) error
	// Take copies the oldest payload into buf, which is large enough, removes it, and returns its
	// length. It waits until ctx ends or the queue is closed, and then returns ctx's error or
	// ErrGone.
	Take(ctx context.Context, buf []byte) (int, error)
	// Len returns how many payloads are in the queue.
	Len() int
	// Close ends all waiting calls. It is idempotent.
	Close()
}

// ErrGone means that the destination was deleted, or the connection closed.
var ErrGone = errors.New("destination deleted")

// Capabilities returns the capabilities of a driver built on this package.
func Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Consume:       true,
		Subscriptions: true,
		Competing:     true,
		PublishBlocks: true,
		InProcess:     true,
		Retains:       true, // up to the queue's capacity; then Publish waits
		Settle:        []driver.Settle{driver.SettleNone},
		Guarantees:    []driver.Guarantee{driver.Buffered},
		Delivery:      driver.ExactlyOnce,
		Ordering:      driver.PerDestination,
		MaxPayload:    DefaultCell,
	}
}

// A Conn holds the destinations of one run. Its methods may be called
// concurrently.
type Conn struct {
	cell  int
	queue func() Queue
	facts driver.Facts

	mu           sync.Mutex
	destinations atomic.Pointer[map[string]*destination] // replaced under mu
}

// NewConn returns a Conn. queue creates its subscriptions' queues, for payloads of up to cell
// bytes. Its Facts contain name and settings.
func NewConn(cell int64, name string, settings map[string]string, queue func() Queue) *Conn {
	c := &Conn{cell: int(cell), queue: queue, facts: driver.Facts{
		Name: name, Version: runtime.Version(), Confirms: driver.Confirms{Guarantee: driver.Buffered}, Settings: settings,
	}}
	c.destinations.Store(&map[string]*destination{})
	return c
}

// A destination fans out to the queues of its subscriptions.
type destination struct {
	gone   atomic.Bool
	names  map[string]Queue        // by subscription; under Conn.mu
	queues atomic.Pointer[[]Queue] // what producers write to; replaced under Conn.mu
}

func (c *Conn) Declare(_ context.Context, ds ...driver.Destination) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(*c.destinations.Load())
	for _, d := range ds {
		if all[d.Name] == nil {
			n := &destination{names: map[string]Queue{}}
			n.queues.Store(new([]Queue))
			all[d.Name] = n
		}
	}
	c.destinations.Store(&all)
	return nil
}

// Delete removes the destinations. Waiting calls return ErrGone.
func (c *Conn) Delete(_ context.Context, ds ...driver.Destination) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(*c.destinations.Load())
	for _, d := range ds {
		if n := all[d.Name]; n != nil {
			n.close()
			delete(all, d.Name)
		}
	}
	c.destinations.Store(&all)
	return nil
}

func (d *destination) close() {
	d.gone.Store(true)
	for _, q := range d.names {
		q.Close()
	}
}

// Facts returns the facts given to NewConn.
func (c *Conn) Facts(context.Context) (driver.Facts, error) { return c.facts, nil }

// Backlog implements driver.Backlogger: the messages in the subscription's queues.
func (c *Conn) Backlog(_ context.Context, subscription string, destinations []string) (n uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range destinations {
		d := c.lookup(name)
		if d == nil || d.names[subscription] == nil {
			return 0, fmt.Errorf("subscription %s of %s is not there: %w", subscription, name, driver.ErrUnsupported)
		}
		n += uint64(d.names[subscription].Len())
	}
	return n, nil
}

// Close deletes everything.
func (c *Conn) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range *c.destinations.Load() {
		d.close()
	}
	c.destinations.Store(&map[string]*destination{})
	return nil
}

// lookup returns the destination of that name, or nil if it was not declared.
func (c *Conn) lookup(name string) *destination { return (*c.destinations.Load())[name] }

// subscribe returns the queue of a destination's subscription, which the first call creates.
func (c *Conn) subscribe(name, subscription string) (Queue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.lookup(name)
	if d == nil {
		return nil, fmt.Errorf("destination %s was not declared", name)
	}
	q := d.names[subscription]
	if q == nil {
		q = c.queue()
		d.names[subscription] = q
		queues := append(append([]Queue(nil), *d.queues.Load()...), q)
		d.queues.Store(&queues)
	}
	return q, nil
}
