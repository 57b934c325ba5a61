//go:build libzmq

package zeromq

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh"
)

// The driver's identity with the C library, through the binding in go.mod.
const (
	module  = "github.com/pebbe/zmq4"
	library = "libzmq"
)

// version returns the C library's version.
func version() string {
	major, minor, patch := zmq.Version()
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}

func capabilities() driver.Capabilities { return mesh.Capabilities() }

// Validate returns an error for settings whose effect the driver could not observe.
func (c *Config) Validate() error {
	var faults driver.Faults
	if c.Transport == "inproc" {
		faults.Add("transport", "inproc: libzmq does not tell what is connected so (ipc, tcp)")
	}
	if c.Pattern == "pipeline" && c.Bind == "producers" {
		faults.Add("bind", "producers: libzmq does not always tell that a consumer has left a PUSH socket that is bound (consumers, or pattern: pubsub)")
	}
	return faults.Join()
}

// turn is how long a library call may occupy a socket.
const turn = 20 * time.Millisecond

// A socket is a library socket, which only one goroutine at a time may use.
type socket struct {
	kind mesh.Kind

	mu      sync.Mutex
	s       *zmq.Socket
	monitor *zmq.Socket    // for a PUSH socket's connections
	peers   map[string]int // current peers, by address
	used    bool           // Receive was called
	closed  bool
}

// types are the library's socket types. An XPUB socket reports the topics that subscribers request.
var types = map[mesh.Kind]zmq.Type{mesh.Push: zmq.PUSH, mesh.Pull: zmq.PULL, mesh.Pub: zmq.XPUB, mesh.Sub: zmq.SUB}

// open returns a socket with queues of hwm messages for each connection.
func open(kind mesh.Kind, hwm int) (mesh.Socket, error) {
	s, err := zmq.NewSocket(types[kind])
	if err != nil {
		return nil, err
	}
	x := &socket{kind: kind, s: s, peers: map[string]int{}}
	err = errors.Join(s.SetSndhwm(hwm), s.SetRcvhwm(hwm), s.SetLinger(0), s.SetSndtimeo(turn), s.SetRcvtimeo(turn))
	switch kind {
	case mesh.Push:
		err = errors.Join(err, s.SetImmediate(true), x.watch())
	case mesh.Sub:
		err = errors.Join(err, s.SetSubscribe(""), s.SetSubscribe(hello+rand.Text()))
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// hello begins a topic to which only one SUB socket subscribes, in addition to all topics, so that
// an XPUB socket can count its subscribers.
const hello = "\x00weir-"

// handshaken is ZMQ_EVENT_HANDSHAKE_SUCCEEDED, for which the binding has no name.
const handshaken zmq.Event = 0x1000

// watch makes the library report connections.
func (x *socket) watch() (err error) {
	at := "inproc://weir-monitor-" + rand.Text()
	if err = x.s.Monitor(at, handshaken|zmq.EVENT_DISCONNECTED); err != nil {
		return err
	}
	if x.monitor, err = zmq.NewSocket(zmq.PAIR); err != nil {
		return err
	}
	return errors.Join(x.monitor.SetLinger(0), x.monitor.Connect(at))
}

func (x *socket) Listen(address string) (string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.s.Bind(address); err != nil {
		return "", err
	}
	if x.kind == mesh.Sub {
		go x.attend()
	}
	return x.s.GetLastEndpoint()
}

// attend runs a socket's events until Receive does: the library attaches connections, and sends
// them the subscriptions, only during its calls.
func (x *socket) attend() {
	for done := false; !done; time.Sleep(time.Millisecond) {
		x.mu.Lock()
		if done = x.used || x.closed; !done {
			_, _ = x.s.GetEvents()
		}
		x.mu.Unlock()
	}
}

func (x *socket) Connect(address string) (stop func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.s.Connect(address); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { x.disconnect(address) }), nil
}

// disconnect closes a connection.
func (x *socket) disconnect(address string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		_ = x.s.Disconnect(address) // reports only that it had already ended
		x.update()
		delete(x.peers, address)
	}
}

func (x *socket) Peers() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.update()
	}
	for _, of := range x.peers {
		n += of
	}
	return n
}

// update reads the library's connection events. x.mu is held.
func (x *socket) update() {
	_, _ = x.s.GetEvents() // makes it process events
	for more := true; more; {
		if x.kind == mesh.Push {
			more = x.event()
		} else {
			more = x.subscription()
		}
	}
}

// event reads one connection event. The library also reports the end of connections that were never
// established.
func (x *socket) event() bool {
	e, at, _, err := x.monitor.RecvEvent(zmq.DONTWAIT)
	switch {
	case err != nil:
		return false
	case e == handshaken:
		x.peers[at]++
	case x.peers[at] > 0:
		x.peers[at]--
	}
	return true
}

// subscription reads a message that a topic was subscribed or unsubscribed.
func (x *socket) subscription() bool {
	b, err := x.s.RecvBytes(zmq.DONTWAIT)
	if err != nil {
		return false
	}
	if topic, ok := strings.CutPrefix(string(b[min(len(b), 1):]), hello); ok && b[0] == 1 {
		x.peers[topic] = 1
	} else if ok {
		delete(x.peers, topic)
	}
	return true
}

// try repeats do with the socket, in turns, until it is done or the socket is closed.
func (x *socket) try(do func() error) error {
	for {
		x.mu.Lock()
		if x.closed {
			x.mu.Unlock()
			return driver.ErrClosed
		}
		err := do()
		x.mu.Unlock()
		if err == nil || zmq.AsErrno(err) != zmq.Errno(syscall.EAGAIN) {
			return err
		}
	}
}

func (x *socket) Send(payload []byte) error {
	return x.try(func() error { _, err := x.s.SendBytes(payload, 0); return err })
}

func (x *socket) Receive(take func(payload []byte)) error {
	var b []byte
	err := x.try(func() (err error) { x.used = true; b, err = x.s.RecvBytes(0); return err })
	if err == nil {
		take(b)
	}
	return err
}

func (x *socket) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	err := x.s.Close()
	if x.monitor != nil {
		err = errors.Join(err, x.monitor.Close())
	}
	return err
}
