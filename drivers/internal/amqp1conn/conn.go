// Package amqp1conn is what the drivers of AMQP 1.0 servers share: connections, the
// producer, the consumer, and questions with answers.
//
// # What the client does
//
// go-amqp returns from a call to send when it has written the message, and hands out a
// receipt that waits for the server's outcome. For each of its queues a producer has one
// goroutine that sends and one that waits for the receipts in the order of the messages. A
// server that settles later messages of a queue first is therefore seen to settle them
// after the earlier ones.
//
// The client does not connect again. Package retry does, and what was in flight on the
// lost connection fails.
//
// # Capabilities
//
// A link asks for the capability "queue" at each address. Without it, Artemis takes a
// receiver's address for a topic: the receiver gets a subscription of its own, in which
// nothing ever arrives that was sent to the queue.
package amqp1conn

import (
	"context"
	"sync"
	"sync/atomic"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
)

// A System is what differs between servers. Its methods may be called concurrently.
type System interface {
	// Declare makes a queue of 1 or more replicas; one that exists is not an error.
	Declare(ctx context.Context, a *Admin, queue string, replicas int) error
	// Delete removes a queue with its messages; one that is missing is not an error.
	Delete(ctx context.Context, a *Admin, queue string) error
	// Waiting returns how many messages a queue holds that no consumer has settled. A
	// server that does not count what it has sent to consumers leaves these out.
	// A queue that does not exist is driver.ErrUnsupported.
	Waiting(ctx context.Context, a *Admin, queue string) (uint64, error)
	// Facts says what the server is, and what a confirmation means in these queues;
	// none: in the queues that Declare makes.
	Facts(ctx context.Context, a *Admin, queues []string) (driver.Facts, error)
}

// An Addressed is a System where the address of a queue is not its name.
type Addressed interface {
	// Address returns what a link to a queue attaches to.
	Address(queue string) string
}

// A Deferring is a System that answers the end of a link before it has taken all messages of the
// link, and takes the messages of a session in order.
type Deferring interface {
	// Question returns a message that the server takes at an address.
	Question() (m *client.Message, address string)
}

// A Conn is one run's hold on the server. It implements driver.Conn and driver.Backlogger.
type Conn struct {
	options *Options
	system  System
	run     driver.Run
	servers []server
	admin   *Admin

	queues known.Table[struct{}] // that producers, consumers and Declare named

	mu   sync.Mutex
	held map[string]*atomic.Int64 // links of consumers to a queue that are not idle
}

// Open connects, within ctx, and reads the facts: a port that is open need not be a
// server that answers. The Conn keeps o.
func Open(ctx context.Context, run driver.Run, o *Options, s System) (driver.Conn, error) {
	all, err := o.servers()
	if err != nil {
		return nil, err
	}
	c := &Conn{options: o, system: s, run: run, servers: all, held: map[string]*atomic.Int64{}}
	c.admin = &Admin{conn: c, lock: make(chan struct{}, 1)}
	if _, err := c.Facts(ctx); err != nil {
		c.admin.end()
		return nil, err
	}
	return c, nil
}

// longest is how many bytes the name of a queue has at most.
const longest = 200

func (c *Conn) queue(destination string) string {
	q := destination
	if !c.run.Existing {
		q = names.Join(longest, "weir", c.run.ID, destination)
	}
	c.queues.Note(q, struct{}{})
	return q
}

// address returns what a link to a queue attaches to.
func (c *Conn) address(queue string) string {
	if a, ok := c.system.(Addressed); ok {
		return a.Address(queue)
	}
	return queue
}

// holding returns how many of this Conn's links to a queue have messages.
func (c *Conn) holding(queue string) *atomic.Int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[queue] == nil {
		c.held[queue] = &atomic.Int64{}
	}
	return c.held[queue]
}

// existing is queue for an end that is opened: a queue that should exist must.
func (c *Conn) existing(ctx context.Context, destination string) (string, error) {
	q := c.queue(destination)
	if !c.run.Existing {
		return q, nil
	}
	_, err := c.system.Waiting(ctx, c.admin, q)
	return q, err
}

func (c *Conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error { return c.system.Declare(ctx, c.admin, c.queue(d.Name), d.Replicas) })
}

func (c *Conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		q := c.queue(d.Name)
		err := c.system.Delete(ctx, c.admin, q)
		if err == nil {
			c.queues.Forget(q)
		}
		return err
	})
}

// Backlog implements driver.Backlogger. Of a server that does not count what it has sent,
// it is at least 1 while a consumer of this Conn has a message.
func (c *Conn) Backlog(ctx context.Context, _ string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (uint64, error) {
		q := c.queue(d)
		held := c.holding(q)
		before := held.Load()
		n, err := c.system.Waiting(ctx, c.admin, q)
		return max(n, uint64(max(before, held.Load()))), err
	})
}

func (c *Conn) Facts(ctx context.Context) (driver.Facts, error) {
	return c.system.Facts(ctx, c.admin, c.queues.Names())
}

// Close implements driver.Conn.
func (c *Conn) Close(context.Context) error {
	c.admin.end()
	return nil
}

var _ driver.Backlogger = (*Conn)(nil)
