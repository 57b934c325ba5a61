package eventstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// A link has one client at a time, and replaces it when it is no longer usable. Calls of do are
// serialized, because two calls to a client that just gave up could wait forever.
type link struct {
	c    *conn
	run  driver.Run
	name string // in events

	mu     sync.Mutex
	client *kurrentdb.Client // nil: none at the moment
	lost   bool              // there was one, and it was dropped
	closed bool
}

// connect returns a link that connects on first use.
func (c *conn) connect(run driver.Run, name string) *link { return &link{c: c, run: run, name: name} }

// discovery limits, in whole seconds, how long the client looks for servers. It ignores contexts
// meanwhile.
const discovery = 3

// configuration returns the client's configuration.
func (c *Config) configuration() (*kurrentdb.Configuration, error) {
	all, err := servers.All("address", c.Address)
	if err != nil {
		return nil, err
	}
	k := &kurrentdb.Configuration{
		DisableTLS: !all.Secure(), Username: c.User, Password: c.Password.Reveal(),
		MaxDiscoverAttempts: 1, DiscoveryInterval: 1, GossipTimeout: discovery,
		KeepAliveInterval: 10 * time.Second, KeepAliveTimeout: 10 * time.Second, DefaultDeadline: &c.Timeout,
		Logger: kurrentdb.NoopLogging(), NodePreference: kurrentdb.NodePreferenceLeader,
	}
	if c.CA != "" {
		var t *tls.Config
		if t, err = driver.TLSFiles(c.CA, "", "", false); err != nil {
			return nil, err
		}
		k.RootCAs = t.RootCAs
	}
	if len(all) == 1 {
		k.Address = all[0].HostPort()
		return k, nil
	}
	for _, e := range all {
		port, err := strconv.ParseUint(e.Port, 10, 16)
		if err != nil {
			return nil, &driver.OptionError{Name: "address", Err: fmt.Errorf("has the port %s: %w", e.Port, err)}
		}
		k.GossipSeeds = append(k.GossipSeeds, &kurrentdb.EndPoint{Host: e.Host, Port: uint16(port)})
	}
	return k, nil
}

// do calls f with a client, and a context that ends after at most the option timeout. It maps f's
// error to the contract's errors.
func (l *link) do(ctx context.Context, f func(context.Context, *kurrentdb.Client) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, l.c.cfg.Timeout)
	defer cancel()
	switch {
	case l.closed:
		return driver.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case l.client == nil:
		k, err := l.c.cfg.configuration()
		if err != nil {
			return err
		}
		if l.client, err = kurrentdb.NewClient(k); err != nil {
			return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
		}
	}
	err := f(limited, l.client)
	if err == nil {
		if l.lost {
			l.lost = false
			l.run.Tell(driver.Reconnect, l.name)
		}
		return nil
	}
	if is := code(err); is == kurrentdb.ErrorUnavailable || is == kurrentdb.ErrorCodeConnectionClosed {
		l.give()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return cause(err)
}

// give drops the client. l.mu is held.
func (l *link) give() {
	if l.client != nil {
		_ = l.client.Close()
		l.client, l.lost = nil, true
	}
}

// again drops the client after its subscription has ended.
func (l *link) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.give()
}

// ask is do for a request that may be repeated: it tries twice if the connection turns out to be
// broken. Anything but an answer is ErrUnreachable.
func (l *link) ask(ctx context.Context, f func(context.Context, *kurrentdb.Client) error) error {
	err := l.do(ctx, f)
	if errors.Is(err, driver.ErrDisconnected) {
		err = l.do(ctx, f)
	}
	if err == nil || errors.Is(err, driver.ErrClosed) {
		return err
	}
	return failure.Map{}.Unreachable(err)
}

// close closes the connection. It is idempotent.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.give()
	l.closed = true
}

// code returns the client's code for an error; -1: none.
func code(err error) kurrentdb.ErrorCode {
	if e := (*kurrentdb.Error)(nil); errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

// absent returns err, or nil if err means that the object does not exist.
func absent(err error) error {
	switch is := code(err); {
	case is == kurrentdb.ErrorCodeResourceNotFound, is == kurrentdb.ErrorCodeStreamDeleted, errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// words maps the client's errors to the contract's.
var words = map[kurrentdb.ErrorCode]error{
	kurrentdb.ErrorCodeUnauthenticated: driver.ErrAuth, kurrentdb.ErrorCodeAccessDenied: driver.ErrAuth,
	kurrentdb.ErrorCodeDeadlineExceeded: driver.ErrTimeout, kurrentdb.ErrorCodeUnsupportedFeature: driver.ErrUnsupported,
	kurrentdb.ErrorUnavailable: driver.ErrDisconnected, kurrentdb.ErrorCodeConnectionClosed: driver.ErrDisconnected,
	kurrentdb.ErrorCodeNotLeader: driver.ErrDisconnected, kurrentdb.ErrorAborted: driver.ErrOverloaded,
}

// cause maps a client error to the contract's errors.
func cause(err error) error {
	return failure.Map{Is: func(err error) error {
		if is := words[code(err)]; is != nil {
			return is
		}
		switch s, _ := status.FromError(err); {
		case s.Code() == codes.Unavailable:
			return driver.ErrDisconnected
		case strings.Contains(strings.ToLower(s.Message()), "maximum append size"):
			return driver.ErrTooLarge
		}
		return nil
	}}.Cause(err)
}
