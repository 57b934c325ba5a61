// Package mesh implements what drivers for brokerless socket libraries share. Such a library has no
// server: the sockets of producers and consumers are the system. Use it for a library with the
// patterns PUSH/PULL and PUB/SUB. A driver provides the sockets.
//
// A Conn holds all sockets of one process. Producers and consumers have a socket for each of their
// destinations. One side binds, and the other connects to each of its sockets. Opening a producer
// or consumer returns when all of the destination's connections are established, so that no message
// is lost to a late subscription.
package mesh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A Kind is a kind of socket.
type Kind uint8

// The kinds of socket.
const (
	Push Kind = iota
	Pull
	Pub
	Sub // subscribed to all topics
)

// Sends reports whether producers use this kind of socket.
func (k Kind) Sends() bool { return k == Push || k == Pub }

// A Socket is one socket of a library. Any goroutine may call its methods.
type Socket interface {
	// Listen binds the socket to an address, and returns the address to connect to.
	Listen(address string) (string, error)
	// Connect connects to an address. Until stop is called, which is idempotent, the library
	// reconnects whenever the connection is lost.
	Connect(address string) (stop func(), err error)
	// Peers returns the number of connections that the socket sends to now; for a PUB socket, those
	// whose subscription has arrived. It is called for PUSH and PUB sockets only.
	Peers() int
	// Send sends a message. The caller owns the bytes again on return. A PUSH socket waits for
	// room. Once Close is called, even during the wait, the error is driver.ErrClosed.
	Send(payload []byte) error
	// Receive waits for a message and passes it to take, which may use the bytes until it returns.
	// Once Close is called, even during the wait, the error is driver.ErrClosed.
	Receive(take func(payload []byte)) error
	// Close closes the socket and its connections. Messages that it still holds are lost. It is
	// idempotent.
	Close() error
}

// A Library describes the library that a driver measures.
type Library struct {
	Name, Version string
	Guarantee     driver.Guarantee // what a successful Socket.Send means
	Open          func(kind Kind) (Socket, error)
}

// Capabilities returns the capabilities of a driver built on this package.
func Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Consume:       true,
		Subscriptions: true, // pattern pubsub
		Competing:     true, // pattern pipeline
		InProcess:     true,
		Settle:        []driver.Settle{driver.SettleNone},
		Guarantees:    []driver.Guarantee{driver.Buffered},
		Delivery:      driver.AtMostOnce,
		Ordering:      driver.PerDestination,
	}
}

// Options holds the options that the drivers share.
type Options struct {
	Pattern   string `option:"pattern" allowed:"pipeline,pubsub" firm:"pipeline" help:"Sockets: pipeline is PUSH and PULL, where one consumer gets a message; pubsub is PUB and SUB, where each subscription gets it."`
	Transport string `option:"transport" allowed:"inproc,ipc,tcp" help:"What connects the sockets: memory of the process, Unix sockets, or TCP on 127.0.0.1."`
	Bind      string `option:"bind" allowed:"producers,consumers" help:"Which side binds its sockets; the other side connects to all of them."`
}

// Defaults returns the defaults: a pipeline over TCP in which consumers bind.
func Defaults() Options { return Options{Pattern: "pipeline", Transport: "tcp", Bind: "consumers"} }

func (o Options) Narrow(c driver.Capabilities) driver.Capabilities {
	if o.pipeline() {
		c.Subscriptions = false
	} else {
		c.Competing = false
	}
	return c
}

func (o Options) pipeline() bool { return o.Pattern == "pipeline" }

// kind returns the kind of socket for sending or receiving.
func (o Options) kind(sends bool) Kind {
	switch {
	case o.pipeline() && sends:
		return Push
	case o.pipeline():
		return Pull
	case sends:
		return Pub
	}
	return Sub
}

// A Conn has the sockets of one run in this process.
type Conn struct {
	lib      Library
	options  Options
	settings map[string]string
	name     string // prefix of addresses with transport inproc
	dir      string // of addresses with transport ipc
	marking  *marking

	mu     sync.Mutex // not held while sending or receiving
	places map[string]*place
	last   int // number of the latest address
}

// Open returns a Conn without sockets. Its Facts contain settings in addition to the options.
func Open(lib Library, run driver.Run, o Options, settings map[string]string) (*Conn, error) {
	if run.Existing {
		return nil, fmt.Errorf("destinations that exist: no server has any: %w", driver.ErrUnsupported)
	}
	c := &Conn{lib: lib, options: o, settings: settings, name: rand.Text(), marking: newMarking(), places: map[string]*place{}}
	if o.Transport == "ipc" {
		var err error
		if c.dir, err = os.MkdirTemp("", "weir-ipc-"); err != nil {
			return nil, fmt.Errorf("making a folder for Unix sockets: %w", err)
		}
	}
	return c, nil
}

// A place is a destination. Conn.mu guards it.
type place struct {
	nodes [2][]*node // receiving, sending
	past  [2]uint64  // counts of nodes that have left
}

// A node is the socket of a producer or consumer for one destination.
type node struct {
	place        *place
	side         int // index in place.nodes
	subscription string
	socket       Socket
	address      string           // listening address; "": it connects
	stops        map[*node]func() // close its connections
	count        atomic.Uint64    // messages it has sent, or that were accepted from it
	before       uint64           // messages sent before it joined
	busy         atomic.Bool      // in Deliver
	markers      markers          // received markers
}

const (
	receives = 0
	sends    = 1
)

// join opens a socket for a destination and connects it. It returns when all sockets of the
// destination are connected.
func (c *Conn) join(ctx context.Context, destination, subscription string, side int) (*node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.places[destination]
	if p == nil {
		return nil, errors.New("was not declared")
	}
	kind := c.options.kind(side == sends)
	s, err := c.lib.Open(kind)
	if err != nil {
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	n := &node{place: p, side: side, subscription: subscription, socket: s, stops: map[*node]func(){}, before: p.count(sends)}
	p.nodes[side] = append(p.nodes[side], n)
	if err := c.link(ctx, n); err != nil {
		return nil, errors.Join(err, c.drop(n))
	}
	return n, nil
}

// link binds or connects a node. c.mu is held.
func (c *Conn) link(ctx context.Context, n *node) (err error) {
	binds := (c.options.Bind == "producers") == (n.side == sends)
	if binds {
		address := c.address()
		if n.address, err = n.socket.Listen(address); err != nil {
			return fmt.Errorf("binding %s: %w", address, err)
		}
	}
	for _, o := range n.place.nodes[1-n.side] {
		from, to := n, o
		if binds {
			from, to = o, n
		}
		stop, err := from.socket.Connect(to.address)
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", to.address, err)
		}
		from.stops[to] = stop
	}
	return n.place.settled(ctx)
}

// address returns a new address to bind to. c.mu is held.
func (c *Conn) address() string {
	c.last++
	switch c.options.Transport {
	case "inproc":
		return fmt.Sprintf("inproc://weir-%s-%d", c.name, c.last)
	case "ipc":
		return "ipc://" + filepath.Join(c.dir, strconv.Itoa(c.last))
	}
	return "tcp://127.0.0.1:0"
}

const (
	settleLimit = 10 * time.Second
	settlePause = time.Millisecond
)

// errUnsettled means that connections are still being opened or closed.
var errUnsettled = errors.New("not all sockets are connected")

// settled waits until each sending node has all its connections.
func (p *place) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	return retry.While(ctx, settlePause, func(error) bool { return true }, func() error {
		for _, n := range p.nodes[sends] {
			if n.socket.Peers() != len(p.nodes[receives]) {
				return errUnsettled
			}
		}
		return nil
	})
}

// leave closes a node's socket, and waits until the other sockets have noticed. It is idempotent.
func (c *Conn) leave(n *node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(n.place.nodes[n.side], n) {
		return nil
	}
	err := c.drop(n)
	return errors.Join(err, n.place.settled(context.Background()))
}

// drop closes a node's socket. c.mu is held.
func (c *Conn) drop(n *node) error {
	p := n.place
	p.nodes[n.side] = slices.DeleteFunc(p.nodes[n.side], func(o *node) bool { return o == n })
	for _, o := range p.nodes[1-n.side] {
		if stop := o.stops[n]; stop != nil {
			stop()
			delete(o.stops, n)
		}
	}
	for _, stop := range n.stops {
		stop()
	}
	err := n.socket.Close()
	p.past[n.side] += n.count.Load()
	return err
}

// count returns the messages counted by one side's nodes. Conn.mu is held.
func (p *place) count(side int) uint64 {
	sum := p.past[side]
	for _, n := range p.nodes[side] {
		sum += n.count.Load()
	}
	return sum
}

func (c *Conn) Declare(_ context.Context, ds ...driver.Destination) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range ds {
		if c.places[d.Name] == nil {
			c.places[d.Name] = &place{}
		}
	}
	return nil
}

// Delete closes the sockets of the destinations.
func (c *Conn) Delete(_ context.Context, ds ...driver.Destination) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, d := range ds {
		errs = append(errs, c.remove(d.Name))
	}
	return errors.Join(errs...)
}

// remove closes the sockets of a destination. c.mu is held.
func (c *Conn) remove(destination string) error {
	var errs []error
	if p := c.places[destination]; p != nil {
		for _, n := range slices.Concat(p.nodes[sends], p.nodes[receives]) {
			errs = append(errs, c.drop(n))
		}
		delete(c.places, destination)
	}
	return errors.Join(errs...)
}

func (c *Conn) Facts(context.Context) (driver.Facts, error) {
	f := driver.Facts{
		Name: c.lib.Name, Version: c.lib.Version, Confirms: driver.Confirms{Guarantee: c.lib.Guarantee},
		Settings: map[string]string{"pattern": c.options.Pattern, "transport": c.options.Transport, "bind": c.options.Bind},
	}
	for name, value := range c.settings {
		f.Settings[name] = value
	}
	return f, nil
}

// Close closes all sockets.
func (c *Conn) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for d := range c.places {
		errs = append(errs, c.remove(d))
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}
