package natsconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/sockets"
	"github.com/weirmq/weir/internal/natsdial"
)

// Time limits of connecting. openLimit bounds Connect over all servers.
const (
	openLimit   = 4 * time.Second
	dialLimit   = 2 * time.Second
	closeLimit  = 5 * time.Second
	maxPingsOut = 2
)

// Events are what the client tells of a connection, each on a goroutine of the
// client's, none after Close was called. Nil ones are left out.
type Events struct {
	Lost   func(err error)                         // the connection broke; the client makes it again
	Gone   func(err error)                         // the client has given up
	Faults func(sub *nats.Subscription, err error) // anything else; sub may be nil
}

// A Link is one client connection.
type Link struct {
	*nats.Conn
	Name   string // in events
	dialer dialer
	closed atomic.Bool
}

// CheckSize refuses messages of that many bytes where the server at hand takes
// less; 0 is not known.
func (l *Link) CheckSize(largest int) error {
	return driver.CheckSize(largest, l.MaxPayload(), "the server's max_payload")
}

// Connect connects within ctx and at most 4 s. A system that does not answer is
// ErrUnreachable, with the addresses; refused credentials are ErrAuth.
//
// Each time that the client has connected again run.Event is told, kind
// "reconnect", with name as its text.
//
// The client connects again for ever, and buffers nothing meanwhile
// (ReconnectBufSize -1): a message published while there is no connection fails
// at once with ErrDisconnected. It would otherwise wait inside the client for an
// unknown time and be reported as sent.
func Connect(ctx context.Context, o *Options, run driver.Run, name string, ev Events) (*Link, error) {
	access, err := o.access()
	if err != nil {
		return nil, err
	}
	log := run.Logger()
	l := &Link{Name: name}
	open, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	// Connect has no context. What it waits for is the network, which ends with
	// the socket.
	interrupt := context.AfterFunc(open, l.dialer.Refuse)
	l.Conn, err = natsdial.Connect(open, append(access, func(no *nats.Options) error {
		no.Servers = o.Address
		no.Name = "weir " + run.ID + " " + name
		no.Timeout = dialLimit
		no.CustomDialer = &l.dialer
		no.AllowReconnect = true
		no.MaxReconnect = -1
		no.ReconnectWait = o.ReconnectWait
		no.ReconnectJitter, no.ReconnectJitterTLS = o.ReconnectWait/5, o.ReconnectWait/5
		no.ReconnectBufSize = -1
		no.PingInterval = o.PingInterval
		no.MaxPingsOut = maxPingsOut
		no.FlusherTimeout = o.WriteTimeout
		// All subjects are made by Subject or were given by the server.
		no.SkipSubjectValidation = true
		no.DisconnectedErrCB = func(_ *nats.Conn, err error) {
			if l.closed.Load() {
				return
			}
			if err == nil {
				err = nats.ErrConnectionClosed
			}
			log.Warn("connection lost", "connection", name, "error", err)
			if ev.Lost != nil {
				ev.Lost(fmt.Errorf("%w: %w", driver.ErrDisconnected, words.Plain(err)))
			}
		}
		no.ReconnectedCB = func(nc *nats.Conn) {
			if l.closed.Load() {
				return
			}
			log.Info("connected again", "connection", name, "server", nc.ConnectedUrlRedacted())
			run.Tell(driver.Reconnect, name)
		}
		no.ClosedCB = func(nc *nats.Conn) {
			if !l.closed.Load() && ev.Gone != nil {
				ev.Gone(Cause(fmt.Errorf("connection given up: %w", errors.Join(driver.ErrDisconnected, nc.LastError()))))
			}
		}
		no.AsyncErrorCB = func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if !l.closed.Load() && ev.Faults != nil {
				ev.Faults(sub, err)
			}
		}
		return nil
	})...)
	if !interrupt() && err == nil {
		l.Conn.Close()
		err = context.Cause(open)
	}
	if err == nil {
		return l, nil
	}
	is := driver.ErrUnreachable
	switch why := l.dialer.failed.Load(); {
	case ctx.Err() != nil:
		err = ctx.Err()
	case natsdial.IsAuth(err):
		is = driver.ErrAuth
	case errors.Is(err, nats.ErrNoServers) && why != nil && *why != nil:
		err = *why // which the client does not tell
	}
	return nil, fmt.Errorf("connecting to %s: %w: %w", o.Show(), is, words.Plain(err))
}

// Epoch returns a number that differs between any two connections that the
// client has made for this link, and between a connection and none. What was
// done between two equal readings was done on one connection.
func (l *Link) Epoch() uint64 { return l.dialer.Epoch() }

// Up reports whether there is a connection.
func (l *Link) Up() bool { return sockets.Up(l.Epoch()) }

// Kill breaks the connection at the socket: whatever waits for the network,
// inside the client and under its lock, goes on. The client connects again.
func (l *Link) Kill() { l.dialer.Kill() }

// Close sends what the client has buffered and ends the connection, both within
// ctx and at most 5 s. It is idempotent.
func (l *Link) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	// A server that does not read holds up the client's lock, and with it Close.
	interrupt := context.AfterFunc(ctx, l.dialer.Refuse)
	defer interrupt()
	var err error
	if l.Up() {
		if err = l.FlushWithContext(ctx); err != nil {
			err = fmt.Errorf("closing: %w", Cause(err))
		}
	}
	l.Conn.Close()
	return err
}

// A dialer makes the client's sockets, and knows why it could not make the last one.
type dialer struct {
	sockets.Set
	failed atomic.Pointer[error]
}

// Dial implements nats.CustomDialer. The client calls it for its first and each
// later connection, after it has closed the one before.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Set.Dial(context.Background(), network, address, dialLimit)
	d.failed.Store(&err)
	return c, err
}
