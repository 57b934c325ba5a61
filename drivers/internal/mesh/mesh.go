// Package mesh is what the drivers of brokerless socket libraries share. Such a library
// has no server: the sockets of producers and consumers are the system. Use it for a
// library with the patterns PUSH/PULL and PUB/SUB. A driver brings the sockets.
//
// A Conn holds all sockets of one process. A producer has a socket for each of its
// destinations, and so has a consumer. One side binds, the other connects to each socket
// of the first. Opening a producer or consumer returns when all connections of the
// destination are there, so that no message is lost to a subscription that comes late.
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

// A Kind is what a socket does.
type Kind uint8

// The kinds of socket.
const (
	Push Kind = iota
	Pull
	Pub
	Sub // of all topics
)

// Sends reports whether producers have sockets of this kind.
func (k Kind) Sends() bool { return k == Push || k == Pub }

// A Socket is one socket of a library. Any goroutine may call its methods.
type Socket interface {
	// Listen binds the socket to an address, and returns the address to connect to.
	Listen(address string) (string, error)
	// Connect connects to an address. Without stop, which is idempotent, the library
	// connects again whenever the connection is lost.
	Connect(address string) (stop func(), err error)
	// Peers returns how many connections the socket sends to now: to those of a PUB
	// socket, the subscription has come. It is asked of PUSH and PUB sockets only.
	Peers() int
	// Send hands over a message. The bytes are the caller's again on return. A PUSH
	// socket waits for room. After Close, or when Close is called, it is driver.ErrClosed.
	Send(payload []byte) error
	// Receive waits for a message and calls take with it, which may keep the bytes until
	// it returns. After Close, or when Close is called, it is driver.ErrClosed.
	Receive(take func(payload []byte)) error
	// Close ends the socket and its connections. What it still holds is lost. It is
	// idempotent.
	Close() error
}

// A Library is the one that a driver measures.
type Library struct {
	Name, Version string
	Guarantee     driver.Guarantee // what it means that Socket.Send has returned
	Open          func(kind Kind) (Socket, error)
}

// Capabilities returns what a driver on this package can do with some settings.
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

// Options are those that the drivers share.
type Options struct {
	Pattern   string `option:"pattern" allowed:"pipeline,pubsub" firm:"pipeline" help:"Sockets: pipeline is PUSH and PULL, where one consumer gets a message; pubsub is PUB and SUB, where each subscription gets it."`
	Transport string `option:"transport" allowed:"inproc,ipc,tcp" help:"What connects the sockets: memory of the process, Unix sockets, or TCP on 127.0.0.1."`
	Bind      string `option:"bind" allowed:"producers,consumers" help:"Which side binds its sockets; the other side connects to all of them."`
}

// Defaults returns a pipeline over TCP, where consumers bind.
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

// kind returns the kind of a socket that sends or receives.
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
	name     string // begins the addresses of transport inproc
	dir      string // of the addresses of transport ipc
	marking  *marking

	mu     sync.Mutex // not held by who sends or receives
	places map[string]*place
	last   int // number of the last address
}

// Open returns a Conn without sockets. Its Facts have settings besides the options.
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
	nodes [2][]*node // that receive, and that send
	past  [2]uint64  // the counts of nodes that have left
}

// A node is the socket that a producer or consumer has for a destination.
type node struct {
	place        *place
	side         int // of place.nodes
	subscription string
	socket       Socket
	address      string           // where it listens; "": it connects
	stops        map[*node]func() // ends its connections
	count        atomic.Uint64    // messages that it has sent, or that were accepted from it
	before       uint64           // messages sent before it was there
	busy         atomic.Bool      // it is in Deliver
	markers      markers          // that it has received
}

const (
	receives = 0
	sends    = 1
)

// join opens a socket for a destination and connects it. It returns when all sockets of
// the destination are connected.
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

// address returns a new one to bind to. c.mu is held.
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

// errUnsettled: a connection is being made, or ended.
var errUnsettled = errors.New("not all sockets are connected")

// settled waits until each node that sends has the connections that it should have.
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

// leave closes the socket of a node, and waits until the other sockets know it. It is
// idempotent.
func (c *Conn) leave(n *node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(n.place.nodes[n.side], n) {
		return nil
	}
	err := c.drop(n)
	return errors.Join(err, n.place.settled(context.Background()))
}

// drop closes the socket of a node. c.mu is held.
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

// count returns how many messages the nodes of a side have counted. Conn.mu is held.
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
