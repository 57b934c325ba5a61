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

// Time limits for connecting. openLimit limits Connect over all servers.
const (
	openLimit   = 4 * time.Second
	dialLimit   = 2 * time.Second
	closeLimit  = 5 * time.Second
	maxPingsOut = 2
)

// Events are callbacks for a connection's events, each called on one of the client's goroutines,
// and none after Close was called. Nil callbacks are skipped.
type Events struct {
	Lost   func(err error)                         // the connection broke; the client reconnects
	Gone   func(err error)                         // the client has given up
	Faults func(sub *nats.Subscription, err error) // any other fault; sub may be nil
}

// A Link is one client connection.
type Link struct {
	*nats.Conn
	Name   string // in events
	dialer dialer
	closed atomic.Bool
}

// CheckSize returns an error if the connected server accepts no messages of largest bytes; 0: size
// unknown.
func (l *Link) CheckSize(largest int) error {
	return driver.CheckSize(largest, l.MaxPayload(), "the server's max_payload")
}

// Connect connects within ctx and at most 4 s. If the system does not answer, the error is
// ErrUnreachable, with the addresses; refused credentials are ErrAuth.
//
// Each reconnect of the client is reported to run.Event, with kind "reconnect" and name as the
// text.
//
// The client reconnects forever, and buffers nothing meanwhile (ReconnectBufSize -1): a message
// published without a connection fails at once with ErrDisconnected. Otherwise it would wait inside
// the client for an unknown time and be reported as sent.
func Connect(ctx context.Context, o *Options, run driver.Run, name string, ev Events) (*Link, error) {
	access, err := o.access()
	if err != nil {
		return nil, err
	}
	log := run.Logger()
	l := &Link{Name: name}
	open, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	// Connect takes no context, but closing the socket ends its wait for the network.
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
		// All subjects were made by Subject or given by the server.
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
		err = *why // not reported by the client
	}
	return nil, fmt.Errorf("connecting to %s: %w: %w", o.Show(), is, words.Plain(err))
}

// Epoch returns a number that differs between any two connections of this link, and between a
// connection and none. If two readings are equal, the connection was the same in between.
func (l *Link) Epoch() uint64 { return l.dialer.Epoch() }

// Up reports whether the link is connected.
func (l *Link) Up() bool { return sockets.Up(l.Epoch()) }

// Kill closes the socket, which unblocks everything that waits for the network inside the client
// and under its lock. The client reconnects.
func (l *Link) Kill() { l.dialer.Kill() }

// Close flushes the client's buffer and closes the connection, both within ctx and at most 5 s. It
// is idempotent.
func (l *Link) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	// A server that does not read blocks the client's lock, and thus Close.
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

// A dialer creates the client's sockets and remembers why the last dial failed.
type dialer struct {
	sockets.Set
	failed atomic.Pointer[error]
}

// Dial implements nats.CustomDialer. For each reconnect, the client calls it after closing the
// previous connection.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Set.Dial(context.Background(), network, address, dialLimit)
	d.failed.Store(&err)
	return c, err
}
