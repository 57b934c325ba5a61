package natsstreaming

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// Limits for requests to a cluster that is electing, which are repeated until answered.
const (
	openLimit = 5 * time.Second  // for the first session
	askLimit  = 20 * time.Second // for a request of the control connection
	askPause  = 100 * time.Millisecond
)

// A session is the result of stan.Connect on a NATS connection.
type session struct {
	stan.Conn
	epoch uint64      // of the link, before the session began
	over  atomic.Bool // the server does not know the session
}

// newSession starts a session. The client calls lost when it finds that the server does not know
// the session. It takes request-timeout at most. inFlight limits messages published and not
// acknowledged.
func (c *Config) newSession(link *natsconn.Link, id string, inFlight int, lost func(stan.Conn, error)) (*session, error) {
	s := &session{epoch: link.Epoch()}
	var err error
	s.Conn, err = stan.Connect(c.ClusterID, id, stan.NatsConn(link.Conn),
		stan.ConnectWait(c.RequestTimeout), stan.PubAckWait(c.AckTimeout), stan.MaxPubAcksInflight(inFlight),
		stan.Pings(int(c.SessionPingInterval/time.Second), c.SessionPingsOut),
		stan.SetConnectionLostHandler(lost),
		func(o *stan.Options) error {
			o.DiscoverPrefix = c.DiscoverPrefix
			return nil
		})
	switch {
	case err == nil:
		return s, nil
	case err.Error() == takenClient:
		return nil, fmt.Errorf("another connection has the client ID %s: %w: %w", id, driver.ErrUnsupported, err)
	case errors.Is(err, stan.ErrConnectReqTimeout):
		return nil, fmt.Errorf("no NATS Streaming server of cluster-id %q answers at %s (another name, no leader, or NATS without streaming): %w: %w",
			c.ClusterID, c.Show(), driver.ErrUnreachable, err)
	case errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrAuthorization):
		return nil, fmt.Errorf("asking for a session: %w: %w", driver.ErrAuth, err)
	}
	return nil, fmt.Errorf("asking for a session: %w", words.Cause(err))
}

// interruptible starts a session within ctx. If ctx ends first, it closes the link: nothing else
// interrupts the client.
func (c *Config) interruptible(ctx context.Context, link *natsconn.Link, id string, inFlight int, lost func(stan.Conn, error)) (*session, error) {
	stop := context.AfterFunc(ctx, func() { _ = link.Close(ctx) })
	s, err := c.newSession(link, id, inFlight, lost)
	if stop() || err != nil && ctx.Err() == nil {
		return s, err
	}
	return nil, errors.Join(ctx.Err(), err)
}

// with starts a session on the control connection and calls f in it; with a nil f, it only checks
// that a session is possible. The server may have lost an older session.
func (c *conn) with(ctx context.Context, f func(*session) error) error {
	s, err := c.cfg.interruptible(ctx, c.link, c.clientID(), 1, nil)
	if err != nil {
		return err
	}
	if f != nil {
		err = f(s)
	}
	if end := s.Close(); err == nil && end != nil {
		return fmt.Errorf("ending a session: %w", end)
	}
	return err
}

// ask is with, repeated within limit while a cluster elects. The end of ctx does not end the
// session.
func (c *conn) ask(ctx context.Context, limit time.Duration, f func(*session) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return retry.While(ctx, askPause, passing, func() error { return c.with(context.WithoutCancel(ctx), f) })
}
