//go:build !libzmq

package zeromq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zeromq/zmq4"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh"
)

// The driver's identity with the Go library, in the version in go.mod.
const (
	module  = "github.com/go-zeromq/zmq4"
	library = "zmq4"
	release = "v0.17.0"
)

// version returns the library's version, which it does not report itself.
func version() string { return release }

func capabilities() driver.Capabilities {
	can := mesh.Capabilities()
	can.Competing = false
	can.Guarantees = []driver.Guarantee{driver.Buffered, driver.Written}
	return can
}

// Validate returns an error for settings that the library does not support.
func (c *Config) Validate() error {
	var faults driver.Faults
	if c.Transport == "inproc" {
		faults.Add("transport", "inproc: the client library carries no more than 255 bytes so (ipc, tcp)")
	}
	if c.Pattern == "pipeline" && c.Bind == "producers" {
		faults.Add("bind", "producers: a PUSH socket of the client library that is bound does not see a consumer leave (consumers, or pattern: pubsub)")
	}
	return faults.Join()
}

func (c *Config) Narrow(can driver.Capabilities) driver.Capabilities {
	can = c.Options.Narrow(can)
	can.Competing = false
	return can
}

// A pusher is a PUSH socket with at most one connection at a time. It never binds.
type pusher struct {
	mu     sync.Mutex
	turned sync.Cond // signals changes of the connection or closed
	s      zmq4.Socket
	closed bool
}

func newPusher() *pusher {
	p := &pusher{}
	p.turned.L = &p.mu
	return p
}

func (p *pusher) Listen(string) (string, error) { return "", driver.ErrUnsupported }

func (p *pusher) Connect(address string) (stop func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.s != nil {
		return nil, fmt.Errorf("a second consumer: %w", driver.ErrUnsupported)
	}
	s := zmq4.NewPush(context.Background(), options()...)
	if err := s.Dial(address); err != nil {
		_ = s.Close()
		return nil, err
	}
	p.s = s
	p.turned.Broadcast()
	return p.disconnect, nil
}

// disconnect closes the connection, and interrupts a Send that waits for it.
func (p *pusher) disconnect() {
	p.mu.Lock()
	s := p.s
	p.s = nil
	p.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

func (p *pusher) Peers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.s == nil {
		return 0
	}
	return 1
}

// Send implements mesh.Socket. It waits for a connection, and then for the operating system to
// accept the bytes.
func (p *pusher) Send(payload []byte) error {
	p.mu.Lock()
	for p.s == nil && !p.closed {
		p.turned.Wait()
	}
	s, closed := p.s, p.closed
	p.mu.Unlock()
	if closed {
		return driver.ErrClosed
	}
	err := s.Send(zmq4.NewMsg(payload))
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	return fmt.Errorf("%w: %w", driver.ErrDisconnected, err)
}

func (p *pusher) Receive(func([]byte)) error { return driver.ErrUnsupported }

func (p *pusher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.turned.Broadcast()
	p.mu.Unlock()
	p.disconnect()
	return nil
}

var _ mesh.Socket = (*pusher)(nil)

// A publisher is a PUB socket.
type publisher struct{ *socket }

// Send implements mesh.Socket. The socket's queue keeps the bytes, so it gets a copy.
func (p publisher) Send(payload []byte) error {
	if p.closed.Load() {
		return driver.ErrClosed
	}
	return p.s.Send(zmq4.NewMsg(payload).Clone())
}

// Peers implements mesh.Socket: subscriptions that have reached the socket.
func (p publisher) Peers() int {
	topics, _ := p.s.(zmq4.Topics)
	n := 0
	for _, t := range topics.Topics() {
		if isGreeting(t) {
			n++
		}
	}
	return n
}

// open returns a socket; hwm is the queue size of a PUB socket, in messages.
func open(kind mesh.Kind, hwm int) (mesh.Socket, error) {
	switch kind {
	case mesh.Push:
		return newPusher(), nil
	case mesh.Pull:
		return &socket{s: zmq4.NewPull(context.Background(), options()...)}, nil
	case mesh.Pub:
		s := zmq4.NewPub(context.Background(), options()...)
		return publisher{&socket{s: s}}, s.SetOption(zmq4.OptionHWM, hwm)
	}
	s := zmq4.NewSub(context.Background(), options()...)
	return &socket{s: s}, errors.Join(s.SetOption(zmq4.OptionSubscribe, ""), s.SetOption(zmq4.OptionSubscribe, greeting()))
}
