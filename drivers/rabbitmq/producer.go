package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
)

// closeWait is how long Close waits for confirmations under way.
const closeWait = 2 * time.Second

// A producer publishes on one channel of a connection of its own.
type producer struct {
	conn   *conn
	name   string
	index  int
	done   driver.Completer
	places map[string]place // by destination
	mode   uint8            // delivery mode

	now         atomic.Pointer[outlet] // the latest
	outstanding atomic.Int64           // published and not completed
	idle        chan struct{}          // has a token after outstanding fell to 0
	stop        context.CancelFunc
	kept        chan struct{} // closed when keep has returned
	closed      bool          // touched by the publishing goroutine only

	// By the client's own publisher, nil and 0 otherwise.
	gate *gate.Gate
	room int // for what the client tells
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		conn: c, name: "producer " + strconv.Itoa(spec.Index), index: spec.Index, done: done, mode: client.Transient,
		places: map[string]place{}, idle: make(chan struct{}, 1), kept: make(chan struct{}),
	}
	if c.cfg.DeliveryMode == persistent {
		p.mode = client.Persistent
	}
	for _, d := range spec.Destinations {
		at, err := c.place(d)
		if err == nil {
			err = c.there(ctx, d, at)
		}
		if err != nil {
			return nil, fmt.Errorf("rabbitmq: %s: destination %s: %w", p.name, d, err)
		}
		p.places[d] = at
	}
	if err := c.fits(ctx, spec.Largest); err != nil {
		return nil, fmt.Errorf("rabbitmq: %s: %w", p.name, err)
	}
	if c.cfg.ByVendor() {
		p.room = max(spec.InFlight, leastRoom)
		p.gate = gate.New(func() { p.now.Load().kill() })
	}
	o, err := p.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %s: %w", p.name, err)
	}
	p.now.Store(o)
	life, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.keep(life)
	return p, nil
}

// fits tries whether the server takes messages of a size: it does not tell its
// limit. The one sent goes to a queue that is not there, and vanishes.
func (c *conn) fits(ctx context.Context, size int) error {
	if size == 0 {
		return nil
	}
	err := c.ask(ctx, func(ch *client.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		over := ch.NotifyClose(make(chan *client.Error, 1)) // before: a channel that is over tells nobody why
		sent, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", name("weir", c.run.ID)+".none", false, false, client.Publishing{Body: make([]byte, size)})
		if err != nil {
			return err
		}
		select {
		case <-sent.Done():
			if sent.Acked() {
				return nil
			}
			return closing(<-over)
		case e := <-over:
			return closing(e)
		}
	})
	if errors.Is(err, driver.ErrTooLarge) || errors.Is(err, driver.ErrUnreachable) {
		return err
	}
	return nil // it may not publish there
}

// closing is a channel's end as an error.
func closing(e *client.Error) error {
	if e == nil {
		return client.ErrClosed
	}
	return e
}

// An outlet is one connection of a producer, and what was sent on it and is not
// confirmed.
type outlet struct {
	*link
	producer *producer
	channel  *client.Channel
	over     chan *client.Error // the channel's end
	confirms bool
	told     chan struct{} // closed when hear has returned; nil: it is not used

	// write is held while a message is written: until then its bytes are not the
	// caller's again, whatever becomes of the connection.
	write sync.Mutex

	mu      sync.Mutex
	sent    map[uint64]*driver.Message // by delivery tag
	low     uint64                     // the lowest tag that may be in sent
	next    uint64
	ends    []uint64           // without confirms: bytes of the wire up to the end of each message from low on
	back    map[uint64]error   // messages that came back, and will be confirmed
	streaks map[string]*streak // by destination
	final   error              // not nil: nothing is sent any more

	taking sync.Mutex        // without confirms: held by wrote, which two goroutines call
	ready  []*driver.Message // of take
}

// connect opens a connection and a channel, and looks for what is published to.
func (p *producer) connect(ctx context.Context) (*outlet, error) {
	o := &outlet{producer: p, confirms: p.conn.cfg.Confirm, sent: map[uint64]*driver.Message{}, low: 1, next: 1, back: map[uint64]error{}, streaks: map[string]*streak{}}
	below := layer(newPlain)
	switch {
	case p.gate != nil:
	case o.confirms:
		below = overheard(o, nil)
	default:
		below = overheard(o, o.wrote)
	}
	l, err := p.conn.reach(ctx, p.name, p.index, below)
	if err != nil {
		return nil, err
	}
	o.link = l
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	err = func() error {
		for _, at := range p.places {
			ch, err := l.Channel()
			if err == nil {
				if err = p.conn.see(ch, at); err == nil {
					err = ch.Close()
				}
			}
			if err != nil {
				return err
			}
		}
		if o.channel, err = l.Channel(); err != nil {
			return err
		}
		if o.confirms {
			err = o.channel.Confirm(false)
		}
		return err
	}()
	if err != nil {
		l.end()
		if ctx.Err() != nil {
			return nil, unreachable(ctx.Err())
		}
		return nil, meaning(err)
	}
	o.over = o.channel.NotifyClose(make(chan *client.Error, 1))
	if p.gate != nil {
		o.listen(p.room)
	}
	return o, nil
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
		if o.told != nil {
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
				o.mu.Lock()
				o.final = err
				o.mu.Unlock()
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
			p.conn.event("reconnect", p.name+" to "+next.address)
		} else {
			p.conn.event("reopen", fmt.Sprintf("%s to %s, after %d refusals of %s and no confirmation in %v", p.name, next.address, stuck.refused, stuck.destination, stuck.span))
		}
	}
}

// watch returns why a channel ended, or nil when life did.
func (p *producer) watch(life context.Context, o *outlet) error {
	blocked := o.blocked
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
		case b, ok := <-blocked:
			if !ok {
				blocked = nil
				continue
			}
			p.conn.blocked(p.name, b)
		case e := <-o.over:
			return lost(e)
		}
	}
}

// blocked tells of the server having stopped to read from a connection.
func (c *conn) blocked(who string, b client.Blocking) {
	if b.Active {
		c.event("blocked", who+": the server reads nothing more: "+b.Reason)
		return
	}
	c.event("unblocked", who)
}

// again tries to connect until it is done, and gives up when it is of no use or
// after reconnect-for. Both results are nil when life is over.
func again[T any](life context.Context, c *conn, connect func(context.Context) (*T, error)) (*T, error) {
	ctx, cancel := context.WithTimeout(life, c.cfg.ReconnectFor)
	defer cancel()
	var last error
	for pause(ctx, c.cfg.ReconnectWait) {
		t, err := connect(ctx)
		if err == nil {
			return t, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if errors.Is(err, driver.ErrUnsupported) {
			return nil, err // it is not there any more
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

// Publish implements driver.Producer. The payload is copied, or by the client's own
// publisher written, before it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	p.outstanding.Add(1)
	at, known := p.places[m.Destination]
	var err error
	switch {
	case p.closed:
		err = driver.ErrClosed
	case ctx.Err() != nil:
		err = ctx.Err()
	case !known:
		err = fmt.Errorf("rabbitmq: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported)
	case p.gate != nil:
		p.gate.Enter(ctx)
		err = p.now.Load().publish(ctx, at, m)
		p.gate.Leave()
	default:
		err = p.now.Load().publish(ctx, at, m)
	}
	if err != nil {
		p.complete(m, err)
	}
}

// publish hands a message to the client. An error says that it is still the
// caller's to complete.
func (o *outlet) publish(ctx context.Context, at place, m *driver.Message) error {
	o.write.Lock()
	defer o.write.Unlock()
	o.mu.Lock()
	if o.final != nil {
		o.mu.Unlock()
		return o.final
	}
	tag := o.next
	o.next++
	o.sent[tag] = m
	o.mu.Unlock()
	// Where this fails the channel is over, and its messages end with it: this one was
	// not written, whatever else was.
	err := o.channel.PublishWithContext(context.Background(), at.exchange, at.key, o.producer.conn.cfg.Mandatory, false,
		client.Publishing{DeliveryMode: o.producer.mode, Body: m.Payload})
	switch {
	case err == nil && !o.confirms:
		o.written(o.wire.taken()) // a plain wire has taken 0 bytes, and written 0: it is done
	case err != nil && o.told != nil && ctx.Err() != nil:
		o.mu.Lock()
		defer o.mu.Unlock()
		if m, _ := o.remove(tag); m != nil {
			return ctx.Err()
		}
	}
	return nil
}

// written notes where a message that was taken by the wire ends there.
func (o *outlet) written(end uint64) {
	o.mu.Lock()
	o.ends = append(o.ends, end)
	o.mu.Unlock()
	o.wrote(o.wire.out.Load())
}

// wrote completes the messages that the operating system has taken.
func (o *outlet) wrote(out uint64) {
	o.taking.Lock()
	defer o.taking.Unlock()
	o.mu.Lock()
	n := 0
	for n < len(o.ends) && o.ends[n] <= out {
		n++
	}
	if n == 0 {
		o.mu.Unlock()
		return
	}
	last := o.low + uint64(n) - 1
	o.ends = append(o.ends[:0], o.ends[n:]...)
	o.mu.Unlock()
	o.take(last, true, nil)
}

// confirmed implements listener.
func (o *outlet) confirmed(tag uint64, multiple, ok bool) {
	var err error
	if !ok {
		err = errRefused
	}
	o.take(tag, multiple, err)
}

// errRefused is what a broker's basic.nack means: its queue is full and rejects, or
// it failed.
var errRefused = fmt.Errorf("%w: refused by the server (basic.nack)", driver.ErrOverloaded)

// take completes a message, or all up to it.
func (o *outlet) take(tag uint64, multiple bool, err error) {
	o.mu.Lock()
	if tag >= o.next { // of what was not sent: it confirms nothing
		o.mu.Unlock()
		return
	}
	if !multiple {
		m, bad := o.remove(tag)
		if m != nil {
			o.fated(m.Destination, err != nil)
		}
		for o.low < o.next && o.sent[o.low] == nil {
			o.low++ // now, and not for all of them at once
		}
		o.mu.Unlock()
		if m != nil {
			o.producer.complete(m, errors.Join(err, bad))
		}
		return
	}
	ready := o.ready[:0]
	var bad []error
	for ; o.low <= tag; o.low++ {
		if m, e := o.remove(o.low); m != nil {
			o.fated(m.Destination, err != nil)
			if e != nil && bad == nil {
				bad = make([]error, len(ready), cap(ready)+1)
			}
			if ready = append(ready, m); bad != nil {
				bad = append(bad, e)
			}
		}
	}
	o.mu.Unlock()
	for i, m := range ready {
		e := err
		if bad != nil && bad[i] != nil {
			e = bad[i]
		}
		o.producer.complete(m, e)
		ready[i] = nil
	}
	o.ready = ready
}

// remove takes one message out, and what it came back with. mu is held.
func (o *outlet) remove(tag uint64) (*driver.Message, error) {
	m, ok := o.sent[tag]
	if !ok {
		return nil, nil
	}
	delete(o.sent, tag)
	if len(o.back) == 0 {
		return m, nil
	}
	err := o.back[tag]
	delete(o.back, tag)
	return m, err
}

// returned implements listener. The server does not say which message it was: it is
// the first with these bytes.
func (o *outlet) returned(code uint16, body []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.confirms {
		// It has completed.
		o.producer.conn.event("returned", o.producer.name+": messages that no queue took come back")
		return
	}
	for tag := o.low; tag < o.next; tag++ {
		if m := o.sent[tag]; m != nil && o.back[tag] == nil && bytes.Equal(m.Payload, body) {
			o.back[tag] = fmt.Errorf("%w: no queue took it (basic.return, %d)", driver.ErrUnsupported, code)
			return
		}
	}
}

func (o *outlet) delivered() {}
func (o *outlet) reading()   {}

// finish completes what is not confirmed, and all that comes. It waits until
// nothing is being written.
func (o *outlet) finish(err error) {
	o.write.Lock()
	defer o.write.Unlock()
	o.mu.Lock()
	if o.final == nil {
		if o.final = err; errors.Is(err, driver.ErrTooLarge) {
			o.final = driver.ErrDisconnected // that was another message
		}
	}
	left := make([]*driver.Message, 0, len(o.sent))
	for tag := o.low; tag < o.next; tag++ {
		if m, _ := o.remove(tag); m != nil {
			left = append(left, m)
		}
	}
	o.low, o.ends = o.next, nil
	o.mu.Unlock()
	var size string
	if found := oversize.FindStringSubmatch(err.Error()); found != nil {
		size = found[1]
	}
	for _, m := range left {
		e := err
		if size != "" && strconv.Itoa(len(m.Payload)) != size {
			e = fmt.Errorf("%w: the server closed the channel for another message's size", driver.ErrDisconnected)
		}
		o.producer.complete(m, e)
	}
}

// complete completes a message.
func (p *producer) complete(m *driver.Message, err error) {
	p.done.Complete(m, err)
	if p.outstanding.Add(-1) == 0 {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error {
	for p.outstanding.Load() > 0 {
		select {
		case <-p.idle: // perhaps from long ago: look again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close implements driver.Producer. It waits for confirmations under way, at most
// 2 s, and as long for the end of the connection.
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
