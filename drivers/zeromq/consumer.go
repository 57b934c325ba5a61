//go:build !libzmq

package zeromq

import (
	"crypto/rand"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"sync/atomic"

	"github.com/go-zeromq/zmq4"

	"github.com/weirmq/weir/driver"
)

// A socket is a PULL or SUB socket, or the part of a PUB socket that it shares with them.
type socket struct {
	s      zmq4.Socket
	closed atomic.Bool
}

func options() []zmq4.Option {
	return []zmq4.Option{
		zmq4.WithDialerMaxRetries(0),
		zmq4.WithLogger(log.New(io.Discard, "", 0)), // otherwise it writes to stderr
	}
}

// hello begins a topic to which only one SUB socket subscribes, in addition to all topics, so that
// a PUB socket can count its subscribers.
const hello = "\x00weir-"

func greeting() string { return hello + rand.Text() }

func isGreeting(topic string) bool { return strings.HasPrefix(topic, hello) }

func (x *socket) Listen(address string) (string, error) {
	if err := x.s.Listen(address); err != nil {
		return "", err
	}
	scheme, _, _ := strings.Cut(address, "://")
	return scheme + "://" + x.s.Addr().String(), nil
}

// Connect implements mesh.Socket. The library does not reconnect, so there is nothing to stop.
func (x *socket) Connect(address string) (stop func(), err error) {
	return func() {}, x.s.Dial(address)
}

// Peers implements mesh.Socket. The library does not report them.
func (x *socket) Peers() int { return 0 }

func (x *socket) Send([]byte) error { return driver.ErrUnsupported }

// Receive implements mesh.Socket. The library returns an error for each connection that ends; the
// socket remains usable.
func (x *socket) Receive(take func(payload []byte)) error {
	for {
		m, err := x.s.Recv()
		switch {
		case x.closed.Load():
			return driver.ErrClosed
		case err == nil && len(m.Frames) == 1:
			take(m.Frames[0])
			return nil
		}
	}
}

// Close implements mesh.Socket. The library closes connections ended by the peer twice, which is
// not an error.
func (x *socket) Close() error {
	if x.closed.Swap(true) {
		return nil
	}
	if err := x.s.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
