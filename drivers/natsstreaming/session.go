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
)

// Bounds of asking a cluster that is electing: again, until it answers.
const (
	openLimit = 5 * time.Second  // for the first session
	askLimit  = 20 * time.Second // for a request of the control connection
	askPause  = 100 * time.Millisecond
)

// A session is what stan.Connect makes on a NATS connection.
type session struct {
	stan.Conn
	epoch uint64      // of the link, before
	over  atomic.Bool // the server does not know it
}

// newSession makes a session, which the client ends with lost when it finds that
// the server does not know it. It takes request-timeout at most. inFlight is how
// many messages may be published and not acknowledged.
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
	return nil, fmt.Errorf("asking for a session: %w", cause(err))
}

// interruptible makes a session within ctx. When that ends before, the link is
// closed: there is no other way to end the client's waiting.
func (c *Config) interruptible(ctx context.Context, link *natsconn.Link, id string, inFlight int, lost func(stan.Conn, error)) (*session, error) {
	stop := context.AfterFunc(ctx, func() { _ = link.Close(ctx) })
	s, err := c.newSession(link, id, inFlight, lost)
	if stop() || err != nil && ctx.Err() == nil {
		return s, err
	}
	return nil, errors.Join(ctx.Err(), err)
}

// again asks until the answer is not one that passes, or ctx ends.
func again(ctx context.Context, question func() error) error {
	for {
		err := question()
		if err == nil || !passing(err) || !pause(ctx, askPause) {
			return err
		}
	}
}

// pause waits, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// firstSession finds out whether sessions can be had, within openLimit.
func (c *conn) firstSession(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return again(limited, func() error { return c.with(ctx, func(*session) error { return nil }) })
}

// with makes a session on the control connection for as long as f takes. The
// server may have forgotten an older one.
func (c *conn) with(ctx context.Context, f func(*session) error) error {
	s, err := c.cfg.interruptible(ctx, c.link, c.clientID(), 1, nil)
	if err != nil {
		return err
	}
	err = f(s)
	if end := s.Close(); err == nil && end != nil {
		return fmt.Errorf("ending a session: %w", end)
	}
	return err
}

// ask is with, asked again while a cluster elects, within askLimit.
func (c *conn) ask(ctx context.Context, f func(*session) error) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return again(ctx, func() error { return c.with(context.WithoutCancel(ctx), f) })
}
