package natsstreaming

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// Bounds of a consumer.
const (
	readyLimit = 15 * time.Second // of subscribing, while a cluster elects
	endLimit   = 5 * time.Second  // of having the server take the last acknowledgements
)

// A consumer is a member of the subscription's groups, in a session on a
// connection of its own.
type consumer struct {
	conn     *conn
	name     string // in events
	id       string // client ID
	link     *natsconn.Link
	spec     driver.ConsumerSpec
	groups   []group
	inFlight int                         // of each group
	from     []stan.SubscriptionOption   // none: behind the last message
	current  *session                    // Consumer's, then Run's
	sink     atomic.Pointer[driver.Sink] // set by Run; events before it have nobody to go to
	gone     chan error                  // holds why the client gave up the connection
	lost     chan lostSession            // holds the last one given up

	held natsconn.Held // by the subscriptions of Run's current session
}

// A lostSession is a session that the client has given up.
type lostSession struct {
	conn stan.Conn
	why  error
}

// Consumer connects, makes a session, and the subscription's groups where their
// place is that of the last message: they get what comes from then on.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{
		conn: c, spec: spec, name: fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index), id: c.clientID(),
		gone: make(chan error, 1), lost: make(chan lostSession, 1),
	}
	if err := x.open(ctx); err != nil {
		if x.link != nil {
			_ = x.link.Close(ctx)
		}
		return nil, fmt.Errorf("nats-streaming: %s: %w", x.name, err)
	}
	c.opened(x)
	return x, nil
}

func (x *consumer) open(ctx context.Context) error {
	c := x.conn
	if x.spec.Settle != driver.SettleEach && x.spec.Settle != driver.SettleAuto {
		return fmt.Errorf("settle %v: %w", x.spec.Settle, driver.ErrUnsupported)
	}
	if x.inFlight = x.spec.Prefetch; x.inFlight <= 0 {
		x.inFlight = stan.DefaultMaxInflight
	}
	x.inFlight = max(1, x.inFlight/max(1, len(x.spec.Destinations)))
	var err error
	if x.from, err = position(x.spec.From); err != nil {
		return err
	}
	for _, d := range x.spec.Destinations {
		name, err := c.channel(ctx, d)
		if err != nil {
			return fmt.Errorf("destination %s: %w", d, err)
		}
		g, err := c.group(name, &x.spec)
		if err != nil {
			return err
		}
		x.groups = append(x.groups, g)
	}
	x.link, err = natsconn.Connect(ctx, &c.cfg.Options, c.run, x.name, natsconn.Events{
		Lost:   x.fault,
		Gone:   func(err error) { x.gone <- err },
		Faults: func(sub *nats.Subscription, err error) { x.fault(natsconn.Dropped(sub, err)) },
	})
	if err != nil {
		return err
	}
	if x.current, err = c.cfg.interruptible(ctx, x.link, x.id, 1, x.sessionLost); err != nil {
		return err
	}
	for _, g := range x.groups {
		if len(x.from) > 0 {
			c.note(&x.spec, g) // a place that can be found later as well
			continue
		}
		limited, cancel := context.WithTimeout(ctx, readyLimit)
		err := c.begin(limited, x.current, &x.spec, g)
		cancel()
		if err != nil {
			return errors.Join(err, x.current.Close())
		}
	}
	return nil
}

// position returns where a group begins that does not exist; nil is behind the last
// message.
func position(p driver.Position) ([]stan.SubscriptionOption, error) {
	switch p.At {
	case driver.AtDefault, driver.AtLatest:
		return nil, nil
	case driver.AtEarliest:
		return []stan.SubscriptionOption{stan.DeliverAllAvailable()}, nil
	case driver.AtOffset:
		n, err := strconv.ParseUint(p.Offset, 10, 64)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("offset %q is not a sequence number (1 and more): %w", p.Offset, driver.ErrUnsupported)
		}
		return []stan.SubscriptionOption{stan.StartAtSequence(n)}, nil
	case driver.AtTime:
		return []stan.SubscriptionOption{stan.StartAtTime(p.Time)}, nil
	}
	return nil, fmt.Errorf("position %v: %w", p.At, driver.ErrUnsupported)
}

// sessionLost is what the client calls when it has given a session up.
func (x *consumer) sessionLost(of stan.Conn, why error) {
	select {
	case x.lost <- lostSession{of, why}:
	default: // Run has one to look at, and looks at the current session then
	}
}

func (x *consumer) fault(err error) {
	if s := x.sink.Load(); s != nil {
		(*s).Fault(err)
	}
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.sink.Store(&sink)
	r := &running{x: x, sink: sink}
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	err := again(limited, func() error { return r.subscribe(x.from) })
	cancel()
	switch {
	case err == nil:
		sink.Ready()
		err = r.until(ctx)
	case errors.Is(cause(err), driver.ErrDisconnected): // lost before it began
		if err = r.renew(ctx); err == nil {
			sink.Ready()
			err = r.until(ctx)
		}
	default:
		err = fmt.Errorf("nats-streaming: subscribe: %w", cause(err))
	}
	r.finish()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A running is one Run.
type running struct {
	x    *consumer
	sink driver.Sink
	subs []stan.Subscription // of the current session

	mu    sync.Mutex // one Deliver at a time: each group has a goroutine of its own
	ended bool
	first int64 // the server's time of the first message, in ns
	ds    [1]driver.Delivery
}

// subscribe joins the groups in the current session. What does not exist begins at
// from.
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
		r.x.held.Add(sub)
	}
	return nil
}

// unsubscribe leaves the groups, which stay, and ends the client's subscriptions,
// also those in a session that is over.
func (r *running) unsubscribe() {
	for _, sub := range r.subs {
		_ = sub.Close()
	}
	r.subs = nil
	r.x.held.Clear()
}

// until returns when ctx ends, or with why the connection is lost for good. A lost
// session is made again.
func (r *running) until(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.x.gone:
			return lostFor(err)
		case l := <-r.x.lost:
			if l.conn != r.x.current.Conn {
				continue // one that was replaced
			}
			r.sink.Fault(fmt.Errorf("session lost: %w", cause(l.why)))
			if err := r.renew(ctx); err != nil {
				return err
			}
		}
	}
}

// lostFor is the end of a subscription.
func lostFor(why error) error { return fmt.Errorf("nats-streaming: subscription lost: %w", why) }

// renew makes a session and subscribes, again and again until both are done, ctx has
// ended or the connection is lost for good. Where the server has forgotten the group
// too, as one in memory does, it begins anew.
func (r *running) renew(ctx context.Context) error {
	x := r.x
	r.unsubscribe()
	_ = x.current.Close()
	for {
		if natsconn.Up(x.link.Epoch()) {
			s, err := x.conn.cfg.newSession(x.link, x.id, 1, x.sessionLost)
			if err == nil {
				x.current = s
				if err = r.subscribe(r.anew()); err == nil {
					x.conn.event(x.name)
					return nil
				}
				r.unsubscribe()
				_ = s.Close()
			}
			r.sink.Fault(fmt.Errorf("session is not made again yet: %w", cause(err)))
		}
		select {
		case err := <-x.gone:
			return lostFor(err)
		default:
		}
		if !pause(ctx, x.conn.cfg.ReconnectWait) {
			return ctx.Err()
		}
	}
}

// anew returns where a group begins that the server has forgotten: such that
// nothing is left out, at the price of duplicates. A channel of this run holds
// nothing else.
func (r *running) anew() []stan.SubscriptionOption {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.x.from) == 0 && !r.x.conn.run.Existing:
		return []stan.SubscriptionOption{stan.DeliverAllAvailable()}
	case r.first > 0: // who has forgotten the channel too counts from 1 again
		return []stan.SubscriptionOption{stan.StartAtTime(time.Unix(0, r.first))}
	}
	return r.x.from
}

// deliver hands over one message of a group and acknowledges it. What is not
// acknowledged comes again after ack-wait.
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
		r.sink.Fault(fmt.Errorf("not settled: %w", cause(err)))
	}
}

// finish ends the deliveries and has the server take the acknowledgements, and the
// end of the session behind them. A server that does not read is cut off.
func (r *running) finish() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	x := r.x
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	stuck := context.AfterFunc(ctx, x.link.Kill)
	defer stuck()
	if natsconn.Up(x.link.Epoch()) {
		if err := x.link.FlushWithContext(ctx); err != nil {
			r.sink.Fault(fmt.Errorf("last acknowledgements: %w", cause(err)))
			return
		}
		// The server works off what it was sent before it ends a session.
		if err := x.current.Close(); err != nil {
			r.sink.Fault(fmt.Errorf("end of the session: %w", cause(err)))
		}
	}
}

// Close ends the session, where Run has not, and the connection.
func (x *consumer) Close(ctx context.Context) error {
	x.conn.closed(x)
	stop := context.AfterFunc(ctx, func() { _ = x.link.Close(ctx) }) // nothing else ends the client's waiting
	defer stop()
	if natsconn.Up(x.link.Epoch()) {
		_ = x.current.Close()
	}
	return x.link.Close(ctx)
}
