package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A producer publishes on one channel of its own connection.
type producer struct {
	*blocking.Outgoing
	conn   *conn
	name   string
	index  int
	places *driver.Targets[place]
	mode   uint8 // delivery mode

	now  *retry.Kept[outlet]
	gate *gate.Gate // interrupts a waiting write
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		Outgoing: blocking.NewOutgoing(done), conn: c, name: spec.Name(), index: spec.Index, mode: client.Transient,
	}
	if c.cfg.DeliveryMode == persistent {
		p.mode = client.Persistent
	}
	var err error
	p.places, err = driver.NewTargets(spec.Destinations, func(d string) (place, error) {
		at, err := c.place(d)
		if err != nil {
			return at, err
		}
		return at, c.there(ctx, d, at)
	})
	if err != nil {
		return nil, err
	}
	if err := c.fits(ctx, spec.Largest); err != nil {
		return nil, err
	}
	o, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	kept := reconnecting(c, p.connect, p.hold, p.made)
	kept.AtOnce = func(why error) bool { return errors.As(why, new(*refusing)) }
	kept.GivenUp = (*outlet).giveUp
	p.now = kept.Start(o, c.run, p.name)
	p.gate = gate.New(func() { p.now.Now().kill() })
	return p, nil
}

// fits probes whether the server accepts messages of a size, because it does not report its limit.
// The message goes to a missing queue, and disappears. It uses a separate connection: in an alarm,
// the server reads nothing more from a connection that has published.
func (c *conn) fits(ctx context.Context, size int) error {
	if size == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	l, err := c.reach(ctx, "size", 0, nil)
	if err != nil {
		return err
	}
	defer l.end()
	var blocked atomic.Pointer[string]
	l.reportBlocked(driver.Run{Block: func(_, why string) {
		if why != "" {
			blocked.Store(&why)
		}
	}}, "")
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	err = errorMap.Cause(l.try(ctx, name("weir", c.run.ID)+".none", size))
	switch why := blocked.Load(); {
	case ctx.Err() != nil && why != nil:
		return fmt.Errorf("%w: %s", driver.ErrBlocked, *why)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: no answer: %w", driver.ErrUnreachable, ctx.Err())
	case errors.Is(err, driver.ErrTooLarge), errors.Is(err, driver.ErrUnreachable):
		return err
	}
	return nil // the user may not have permission to publish there
}

// try publishes a message of a size to a queue, and waits for its confirmation.
func (l *link) try(ctx context.Context, queue string, size int) error {
	ch, err := l.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return err
	}
	over := ch.NotifyClose(make(chan *client.Error, 1)) // first: a closed channel does not say why
	sent, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false, client.Publishing{Body: make([]byte, size)})
	if err != nil {
		return err
	}
	<-sent.Done() // confirmed, or the channel ended
	if sent.Acked() {
		return nil
	}
	if why := <-over; why != nil {
		return why
	}
	return client.ErrClosed
}

// connect opens a connection and a channel, and checks the targets of publishing.
func (p *producer) connect(ctx context.Context) (*outlet, error) {
	o := newOutlet(p)
	var err error
	if o.link, err = p.conn.reach(ctx, p.name, p.index, o); err != nil {
		return nil, err
	}
	o.reportBlocked(p.conn.run, p.name)
	stop := context.AfterFunc(ctx, o.kill)
	defer stop()
	if err := o.begin(); err != nil {
		o.end()
		if ctx.Err() != nil {
			return nil, unreachable(ctx.Err())
		}
		return nil, errorMap.Cause(err)
	}
	return o, nil
}

// begin opens a connection's channel, once all targets of publishing exist.
func (o *outlet) begin() error {
	p := o.producer
	for _, at := range p.places.All() {
		ch, err := o.Channel()
		if err == nil {
			if err = p.conn.see(ch, at); err == nil {
				err = ch.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	var err error
	if o.channel, err = o.Channel(); err == nil && o.confirms {
		err = o.channel.Confirm(false)
	}
	if err != nil {
		return err
	}
	o.over = o.channel.NotifyClose(make(chan *client.Error, 1))
	return nil
}

// reconnecting returns what reopens connections of c.
func reconnecting[T any](c *conn, connect func(context.Context) (*T, error), hold func(context.Context, *T) error, made func(lost, now *T, why error)) *retry.Connection[T] {
	return &retry.Connection[T]{
		Connect: connect, Hold: hold, Made: made, Wait: c.cfg.ReconnectWait, For: c.cfg.ReconnectFor,
		Final: func(err error) bool { return errors.Is(err, driver.ErrUnsupported) }, // the object no longer exists
	}
}

// made replaces a lost connection with a new one.
func (p *producer) made(lost, now *outlet, why error) {
	now.inherit(lost)
	if stuck := (*refusing)(nil); errors.As(why, &stuck) {
		p.conn.run.Tell("reopen", fmt.Sprintf("%s to %s, after %d refusals of %s and no confirmation in %v", p.name, now.address, stuck.refused, stuck.destination, stuck.span))
	} else {
		p.conn.run.Tell(driver.Reconnect, p.name+" to "+now.address)
	}
}

// hold returns why a channel ended, once everything in flight on it has completed. When life ends,
// Close completes it.
func (p *producer) hold(life context.Context, o *outlet) error {
	why := p.watch(life, o)
	if life.Err() != nil {
		return nil
	}
	if errors.As(why, new(*refusing)) {
		p.index = slices.Index(p.conn.addresses, o.address) + 1 // the node may be the problem
	}
	o.end() // interrupts a waiting write, which finish needs
	o.finish(why)
	return why
}

// watch returns why a channel ended, or nil if life did.
func (p *producer) watch(life context.Context, o *outlet) error {
	var due <-chan time.Time
	span := p.conn.cfg.ReopenAfter / looks
	if span > 0 {
		ticker := time.NewTicker(span)
		defer ticker.Stop()
		due = ticker.C
	}
	for {
		select {
		case <-life.Done():
			return nil
		case <-due:
			if r := o.look(span); r != nil {
				return r
			}
		case e := <-o.over:
			return lost(e)
		}
	}
}

// Publish implements driver.Producer. The payload has been written when it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	at, err := p.places.Of(ctx, m)
	if !p.Admit(m, err) {
		return
	}
	p.gate.Enter(ctx)
	err = p.now.Now().publish(ctx, at, m)
	p.gate.Leave()
	if err != nil {
		p.Complete(m, err)
	}
}

// Close implements driver.Producer. It waits at most 2 s for outstanding confirmations, and as long
// for closing the connection.
func (p *producer) Close(ctx context.Context) error {
	p.gate.Close()
	return p.End(ctx, func(bool) error {
		p.now.End()
		o := p.now.Now()
		o.finish(driver.ErrClosed)
		o.end()
		return nil
	})
}
