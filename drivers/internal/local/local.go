// Package local is what the in-process drivers share: destinations and
// subscriptions inside one Conn, each subscription of a destination with a
// bounded queue of its own. A driver brings the queue.
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

// A Queue is a bounded queue of byte strings, first in, first out. Any goroutine may call
// its methods. Put and Take allocate nothing.
type Queue interface {
	// Put copies payload, which fits, into the queue. It waits for room until
	// ctx ends or the queue is closed, and returns ctx's error or ErrGone then.
	Put(ctx context.Context, payload []byte) error
	// Take moves the oldest payload into buf, which has room, and returns its
	// length. It waits for one until ctx ends or the queue is closed, and
	// returns ctx's error or ErrGone then.
	Take(ctx context.Context, buf []byte) (int, error)
	// Len returns how many payloads are in the queue.
	Len() int
	// Close ends every wait. It is idempotent.
	Close()
}

// ErrGone: the destination was deleted, or the connection closed.
var ErrGone = errors.New("destination deleted")

// Capabilities returns what a driver on this package can do. maxPayload is in
// bytes.
func Capabilities(maxPayload int) driver.Capabilities {
	return driver.Capabilities{
		Consume:       true,
		Subscriptions: true,
		Competing:     true,
		PublishBlocks: true,
		InProcess:     true,
		Retains:       true, // as many as a queue has room for; then Publish waits
		Settle:        []driver.Settle{driver.SettleNone},
		Guarantees:    []driver.Guarantee{driver.Buffered},
		Delivery:      driver.ExactlyOnce,
		Ordering:      driver.PerDestination,
		MaxPayload:    maxPayload,
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

// NewConn returns a Conn. queue makes the queues of its subscriptions, which take
// payloads of up to cell bytes. Its Facts have the queue's name and settings.
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
	queues atomic.Pointer[[]Queue] // what producers put into; replaced under Conn.mu
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

// Delete removes the destinations. Who waits on them is told so.
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

// Facts returns what NewConn was told.
func (c *Conn) Facts(context.Context) (driver.Facts, error) { return c.facts, nil }

// Backlog implements driver.Backlogger: what lies in the subscription's queues.
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

// lookup returns the destination of that name, nil if it was not declared.
func (c *Conn) lookup(name string) *destination { return (*c.destinations.Load())[name] }

// subscribe returns the queue of a subscription of a destination; the first call
// makes it.
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
