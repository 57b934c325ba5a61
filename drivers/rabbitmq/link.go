package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
)

// Limits for waits that the client library does not bound.
const (
	connectLimit = 4 * time.Second  // for the first answer from one address
	callLimit    = 10 * time.Second // for the answer to a method
	endLimit     = 2 * time.Second  // for closing a connection
	silences     = 3                // heartbeats that a server may miss, as in the client
)

// A link is one connection to one node.
type link struct {
	*client.Connection
	wire    *wire
	address string
	hearing sync.WaitGroup // goroutines that receive the client's notifications
}

// dial connects to one address, and sends the connection's name to the server. hears, if not nil,
// receives what passes.
func (c *conn) dial(ctx context.Context, address, name string, hears listener) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	first, done := context.WithTimeout(ctx, connectLimit)
	defer done()
	var s net.Conn
	var err error
	if c.tls == nil {
		s, err = (&net.Dialer{}).DialContext(first, "tcp", address)
	} else if s, err = (&tls.Dialer{Config: c.tls}).DialContext(first, "tcp", address); err != nil {
		err = fmt.Errorf("TLS: %w", err)
	}
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return nil, fmt.Errorf("%w: the server speaks no TLS at %s", driver.ErrUnsupported, address)
	case err != nil:
		return nil, unreachable(err)
	}
	w := newWire(s, silences*c.cfg.Heartbeat, hears)
	// A server that has started to answer may take longer: it delays the refusal of a password by 3
	// s.
	silent := context.AfterFunc(first, func() {
		if !w.heard.Load() {
			_ = w.Close()
		}
	})
	defer silent()
	stop := context.AfterFunc(ctx, func() { _ = w.Close() })
	defer stop()
	properties := client.NewConnectionProperties()
	properties.SetClientConnectionName("weir " + c.run.ID + " " + name)
	l := &link{wire: w, address: address}
	l.Connection, err = client.Open(w, client.Config{
		SASL:      []client.Authentication{&client.PlainAuth{Username: c.cfg.User, Password: rabbitserver.Password(c.cfg.User, c.cfg.Password)}},
		Vhost:     c.cfg.Vhost,
		Heartbeat: c.cfg.Heartbeat, FrameSize: frameSize, ChannelMax: channelMax, Locale: "en_US", Properties: properties,
	})
	if err != nil {
		_ = w.Close()
	}
	switch {
	case err == nil:
		return l, nil
	case ctx.Err() != nil || first.Err() != nil && !w.heard.Load():
		return nil, fmt.Errorf("%w: no answer in time", driver.ErrUnreachable)
	case errors.Is(err, client.ErrCredentials):
		return nil, fmt.Errorf("%w: for user %s (options user and password)", driver.ErrAuth, c.cfg.User)
	case errors.Is(err, client.ErrVhost):
		return nil, fmt.Errorf("%w: closed when the vhost %s was opened", driver.ErrAuth, c.cfg.Vhost)
	}
	if err = errorMap.Cause(err); errors.Is(err, driver.ErrDisconnected) {
		// It accepted the connection, but does not speak AMQP.
		err = fmt.Errorf("%w: what answers is not RabbitMQ, or is just ending: %w", driver.ErrUnreachable, err)
	}
	return nil, err
}

// reportBlocked reports when the server stops and resumes reading from the connection, until the
// connection ends.
func (l *link) reportBlocked(run driver.Run, who string) {
	blocked := l.NotifyBlocked(make(chan client.Blocking, 16))
	l.hearing.Go(func() {
		defer run.Unblocked(who)
		for b := range blocked {
			if b.Active {
				run.Blocked(who, cmp.Or(b.Reason, "no reason given")+" (connection.blocked)")
			} else {
				run.Unblocked(who)
			}
		}
	})
}

// Proposed to the server: the vendor's defaults.
const (
	frameSize  = 128 << 10
	channelMax = 2047
)

// end closes a connection, within endLimit, and waits until all the client's notifications are
// handled.
func (l *link) end() {
	late := time.AfterFunc(endLimit, l.kill)
	defer late.Stop()
	_ = l.Close() // reports only that the server sent no close frame
	l.kill()
	l.hearing.Wait()
}

// kill closes a connection abruptly.
func (l *link) kill() { _ = l.wire.Close() }

// property returns a server property: "product", "version".
func (l *link) property(name string) string {
	text, _ := l.Properties[name].(string)
	return text
}

// An admin is the connection on which a Conn sends requests and declares.
type admin struct {
	lock chan struct{} // holds a token while in use
	link *link         // nil: not connected
	over bool          // closed for good
}

// end waits for the request in progress and closes the connection.
func (a *admin) end() {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.over = true; a.link != nil {
		a.link.end()
	}
}

// ask calls do with a new channel, within ctx and callLimit. The client library's calls take no
// context: when ctx ends, the connection is closed.
func (c *conn) ask(ctx context.Context, do func(*client.Channel) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	select {
	case c.admin.lock <- struct{}{}:
		defer func() { <-c.admin.lock }()
	case <-ctx.Done():
		return unreachable(ctx.Err())
	}
	err := c.once(ctx, do)
	if errors.Is(err, driver.ErrDisconnected) && ctx.Err() == nil {
		err = c.once(ctx, do) // the connection had been lost: the server may have restarted
	}
	if errors.Is(err, driver.ErrDisconnected) {
		err = fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
	}
	return err
}

func (c *conn) once(ctx context.Context, do func(*client.Channel) error) error {
	if c.admin.over {
		return driver.ErrClosed
	}
	if c.admin.link == nil || c.admin.link.IsClosed() {
		l, err := c.reach(ctx, "admin", 0, nil)
		if err != nil {
			return err
		}
		if c.admin.link != nil {
			c.admin.link.end()
		}
		c.admin.link = l
	}
	l := c.admin.link
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	ch, err := l.Channel()
	if err == nil {
		if err = do(ch); err == nil {
			err = ch.Close()
		} else if !ch.IsClosed() {
			_ = ch.Close()
		}
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: no answer: %w", driver.ErrUnreachable, ctx.Err())
	}
	return errorMap.Cause(err)
}

// reach connects to the first node that answers, starting with the one at index.
func (c *conn) reach(ctx context.Context, name string, index int, hears listener) (*link, error) {
	var errs []error
	for i := range c.addresses {
		a := c.addresses[(index+i)%len(c.addresses)]
		l, err := c.dial(ctx, a, name, hears)
		if err == nil {
			return l, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", a, err))
		if ctx.Err() != nil || !errors.Is(err, driver.ErrUnreachable) {
			break
		}
	}
	return nil, errors.Join(errs...)
}
