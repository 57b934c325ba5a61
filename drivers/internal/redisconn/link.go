package redisconn

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weirmq/weir/driver"
)

// Time limits of connecting. openLimit bounds Open over all addresses.
const (
	openLimit  = 10 * time.Second
	dialLimit  = 4 * time.Second
	closeLimit = 5 * time.Second
	findLimit  = time.Second // for one server to say whether it is the master
)

// sockets is how many a link's client may have besides the one of its Pipe.
const sockets = 4

// A Link is one client, of one server.
type Link struct {
	*redis.Client
	Options *Options

	at     atomic.Pointer[place] // the server that was connected to last
	name   string
	dialer *dialer
	run    driver.Run
	closed atomic.Bool
}

// Open connects to the first of the servers that is a master, within ctx and at
// most 4 s. Nobody there is ErrUnreachable and names the addresses; refused
// credentials are ErrAuth.
func Open(ctx context.Context, o *Options, run driver.Run) (*Link, error) {
	ps, err := o.places()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	var errs []error
	for _, p := range ps {
		l, err := master(ctx, o, p, run)
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// master connects to a server that is a master.
func master(ctx context.Context, o *Options, p place, run driver.Run) (*Link, error) {
	l, err := connect(ctx, o, p, run, "control")
	if err != nil {
		return nil, err
	}
	role, err := l.role(ctx)
	if err == nil && role == "master" {
		return l, nil
	}
	_ = l.Close(ctx)
	if err == nil {
		err = fmt.Errorf("%s is a %s, no master: %w", p.address, role, driver.ErrUnsupported)
	}
	return nil, err
}

// role returns what the server is in its replication; one that does not tell
// counts as a master.
func (l *Link) role(ctx context.Context) (string, error) {
	text, err := l.Info(ctx, "replication").Result()
	switch err = Cause(err); {
	case errors.Is(err, driver.ErrAuth):
		return "master", nil // signed in, but INFO is not for this user
	case err != nil:
		return "", fmt.Errorf("asking %s: %w", l.at.Load().address, unreachable(err))
	}
	if role := fields(text)["role"]; role != "" {
		return role, nil
	}
	return "master", nil
}

// Another connects once more to the same server, for name.
func (l *Link) Another(ctx context.Context, name string) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return connect(ctx, l.Options, *l.at.Load(), l.run, name)
}

// connect makes a client, and asks the server whether it is there.
func connect(ctx context.Context, o *Options, p place, run driver.Run, name string) (*Link, error) {
	config, err := o.tls(p)
	if err != nil {
		return nil, err
	}
	l := &Link{Options: o, name: name, run: run}
	l.at.Store(&p)
	if l.run.Log == nil {
		l.run.Log = slog.New(slog.DiscardHandler)
	}
	logging.Disable() // what it would print is returned, too
	l.dialer = &dialer{tls: config, again: l.again, open: map[net.Conn]bool{}}
	if len(o.Address) > 1 {
		l.dialer.find = l.find
	}
	l.Client = redis.NewClient(&redis.Options{
		Addr: p.address,
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			at := l.at.Load()
			return at.user, at.password, nil
		},
		ClientName: clientName(run, name),
		Dialer:     l.dialer.dial,
		// A message is sent once: a command that was lost may have been done.
		MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1,
		DialTimeout: dialLimit, DialerRetries: 1,
		ReadTimeout: o.AckTimeout, WriteTimeout: o.AckTimeout,
		ContextTimeoutEnabled: true,
		PoolSize:              sockets, MaxActiveConns: sockets, PipelinePoolSize: 1,
		ConnMaxIdleTime:          -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	if err := l.Ping(ctx).Err(); err != nil {
		if broken(err) && config == nil {
			err = lastWords(ctx, p, err)
		}
		_ = l.Close(ctx)
		return nil, fmt.Errorf("connecting to %s: %w", p.address, unreachable(err))
	}
	return l, nil
}

// wordsLimit bounds the wait for a server's last words.
const wordsLimit = 500 * time.Millisecond

// lastWords returns what a server says that hangs up before it was asked anything,
// as one does that has too many clients: the client writes first, and finds the
// connection closed. A server that says nothing leaves err.
func lastWords(ctx context.Context, p place, err error) error {
	ctx, cancel := context.WithTimeout(ctx, wordsLimit)
	defer cancel()
	var nd net.Dialer
	c, failed := nd.DialContext(ctx, "tcp", p.address)
	if failed != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	line, failed := bufio.NewReader(io.LimitReader(c, wordsMost)).ReadString('\n')
	said, ok := strings.CutPrefix(strings.TrimSpace(line), "-")
	if failed != nil || !ok {
		return err
	}
	for _, r := range refusals {
		if strings.HasPrefix(said, r.text) {
			return fmt.Errorf("%w: %s", r.is, said)
		}
	}
	return fmt.Errorf("%w: %s", err, said)
}

// wordsMost bounds their length.
const wordsMost = 1 << 10

// unreachable is Cause, and ErrUnreachable where the server did not answer.
func unreachable(err error) error {
	if c := Cause(err); errors.Is(c, driver.ErrAuth) || errors.Is(c, driver.ErrOverloaded) || Answered(err) {
		return c
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, plain(err))
}

// Lost says that a connection broke: the next that is made is a reconnect.
func (l *Link) Lost() { l.dialer.lost.Store(true) }

// find looks for the server that is the master now.
func (l *Link) find(ctx context.Context) (string, *tls.Config, error) {
	ps, err := l.Options.places()
	if err != nil {
		return "", nil, err
	}
	var errs []error
	for _, p := range ps {
		config, err := l.Options.tls(p)
		if err == nil {
			err = l.ask(ctx, p)
		}
		if err == nil {
			l.at.Store(&p)
			return p.address, config, nil
		}
		errs = append(errs, err)
	}
	return "", nil, fmt.Errorf("%w: no master: %w", driver.ErrDisconnected, errors.Join(errs...))
}

// ask returns nil where a server is the master.
func (l *Link) ask(ctx context.Context, p place) error {
	ctx, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	m, err := master(ctx, l.Options, p, l.run)
	if err != nil {
		return err
	}
	return m.Close(ctx)
}

// Heed breaks the connections to a server that err, its answer, says to be no master
// any more. Where there are several addresses, the next connection is one to the
// master.
func (l *Link) Heed(err error) {
	var said redis.Error
	if l.dialer.find != nil && errors.As(err, &said) && strings.HasPrefix(said.Error(), "READONLY") && !l.dialer.lost.Swap(true) {
		l.Kill()
	}
}

// again reports a reconnect.
func (l *Link) again() {
	l.run.Log.Info("connected again", "connection", l.name, "server", l.at.Load().address)
	if l.run.Event != nil {
		l.run.Event("reconnect", l.name)
	}
}

// Kill breaks the link's sockets: whoever waits for the network goes on. The
// client connects again.
func (l *Link) Kill() { l.dialer.kill(false) }

// Refuse is Kill for good: the client does not connect again.
func (l *Link) Refuse() { l.dialer.kill(true) }

// Close ends the connections, within ctx and at most 5 s. It is idempotent.
func (l *Link) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	interrupt := context.AfterFunc(ctx, l.Refuse)
	defer interrupt()
	return l.Client.Close()
}

// A dialer makes the client's sockets, and knows those that are open.
type dialer struct {
	tls   *tls.Config // nil: none
	again func()      // called after a connection was lost and made again
	lost  atomic.Bool
	moved atomic.Bool                                        // the client's address may not be the master's
	find  func(context.Context) (string, *tls.Config, error) // the master of several servers; nil: there is one

	mu      sync.Mutex
	open    map[net.Conn]bool
	refused bool
}

// dial is the client's redis.Options.Dialer. Of several servers another may be the
// master by now.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	d.mu.Lock()
	refused := d.refused
	d.mu.Unlock()
	if refused {
		return nil, net.ErrClosed
	}
	config := d.tls
	if d.find != nil && (d.lost.Load() || d.moved.Load()) {
		var err error
		if address, config, err = d.find(ctx); err != nil {
			return nil, err
		}
		d.moved.Store(true)
	}
	var nd net.Dialer
	raw, err := nd.DialContext(ctx, network, address)
	if err != nil {
		d.moved.Store(true) // if it has
		return nil, err
	}
	var c net.Conn = &socket{Conn: raw, d: d}
	switch tcp, ok := raw.(*net.TCPConn); {
	case config != nil:
		secure := tls.Client(raw, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		c = &socket{Conn: secure, d: d}
	case ok:
		c = &tcpSocket{TCPConn: tcp, d: d}
	}
	d.mu.Lock()
	if d.refused {
		d.mu.Unlock()
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	d.open[c] = true
	d.mu.Unlock()
	if d.lost.Swap(false) {
		d.again()
	}
	return c, nil
}

// kill closes the sockets, for good where no more are to be made.
func (d *dialer) kill(forGood bool) {
	d.mu.Lock()
	d.refused = d.refused || forGood
	var cs []net.Conn
	for c := range d.open {
		cs = append(cs, c)
	}
	d.mu.Unlock()
	for _, c := range cs {
		_ = c.Close()
	}
}

func (d *dialer) gone(c net.Conn) {
	d.mu.Lock()
	delete(d.open, c)
	d.mu.Unlock()
}

// A socket tells its dialer when it is closed.
type socket struct {
	net.Conn
	d *dialer
}

// Close implements net.Conn.
func (s *socket) Close() error {
	s.d.gone(s)
	return s.Conn.Close()
}

// A tcpSocket is a socket that shows its descriptor, by which the client sees
// that an idle connection was closed at the other end.
type tcpSocket struct {
	*net.TCPConn
	d *dialer
}

// Close implements net.Conn.
func (s *tcpSocket) Close() error {
	s.d.gone(s)
	return s.TCPConn.Close()
}
