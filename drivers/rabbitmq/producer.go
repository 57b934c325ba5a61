package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// closeWait is how long Close waits for confirmations of what is in flight.
const closeWait = 2 * time.Second

// A producer publishes on one channel of a connection of its own.
type producer struct {
	conn   *conn
	name   string
	index  int
	done   driver.Completer
	places *driver.Targets[place]
	mode   uint8 // delivery mode

	now         atomic.Pointer[outlet] // the latest
	outstanding *blocking.Outstanding
	stop        context.CancelFunc
	kept        chan struct{} // closed when keep has returned
	closed      bool          // touched by the publishing goroutine only

	// With the client's own publisher, nil and 0 otherwise.
	gate *gate.Gate
	room int // for what the client tells
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		conn: c, name: "producer " + strconv.Itoa(spec.Index), index: spec.Index, done: done, mode: client.Transient,
		outstanding: blocking.NewOutstanding(), kept: make(chan struct{}),
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
	if c.cfg.ByVendor() {
		p.room = max(spec.InFlight, leastRoom)
		p.gate = gate.New(func() { p.now.Load().kill() })
	}
	o, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	p.now.Store(o)
	life, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.keep(life)
	return p, nil
}

// fits tries whether the server takes messages of a size, because it does not tell its
// limit. The message goes to a queue that does not exist, and vanishes.
func (c *conn) fits(ctx context.Context, size int) error {
	if size == 0 {
		return nil
	}
	err := c.ask(ctx, func(ch *client.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		over := ch.NotifyClose(make(chan *client.Error, 1)) // before: a channel that is over does not say why
		sent, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", name("weir", c.run.ID)+".none", false, false, client.Publishing{Body: make([]byte, size)})
		if err != nil {
			return err
		}
		var why *client.Error
		select {
		case <-sent.Done():
			if sent.Acked() {
				return nil
			}
			why = <-over
		case why = <-over:
		}
		if why == nil {
			return client.ErrClosed
		}
		return why
	})
	if errors.Is(err, driver.ErrTooLarge) || errors.Is(err, driver.ErrUnreachable) {
		return err
	}
	return nil // the user may have no right to publish there
}

// connect opens a connection and a channel, and looks for what is published to.
func (p *producer) connect(ctx context.Context) (*outlet, error) {
	o := newOutlet(p)
	below := layer(newPlain)
	switch {
	case p.gate != nil:
	case o.confirms:
		below = overheard(o, nil)
	default:
		below = overheard(o, o.wrote)
	}
	var err error
	if o.link, err = p.conn.reach(ctx, p.name, p.index, below); err != nil {
		return nil, err
	}
	o.tellBlocked(p.conn.run, p.name)
	stop := context.AfterFunc(ctx, o.kill)
	defer stop()
	if err := o.begin(); err != nil {
		o.end()
		if ctx.Err() != nil {
			return nil, unreachable(ctx.Err())
		}
		return nil, words.Cause(err)
	}
	return o, nil
}

// begin opens the channel of a connection, once all that is published to exists.
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
	if p.gate != nil {
		o.listen(p.room)
	}
	return nil
}

// keep makes a new connection whenever one is lost, until life ends or it gives up.
func (p *producer) keep(life context.Context) {
	defer close(p.kept)
	for {
		o := p.now.Load()
		err := p.watch(life, o)
		if life.Err() != nil {
			return
		}
		if p.gate != nil {
			o.end() // ends a write that waits, for which finish does
		}
		o.finish(err)
		o.end()
		var stuck *refusing
		var next *outlet
		if errors.As(err, &stuck) {
			p.index = slices.Index(p.conn.addresses, o.address) + 1 // it may be the node
			next, _ = p.connect(life)                               // without the pause; else as for any that is lost
		}
		if next == nil {
			if next, err = again(life, p.conn, p.connect); err != nil {
				o.giveUp(err)
				<-life.Done()
				return
			}
		}
		if next == nil {
			return
		}
		next.inherit(o)
		p.now.Store(next)
		if stuck == nil {
			p.conn.run.Tell("reconnect", p.name+" to "+next.address)
		} else {
			p.conn.run.Tell("reopen", fmt.Sprintf("%s to %s, after %d refusals of %s and no confirmation in %v", p.name, next.address, stuck.refused, stuck.destination, stuck.span))
		}
	}
}

// watch returns why a channel ended, or nil when life did.
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

// again tries to connect until it is done, and gives up when it is of no use or
// after reconnect-for. Both results are nil when life is over.
func again[T any](life context.Context, c *conn, connect func(context.Context) (*T, error)) (*T, error) {
	ctx, cancel := context.WithTimeout(life, c.cfg.ReconnectFor)
	defer cancel()
	var last error
	for retry.Pause(ctx, c.cfg.ReconnectWait) {
		t, err := connect(ctx)
		if err == nil {
			return t, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if errors.Is(err, driver.ErrUnsupported) {
			return nil, err // it does not exist any more
		}
	}
	if life.Err() != nil {
		return nil, nil
	}
	if last == nil {
		last = driver.ErrDisconnected
	}
	return nil, fmt.Errorf("%w: not connected again within %v: %w", driver.ErrDisconnected, c.cfg.ReconnectFor, last)
}

// Publish implements driver.Producer. The payload is copied, or with the client's own
// publisher written, before it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	p.outstanding.Add(1)
	if err := p.publish(ctx, m); err != nil {
		p.complete(m, err)
	}
}

func (p *producer) publish(ctx context.Context, m *driver.Message) error {
	if p.closed {
		return driver.ErrClosed
	}
	at, err := p.places.Of(ctx, m)
	if err != nil {
		return err
	}
	if p.gate != nil {
		p.gate.Enter(ctx)
		defer p.gate.Leave()
	}
	return p.now.Load().publish(ctx, at, m)
}

// complete completes a message.
func (p *producer) complete(m *driver.Message, err error) {
	p.done.Complete(m, err)
	p.outstanding.Done(1)
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error { return p.outstanding.Wait(ctx) }

// Close implements driver.Producer. It waits for confirmations of what is in flight, at
// most 2 s, and as long for the end of the connection.
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	if p.gate != nil {
		p.gate.Close()
	}
	wait, cancel := context.WithTimeout(ctx, closeWait)
	_ = p.Flush(wait) // what is left fails below
	cancel()
	p.stop()
	<-p.kept
	o := p.now.Load()
	o.finish(driver.ErrClosed)
	o.end()
	return nil
}
