package amqp1conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
)

// endLimit is how long a closing connection may take for its last frames.
const endLimit = 2 * time.Second

// A link is a connection to a server, with one session.
type link struct {
	*client.Conn
	session *client.Session
	socket  net.Conn
	at      string // host:port of the server
}

// dial connects to the first server that answers, within ctx. If that server refuses, dial tries no
// other.
func (c *Conn) dial(ctx context.Context, name string) (*link, error) {
	var errs []error
	for _, s := range c.servers {
		l, err := c.dialOne(ctx, s, name)
		if err == nil {
			return l, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.HostPort(), err))
	}
	return nil, errors.Join(errs...)
}

// dialOne connects to a server, within ctx and the option timeout.
func (c *Conn) dialOne(ctx context.Context, s server, name string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var socket net.Conn
	var err error
	if s.tls == nil {
		socket, err = (&net.Dialer{}).DialContext(ctx, "tcp", s.HostPort())
	} else if socket, err = (&tls.Dialer{Config: s.tls}).DialContext(ctx, "tcp", s.HostPort()); err != nil {
		err = fmt.Errorf("TLS: %w", err)
	}
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return nil, fmt.Errorf("%w: the server speaks no TLS there", driver.ErrUnsupported)
	case err != nil:
		return nil, words.Unreachable(err)
	}
	o := &client.ConnOptions{
		// ActiveMQ refuses a container ID that it still knows from a lost connection.
		ContainerID: fmt.Sprintf("weir %s %s %016x", c.run.ID, name, rand.Uint64()), HostName: s.Host,
		IdleTimeout: c.options.IdleTimeout, WriteTimeout: c.options.IdleTimeout,
		SASLType: client.SASLTypeAnonymous(),
	}
	if c.options.User != "" {
		o.SASLType = client.SASLTypePlain(c.options.User, c.options.Password.Reveal())
	}
	l := &link{socket: socket, at: s.HostPort()}
	if l.Conn, err = client.NewConn(ctx, socket, o); err == nil {
		if l.session, err = l.NewSession(ctx, nil); err != nil {
			l.end()
		}
	}
	if err != nil {
		_ = socket.Close()
		return nil, words.Unreachable(err)
	}
	return l, nil
}

// finish ends links, waits for the server's answers, and closes the connection. An answer implies
// that the server has taken the messages and settlements sent before. Messages that a receiver has
// not settled go to others. A quorum queue of RabbitMQ delays some settlements, and forgets them if
// the connection ends without an answer (github.com/rabbitmq/rabbitmq-server/issues/10327).
func finish[E interface {
	Close(ctx context.Context) error
}](l *link, links []E) error {
	late := time.AfterFunc(endLimit, l.kill)
	var errs []error
	for _, e := range links {
		errs = append(errs, e.Close(context.Background())) // unblocked when the socket closes
	}
	late.Stop()
	l.end()
	return errors.Join(errs...)
}

// end closes the connection, within endLimit, and waits for the client's goroutines.
func (l *link) end() {
	late := time.AfterFunc(endLimit, l.kill)
	defer late.Stop()
	_ = l.Close() // reports only that the server sent no close frame
}

// kill closes the socket, which ends all waiting calls.
func (l *link) kill() { _ = l.socket.Close() }

// lost waits until the connection or ctx ends, and returns why the connection ended.
func (l *link) lost(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.Done():
		return words.Lost(l.Err())
	}
}
