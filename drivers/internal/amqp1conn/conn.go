// Package amqp1conn implements what the drivers for AMQP 1.0 servers share: connections, the
// producer, the consumer, and requests with answers.
//
// # Client behavior
//
// In go-amqp, a send returns once the message is written, and yields a receipt that waits for the
// server's outcome. For each of its queues a producer has one goroutine that sends and one that
// waits for the receipts, in message order. If a server settles later messages of a queue first,
// they therefore appear settled after the earlier ones.
//
// The client does not reconnect. Package retry does, and messages in flight on the lost connection
// fail.
//
// # Capabilities
//
// A link asks for the capability "queue" at each address. Without it, Artemis treats a receiver's
// address as a topic: the receiver gets its own subscription, which never receives any message sent
// to the queue.
package amqp1conn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A System implements the parts that differ between servers. Its methods may be called
// concurrently.
type System interface {
	// Declare creates a queue with 1 or more replicas. It is no error if the queue exists.
	Declare(ctx context.Context, a *Admin, queue string, replicas int) error
	// Delete removes a queue with its messages. It is no error if the queue is missing.
	Delete(ctx context.Context, a *Admin, queue string) error
	// Waiting returns the number of messages in a queue that no consumer has settled. A server that
	// does not count messages it has sent to consumers leaves them out. If the queue does not
	// exist, the error is driver.ErrUnsupported.
	Waiting(ctx context.Context, a *Admin, queue string) (uint64, error)
	// Facts returns what the server is and what a confirmation means in these queues; with no
	// queues, in the queues that Declare creates.
	Facts(ctx context.Context, a *Admin, queues []string) (driver.Facts, error)
}

// An Addressed is a System whose queue addresses differ from the queue names.
type Addressed interface {
	// Address returns the address that a link to a queue attaches to.
	Address(queue string) string
}

// MostCounted is the number of queues up to which Facts includes what the server dropped: each
// takes several requests, and facts have seconds.
const MostCounted = 100

// A Limited is a System that reports why it accepts no messages.
type Limited interface {
	// Full returns the reason why no messages are accepted for a queue. "": there is none, or the
	// server does not report it.
	Full(ctx context.Context, a *Admin, queue string) (why string, err error)
}

// A Deferring is a System that answers the end of a link before it has taken all of the link's
// messages, and that takes the messages of a session in order.
type Deferring interface {
	// Question returns a message that the server accepts, and its address.
	Question() (m *client.Message, address string)
}

// A Conn is one run's connection to the server. It implements driver.Conn and driver.Backlogger.
type Conn struct {
	options *Options
	system  System
	run     driver.Run
	servers []server
	admin   *Admin

	queues known.Table[string, struct{}] // used by producers, consumers and Declare

	mu   sync.Mutex
	held map[string]*atomic.Int64 // by queue: consumer links that are not idle
}

// Open connects within ctx and reads the facts, because an open port does not prove that a server
// answers. The Conn keeps o.
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

// longest is the maximum length of a queue name, in bytes.
const longest = 200

func (c *Conn) queue(destination string) string {
	q := names.Of(c.run, longest, destination)
	c.queues.Note(q, struct{}{})
	return q
}

// full returns the reason why a queue accepts no messages, if the System reports it.
func (c *Conn) full(ctx context.Context, queue string) (string, error) {
	if l, ok := c.system.(Limited); ok {
		return l.Full(ctx, c.admin, queue)
	}
	return "", nil
}

const (
	openLimit = 5 * time.Second        // for consumers to make room when a producer is opened
	openPause = 100 * time.Millisecond // between two questions
)

// takes waits until no queue is full.
func (c *Conn) takes(ctx context.Context, queues []string) error {
	short, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	for _, q := range queues {
		for {
			why, err := c.full(ctx, q)
			if err != nil || why == "" {
				break // the server may not permit the question
			}
			if !retry.Pause(short, openPause) {
				return fmt.Errorf("%w: %s", driver.ErrBlocked, why)
			}
		}
	}
	return nil
}

// address returns the address that a link to a queue attaches to.
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

// existing is queue for a producer or consumer that is being opened: with existing destinations,
// the queue must be there.
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

// Backlog implements driver.Backlogger. For a server that does not count messages it has sent, the
// result is at least 1 while a consumer of this Conn holds a message.
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
	return c.system.Facts(ctx, c.admin, known.Names(&c.queues))
}

// Close implements driver.Conn.
func (c *Conn) Close(context.Context) error {
	c.admin.end()
	return nil
}
