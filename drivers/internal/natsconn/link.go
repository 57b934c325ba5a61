package natsconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
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
	dialer *dialer
	closed atomic.Bool
}

// CheckSize refuses messages of that many bytes where the server at hand takes
// less; 0 is not known.
func (l *Link) CheckSize(largest int) error {
	if most := l.MaxPayload(); most > 0 && int64(largest) > most {
		return fmt.Errorf("%w: %s, the server takes up to %s (its max_payload)", driver.ErrTooLarge,
			driver.FormatSize(int64(largest)), driver.FormatSize(most))
	}
	return nil
}

// Connect connects within ctx and at most 4 s. Nobody there is ErrUnreachable
// and names the addresses; refused credentials are ErrAuth.
//
// Each time that the client has connected again run.Event is told, kind
// "reconnect", with name as its text.
//
// The client connects again for ever, and buffers nothing meanwhile
// (ReconnectBufSize -1): a message published while there is no connection fails
// at once with ErrDisconnected. It would otherwise wait inside the client for an
// unknown time and be reported as sent.
func Connect(ctx context.Context, o *Options, run driver.Run, name string, ev Events) (*Link, error) {
	urls, err := o.servers()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := o.tls()
	if err != nil {
		return nil, err
	}
	auth, err := o.auth()
	if err != nil {
		return nil, err
	}
	log := run.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Link{dialer: &dialer{}}
	open, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	// Connect has no context. What it waits for is the network, which ends with
	// the socket.
	interrupt := context.AfterFunc(open, l.dialer.refuse)
	options := append(auth, func(no *nats.Options) error {
		no.Servers = urls
		no.Name = "weir " + run.ID + " " + name
		no.Timeout = dialLimit
		no.CustomDialer = l.dialer
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
		if tlsConfig != nil {
			no.TLSConfig, no.Secure = tlsConfig, true
		}
		no.DisconnectedErrCB = func(_ *nats.Conn, err error) {
			if l.closed.Load() {
				return
			}
			if err == nil {
				err = nats.ErrConnectionClosed
			}
			log.Warn("connection lost", "connection", name, "error", err)
			if ev.Lost != nil {
				ev.Lost(fmt.Errorf("%w: %w", driver.ErrDisconnected, plain(err)))
			}
		}
		no.ReconnectedCB = func(nc *nats.Conn) {
			if l.closed.Load() {
				return
			}
			log.Info("connected again", "connection", name, "server", nc.ConnectedUrlRedacted())
			if run.Event != nil {
				run.Event("reconnect", name)
			}
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
	})
	nc, err := natsdial.Connect(open, options...)
	if !interrupt() && err == nil {
		nc.Close()
		err = context.Cause(open)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connecting to %s: %w: %w", o.Show(), driver.ErrUnreachable, ctx.Err())
		}
		if natsdial.IsAuth(err) {
			return nil, fmt.Errorf("connecting to %s: %w: %w", o.Show(), driver.ErrAuth, err)
		}
		if why := l.dialer.why(); why != nil && errors.Is(err, nats.ErrNoServers) {
			err = why // which the client does not tell
		}
		return nil, fmt.Errorf("connecting to %s: %w: %w", o.Show(), driver.ErrUnreachable, plain(err))
	}
	l.Conn = nc
	return l, nil
}

// Epoch returns a number that differs between any two connections that the
// client has made for this link, and between a connection and none. What was
// done between two equal readings was done on one connection.
func (l *Link) Epoch() uint64 { return l.dialer.epoch.Load() }

// Up reports whether there is a connection in that epoch.
func Up(epoch uint64) bool { return epoch%2 == 1 }

// RoundTrips returns when the server has answered a PING on each of the links, behind
// all that was sent there before; all that it sent before the answers is with the
// client then. A link without an answer by the end of ctx is ErrUnreachable.
func RoundTrips(ctx context.Context, links []*Link) error {
	answers := make(chan error, len(links))
	for _, l := range links {
		// A server that does not read holds up the client's lock, whatever ctx says.
		go func() { answers <- l.FlushWithContext(ctx) }()
	}
	for range links {
		var err error
		select {
		case err = <-answers:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("asking the server: %w: %w", driver.ErrUnreachable, plain(err))
		}
	}
	return nil
}

// Kill breaks the connection at the socket: whoever waits for the network,
// inside the client and under its lock, goes on. The client connects again.
func (l *Link) Kill() { l.dialer.kill() }

// Close sends what the client has buffered and ends the connection, both within
// ctx and at most 5 s. It is idempotent.
func (l *Link) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	// A server that does not read holds up the client's lock, and with it Close.
	interrupt := context.AfterFunc(ctx, l.dialer.refuse)
	defer interrupt()
	var err error
	if Up(l.Epoch()) {
		if err = l.FlushWithContext(ctx); err != nil {
			err = fmt.Errorf("closing: %w", Cause(err))
		}
	}
	l.Conn.Close()
	return err
}

// A dialer makes the client's sockets, knows the one in use, and counts.
type dialer struct {
	epoch atomic.Uint64 // odd: connected

	mu      sync.Mutex
	conn    *socket // the last one made
	failed  error   // why the last one was not made
	refused bool
}

// Dial implements nats.CustomDialer. The client calls it for its first and each
// later connection, after it has closed the one before.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: dialLimit}
	c, err := nd.Dial(network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = err
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: c, d: d}
	if d.refused {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	d.conn = s
	if d.epoch.Load()%2 == 0 {
		d.epoch.Add(1)
	} else {
		d.epoch.Add(2)
	}
	return s, nil
}

// why returns why the last Dial failed; nil where it did not.
func (d *dialer) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// kill closes the socket in use.
func (d *dialer) kill() {
	d.mu.Lock()
	s := d.conn
	d.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

// refuse is kill for good.
func (d *dialer) refuse() {
	d.mu.Lock()
	d.refused = true
	d.mu.Unlock()
	d.kill()
}

// A socket tells its dialer when it is closed.
type socket struct {
	net.Conn
	d    *dialer
	once sync.Once
}

// Close implements net.Conn.
func (s *socket) Close() error {
	s.once.Do(func() {
		s.d.mu.Lock()
		if s.d.conn == s && s.d.epoch.Load()%2 == 1 {
			s.d.epoch.Add(1)
		}
		s.d.mu.Unlock()
	})
	return s.Conn.Close()
}
