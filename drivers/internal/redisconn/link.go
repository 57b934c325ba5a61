package redisconn

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// Time limits. openLimit limits Open over all addresses.
const (
	openLimit  = 10 * time.Second
	dialLimit  = 4 * time.Second
	closeLimit = 5 * time.Second
	findLimit  = time.Second            // for a server to report whether it is the master
	wordsLimit = 500 * time.Millisecond // for a server's error message on hang-up
	settleWait = 2 * time.Second        // for outstanding answers, on close
	endWait    = 3 * time.Second        // for the client to fail the rest after its sockets are closed
)

// wordsMost limits that error message, in bytes.
const wordsMost = 1 << 10

// poolSize is how many sockets a link's client may have in addition to its Pipe's.
const poolSize = 4

// A Link is one client of one server.
type Link struct {
	*redis.Client
	Options *Options

	name    string
	run     driver.Run
	seek    seeker                 // nil: always reconnect to the same server
	at      atomic.Pointer[server] // the last server connected to
	sockets sockets.Set
	lost    atomic.Bool // the next connection is a reconnect
	astray  atomic.Bool // that server was unreachable
	moved   atomic.Bool // and the next connection goes to another server
	closed  atomic.Bool
}

// A seeker finds the server to reconnect to.
type seeker func(ctx context.Context) (server, error)

// Open connects to the first of the servers that is a master, within ctx and 10 s. If there is
// none, the error is ErrUnreachable and names the addresses; refused credentials are ErrAuth.
func Open(ctx context.Context, o *Options, run driver.Run) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	l, err := master(ctx, o, run, openLimit)
	if err == nil && len(o.Address) > 1 {
		l.seek = func(ctx context.Context) (server, error) {
			m, err := master(ctx, o, run, findLimit)
			if err != nil {
				return server{}, err
			}
			return *m.at.Load(), m.Close(ctx)
		}
	}
	return l, err
}

// master connects to the first of the servers that is a master, and waits at most limit for each.
func master(ctx context.Context, o *Options, run driver.Run, limit time.Duration) (*Link, error) {
	all, err := o.servers()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, s := range all {
		asking, cancel := context.WithTimeout(ctx, limit)
		l, err := connect(asking, o, s, run, "control", nil)
		if err == nil {
			if err = l.isMaster(asking); err != nil {
				_ = l.Close(asking)
			}
		}
		cancel()
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// isMaster returns why the server is not a master; a server that does not report it counts as one.
func (l *Link) isMaster(ctx context.Context) error {
	text, err := l.Info(ctx, "replication").Result()
	switch {
	case errors.Is(Cause(err), driver.ErrAuth):
		return nil // signed in, but this user may not use INFO
	case err != nil:
		return l.unasked(err)
	}
	if role := fields(text)["role"]; role != "" && role != "master" {
		return fmt.Errorf("%s is a %s, no master: %w", l.at.Load().HostPort(), role, driver.ErrUnsupported)
	}
	return nil
}

// unasked maps the error of a request to the server.
func (l *Link) unasked(err error) error {
	return fmt.Errorf("asking %s: %w", l.at.Load().HostPort(), Unreachable(err))
}

// Master returns the host:port of the server that accepts writes, for Facts.Leaders.
func (l *Link) Master() []string { return []string{l.at.Load().HostPort()} }

// Another opens another connection to the same server, for name.
func (l *Link) Another(ctx context.Context, run driver.Run, name string) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return connect(ctx, l.Options, *l.at.Load(), run, name, l.seek)
}

// connect creates a client, and checks that the server answers.
func connect(ctx context.Context, o *Options, at server, run driver.Run, name string, seek seeker) (*Link, error) {
	l := &Link{Options: o, name: name, run: run, seek: seek}
	l.at.Store(&at)
	logging.Disable() // its output is also returned as errors
	l.Client = redis.NewClient(&redis.Options{
		Addr: at.HostPort(),
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			at := l.at.Load()
			return at.User, at.Password, nil
		},
		ClientName: clientName(run, name),
		Dialer:     l.dial,
		// A message is sent once: a lost command may have been executed.
		MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1,
		DialTimeout: dialLimit, DialerRetries: 1,
		ReadTimeout: o.AckTimeout, WriteTimeout: o.AckTimeout,
		ContextTimeoutEnabled: true,
		PoolSize:              poolSize, MaxActiveConns: poolSize, PipelinePoolSize: 1,
		ConnMaxIdleTime:          -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	if err := l.Ping(ctx).Err(); err != nil {
		if failure.Broken(err) && at.tls == nil {
			err = lastWords(ctx, at, err)
		}
		_ = l.Close(ctx)
		return nil, fmt.Errorf("connecting to %s: %w", at.HostPort(), Unreachable(err))
	}
	return l, nil
}

// lastWords returns the error of a server that hangs up before the first command, as it does with
// too many clients: the client writes first, and only finds the connection closed. If the server
// says nothing, lastWords returns err.
func lastWords(ctx context.Context, at server, err error) error {
	ctx, cancel := context.WithTimeout(ctx, wordsLimit)
	defer cancel()
	var d net.Dialer
	c, failed := d.DialContext(ctx, "tcp", at.HostPort())
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
	if is := refusal(said); is != nil {
		err = is
	}
	return fmt.Errorf("%w: %s", err, said)
}

// dial is the client's redis.Options.Dialer. If there are several servers, the master may have
// changed.
func (l *Link) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	c, err := l.reach(ctx, network)
	if err != nil && l.seek != nil && ctx.Err() == nil {
		c, err = l.reach(ctx, network) // the server is gone: another may have taken over
	}
	if err != nil {
		return nil, err
	}
	at := l.at.Load()
	if at.tls != nil {
		secure := tls.Client(c, at.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		c = secure
	}
	if l.lost.Swap(false) {
		l.run.Logger().Info("connected again", "connection", l.name, "server", at.HostPort())
		text := l.name
		if l.moved.Swap(false) {
			text += " to " + at.HostPort()
		}
		l.run.Tell(driver.Reconnect, text)
	}
	return c, nil
}

// reach connects to the server, or after a loss to the one that find finds.
func (l *Link) reach(ctx context.Context, network string) (net.Conn, error) {
	if (l.lost.Load() || l.astray.Load()) && !l.sockets.Refused() {
		if err := l.find(ctx); err != nil {
			return nil, err
		}
	}
	c, err := l.sockets.Dial(ctx, network, l.at.Load().HostPort(), dialLimit)
	l.astray.Store(err != nil)
	return c, err
}

// find looks for the current master, if there are other servers.
func (l *Link) find(ctx context.Context) error {
	if l.seek == nil {
		return nil
	}
	at, err := l.seek(ctx)
	if err != nil {
		return fmt.Errorf("%w: no master: %w", driver.ErrDisconnected, err)
	}
	if was := l.at.Swap(&at); !was.is(at) {
		l.moved.Store(true)
	}
	return nil
}

// Lost records that a connection broke, so the next one is a reconnect.
func (l *Link) Lost() { l.lost.Store(true) }

// CheckMoved breaks the connections to a server if its answer, err, says that it is no longer a master,
// or not of that hash slot. If there are other servers, the next connection goes to the master.
func (l *Link) CheckMoved(err error) {
	var said redis.Error
	if l.seek == nil || !errors.As(err, &said) {
		return
	}
	if text := said.Error(); (strings.HasPrefix(text, "READONLY") || strings.HasPrefix(text, "MOVED")) && !l.lost.Swap(true) {
		l.Kill()
	}
}

// Kill closes the link's sockets, which unblocks pending reads and writes. The client
// reconnects.
func (l *Link) Kill() { l.sockets.Kill() }

// Refuse is Kill without a reconnect.
func (l *Link) Refuse() { l.sockets.Refuse() }

// Settle waits until nothing is open, within ctx and 2 s. Then it calls Refuse, and waits 3 s for
// the client to fail the rest. An error means that the client did not.
func (l *Link) Settle(ctx context.Context, open *blocking.Outstanding) error {
	answers, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	if open.Wait(answers) == nil {
		return nil
	}
	l.Refuse()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	return open.Wait(end)
}

// Close closes the connections, within ctx and at most 5 s. It is idempotent.
func (l *Link) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	defer context.AfterFunc(ctx, l.Refuse)()
	if err := l.Client.Close(); !errors.Is(err, net.ErrClosed) { // already closed by Kill
		return err
	}
	return nil
}
