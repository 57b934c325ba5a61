package natsstreaming

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// Limits of a consumer.
const (
	readyLimit = 15 * time.Second // for subscribing, while a cluster elects
	endLimit   = 5 * time.Second  // for the server to take the last acknowledgements
)

// A consumer is a member of the subscription's groups, in a session on its own connection.
type consumer struct {
	*natsconn.Receiver
	conn      *conn
	id        string // client ID
	spec      driver.ConsumerSpec
	groups    []group
	inFlight  int                       // per group
	from      []stan.SubscriptionOption // none: after the last message
	current   *session                  // Consumer's session, then Run's
	forgotten chan lostSession          // holds the last session given up
}

// A lostSession is a session that the client has given up.
type lostSession struct {
	conn stan.Conn
	why  error
}

// Consumer connects and starts a session. If the subscription's groups start after the last
// message, it also creates the groups, which receive everything from then on.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{conn: c, spec: spec, id: c.clientID(), inFlight: spec.Prefetch, forgotten: make(chan lostSession, 1)}
	if x.inFlight <= 0 {
		x.inFlight = stan.DefaultMaxInflight
	}
	x.inFlight = max(1, x.inFlight/max(1, len(spec.Destinations)))
	var err error
	if x.from, err = position(spec.From); err != nil {
		return nil, err
	}
	for _, d := range spec.Destinations {
		name, err := c.channel(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		g, err := c.group(name, spec.Subscription, spec.Durable)
		if err != nil {
			return nil, err
		}
		x.groups = append(x.groups, g)
	}
	if x.Receiver, err = natsconn.Receive(ctx, &c.cfg.Options, c.run, &spec); err != nil {
		return nil, err
	}
	if err := x.begin(ctx); err != nil {
		_ = x.Link.Close(ctx)
		return nil, err
	}
	c.ends.Consumers.Note(x.Receiver, spec.Subscription)
	return x, nil
}

// begin starts the session, and creates the groups.
func (x *consumer) begin(ctx context.Context) (err error) {
	c := x.conn
	if x.current, err = c.cfg.interruptible(ctx, x.Link, x.id, 1, x.sessionLost); err != nil {
		return err
	}
	for _, g := range x.groups {
		if len(x.from) > 0 {
			c.begun.Store(g, x.spec.Durable) // a position that can be found later as well
			continue
		}
		limited, cancel := context.WithTimeout(ctx, readyLimit)
		err := c.begin(limited, x.current, g, x.spec.Durable)
		cancel()
		if err != nil {
			return errors.Join(err, x.current.Close())
		}
	}
	return nil
}

// position returns where a new group begins; nil means after the last message.
func position(p driver.Position) ([]stan.SubscriptionOption, error) {
	switch p.At {
	case driver.AtDefault, driver.AtLatest:
		return nil, nil
	case driver.AtEarliest:
		return []stan.SubscriptionOption{stan.DeliverAllAvailable()}, nil
	case driver.AtOffset:
		n, err := natsconn.Sequence(p)
		return []stan.SubscriptionOption{stan.StartAtSequence(n)}, err
	case driver.AtTime:
		return []stan.SubscriptionOption{stan.StartAtTime(p.Time)}, nil
	}
	return nil, fmt.Errorf("position %v: %w", p.At, driver.ErrUnsupported)
}

// sessionLost is the client's callback when it has given up a session.
func (x *consumer) sessionLost(of stan.Conn, why error) {
	select {
	case x.forgotten <- lostSession{of, why}:
	default: // Run already has one to check, and then checks the current session
	}
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.Begin(sink)
	r := &running{x: x, sink: sink}
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	err := retry.While(limited, askPause, passing, func() error { return r.subscribe(x.from) })
	cancel()
	if err = words.Cause(err); errors.Is(err, driver.ErrDisconnected) { // lost before it began
		err = r.renew(ctx)
	} else if err != nil {
		err = fmt.Errorf("subscribe: %w", err)
	}
	if err == nil {
		sink.Ready()
		err = r.until(ctx)
	}
	r.finish()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A running is one call of Run.
type running struct {
	x    *consumer
	sink driver.Sink
	subs []stan.Subscription // of the current session

	mu    sync.Mutex // one Deliver at a time: each group has its own goroutine
	ended bool
	first int64 // server timestamp of the first message, in ns
	ds    [1]driver.Delivery
}

// subscribe joins the groups in the current session. Missing groups begin at from.
func (r *running) subscribe(from []stan.SubscriptionOption) error {
	r.unsubscribe()
	for i, g := range r.x.groups {
		options := append([]stan.SubscriptionOption{
			stan.DurableName(g.durable), stan.SetManualAckMode(),
			stan.MaxInflight(r.x.inFlight), stan.AckWait(r.x.conn.cfg.AckWait),
		}, from...)
		sub, err := r.x.current.QueueSubscribe(g.channel, g.queue, func(m *stan.Msg) { r.deliver(int32(i), m) }, options...)
		if err != nil {
			return err
		}
		r.subs = append(r.subs, sub)
		r.x.Hold(sub)
	}
	return nil
}

// unsubscribe leaves the groups, which remain, and ends the client's subscriptions, even in a
// session that is over.
func (r *running) unsubscribe() {
	for _, sub := range r.subs {
		_ = sub.Close()
	}
	r.subs = nil
	r.x.Drop()
}

// until waits until ctx ends or the connection is permanently lost, and returns why. It replaces
// lost sessions.
func (r *running) until(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.x.Gone:
			return lostFor(err)
		case l := <-r.x.forgotten:
			if l.conn != r.x.current.Conn {
				continue // an already replaced session
			}
			r.sink.Fault(fmt.Errorf("session lost: %w", words.Cause(l.why)))
			if err := r.renew(ctx); err != nil {
				return err
			}
		}
	}
}

// lostFor returns the error of a lost subscription.
func lostFor(why error) error { return fmt.Errorf("subscription lost: %w", why) }

// renew starts a session and subscribes, and retries until ctx has ended or the connection is
// permanently lost. If the server has lost the group too, as with memory storage, the group begins
// anew.
func (r *running) renew(ctx context.Context) error {
	x := r.x
	r.unsubscribe()
	_ = x.current.Close()
	for {
		if x.Up() {
			s, err := x.conn.cfg.newSession(x.Link, x.id, 1, x.sessionLost)
			if err == nil {
				x.current = s
				if err = r.subscribe(r.anew()); err == nil {
					x.conn.run.For(&x.spec).Tell(driver.Reconnect, x.Name+": a new session")
					return nil
				}
				r.unsubscribe()
				_ = s.Close()
			}
			r.sink.Fault(fmt.Errorf("session is not made again yet: %w", words.Cause(err)))
		}
		select {
		case err := <-x.Gone:
			return lostFor(err)
		default:
		}
		if !retry.Pause(ctx, x.conn.cfg.ReconnectWait) {
			return ctx.Err()
		}
	}
}

// anew returns where a group begins that the server has lost: it must not skip messages, at the
// price of duplicates. A channel of this run contains nothing else.
func (r *running) anew() []stan.SubscriptionOption {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.x.from) == 0 && !r.x.conn.run.Existing:
		return []stan.SubscriptionOption{stan.DeliverAllAvailable()}
	case r.first > 0: // a server that also lost the channel counts from 1 again
		return []stan.SubscriptionOption{stan.StartAtTime(time.Unix(0, r.first))}
	}
	return r.x.from
}

// deliver delivers one message of a group and acknowledges it. Unacknowledged messages are
// redelivered after ack-wait.
func (r *running) deliver(group int32, m *stan.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if r.first == 0 {
		r.first = m.Timestamp
	}
	r.ds[0] = driver.Delivery{Payload: m.Data, Partition: -1, Source: group, Redelivered: m.Redelivered}
	if err := r.sink.Deliver(r.ds[:]); err != nil && r.x.spec.Settle == driver.SettleEach {
		return
	}
	if err := m.Ack(); err != nil {
		r.sink.Fault(fmt.Errorf("not settled: %w", words.Cause(err)))
	}
}

// finish stops the deliveries and makes the server take the acknowledgements, and then the end of
// the session. A server that does not read is disconnected.
func (r *running) finish() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	x := r.x
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	stuck := context.AfterFunc(ctx, x.Kill)
	defer stuck()
	if x.Up() {
		if err := x.FlushWithContext(ctx); err != nil {
			r.sink.Fault(fmt.Errorf("last acknowledgements: %w", words.Cause(err)))
			return
		}
		// The server processes everything it was sent before it ends a session.
		if err := x.current.Close(); err != nil {
			r.sink.Fault(fmt.Errorf("end of the session: %w", words.Cause(err)))
		}
	}
}

// Close ends the session, unless Run has, and closes the connection.
func (x *consumer) Close(ctx context.Context) error {
	x.conn.ends.Consumers.Forget(x.Receiver)
	stop := context.AfterFunc(ctx, func() { _ = x.Link.Close(ctx) }) // nothing else interrupts the client
	defer stop()
	if x.Up() {
		_ = x.current.Close()
	}
	return x.Link.Close(ctx)
}
