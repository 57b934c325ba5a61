package natsstreaming

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/stan.go"
	"github.com/nats-io/stan.go/pb"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// closeWait bounds how long Close waits for acknowledgements under way.
const closeWait = 2 * time.Second

// A producer publishes in a session on a connection of its own.
type producer struct {
	conn     *conn
	name     string // in events
	id       string // client ID
	inFlight int
	link     *natsconn.Link
	done     driver.Completer
	channels map[string]string // by destination
	gate     *gate.Gate

	current atomic.Pointer[session] // nil while it is made again
	broken  chan struct{}           // holds a token after the session, or the connection, may be lost
	closing atomic.Bool
	open    atomic.Int64  // published and not completed
	idle    chan struct{} // holds a token after open fell to 0
	end     context.CancelFunc
	joined  sync.WaitGroup
}

// A pending message is in the client's hands. There is one to each pooled message.
type pending struct {
	p     *producer
	s     *session
	m     *driver.Message
	ended func(guid string, err error) // acknowledged, made once
}

// Producer connects, and makes a session.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		conn: c, name: fmt.Sprintf("producer %d", spec.Index), id: c.clientID(), inFlight: spec.InFlight, done: done,
		channels: map[string]string{}, broken: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
	if p.inFlight <= 0 {
		p.inFlight = stan.DefaultMaxPubAcksInflight
	}
	if spec.Largest > MaxPayload {
		return nil, fmt.Errorf("nats-streaming: %s: %w", p.name, tooLarge(spec.Largest))
	}
	largest := 0 // with what the protocol adds
	for _, d := range spec.Destinations {
		name, err := c.channel(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("nats-streaming: %s: destination %s: %w", p.name, d, err)
		}
		p.channels[d] = name
		if spec.Largest > 0 {
			largest = max(largest, spec.Largest+envelope(p.id, name))
		}
	}
	var err error
	p.link, err = natsconn.Connect(ctx, &c.cfg.Options, c.run, p.name, natsconn.Events{Lost: func(error) { p.lost(nil) }})
	if err != nil {
		return nil, fmt.Errorf("nats-streaming: %s: %w", p.name, err)
	}
	if err = p.link.CheckSize(largest); err == nil {
		var s *session
		if s, err = c.cfg.interruptible(ctx, p.link, p.id, p.inFlight, p.sessionLost); err == nil {
			p.current.Store(s)
		}
	}
	if err != nil {
		_ = p.link.Close(ctx)
		return nil, fmt.Errorf("nats-streaming: %s: %w", p.name, err)
	}
	p.gate = gate.New(p.link.Kill)
	life, end := context.WithCancel(context.Background())
	p.end = end
	p.joined.Go(func() { p.keep(life) })
	return p, nil
}

// envelope returns how many bytes the protocol adds to a message, at most.
func envelope(id, channel string) int {
	unique := "1234567890123456789012"
	m := pb.PubMsg{ClientID: id, Guid: unique, Subject: channel, ConnID: []byte(unique), Data: make([]byte, 0)}
	return m.Size() + 2 + 5 // the data's tag and length, which Size leaves out
}

// tooLarge is the error of a message beyond MaxPayload.
func tooLarge(size int) error {
	return fmt.Errorf("%w: %s, this driver takes up to %s", driver.ErrTooLarge, driver.FormatSize(int64(size)), driver.FormatSize(MaxPayload))
}

// Publish implements driver.Producer. The client copies the payload before it
// returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	if err := ctx.Err(); err != nil {
		p.done.Complete(m, err)
		return
	}
	name, ok := p.channels[m.Destination]
	switch {
	case !ok:
		p.done.Complete(m, fmt.Errorf("nats-streaming: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported))
		return
	case len(m.Payload) > MaxPayload:
		p.done.Complete(m, tooLarge(len(m.Payload)))
		return
	}
	s := p.current.Load()
	if s == nil {
		p.done.Complete(m, errNoSession)
		return
	}
	w, ok := m.Slot.(*pending)
	if !ok {
		w = &pending{m: m}
		w.ended = w.acknowledged
		m.Slot = w
	}
	w.p, w.s = p, s
	p.open.Add(1)
	p.gate.Enter(ctx)
	_, err := s.PublishAsync(name, m.Payload, w.ended)
	p.gate.Leave()
	switch { // with an error the client has not taken the message
	case err == nil:
	case ctx.Err() != nil:
		p.complete(m, fmt.Errorf("%w: %w", ctx.Err(), err))
	default:
		if errors.Is(err, stan.ErrConnectionClosed) {
			p.lost(s) // it may have been given up before it was the current one
		}
		p.complete(m, p.why(err))
	}
}

// acknowledged is what the client calls once for each message that it has taken,
// on the goroutine that reads acknowledgements, a timer's or one of its own.
func (w *pending) acknowledged(_ string, err error) {
	if err != nil {
		if err.Error() == unknownPublisher {
			w.p.lost(w.s)
		}
		err = w.p.why(err)
	}
	w.p.complete(w.m, err)
}

// why is cause, for a session that may be ending because the producer is.
func (p *producer) why(err error) error {
	if p.closing.Load() {
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	return cause(err)
}

func (p *producer) complete(m *driver.Message, err error) {
	p.done.Complete(m, err)
	if p.open.Add(-1) == 0 {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// lost has keep look at the session. s is one that is known to be over; nil: the
// connection broke.
func (p *producer) lost(s *session) {
	if s != nil {
		s.over.Store(true)
	}
	select {
	case p.broken <- struct{}{}:
	default:
	}
}

// sessionLost is what the client calls when it has given a session up.
func (p *producer) sessionLost(of stan.Conn, _ error) {
	if s := p.current.Load(); s != nil && s.Conn == of {
		p.lost(s)
	}
}

// keep makes the session again when it is lost, until ctx ends. What was under way
// in the old one fails: its acknowledgements may have been sent to nobody.
func (p *producer) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.broken:
		}
		s := p.current.Load()
		if s.epoch == p.link.Epoch() && !s.over.Load() {
			continue // it was made since
		}
		p.current.Store(nil)
		_ = s.Close() // the server may not hear it; the next has the same client ID
		for s = p.again(); s == nil; s = p.again() {
			if !pause(ctx, p.conn.cfg.ReconnectWait) {
				return
			}
		}
		p.current.Store(s)
		if s.epoch != p.link.Epoch() {
			p.lost(nil) // it broke meanwhile
		}
		p.conn.event(p.name)
	}
}

// again tries to make the session again; nil is that it could not be.
func (p *producer) again() *session {
	if !natsconn.Up(p.link.Epoch()) {
		return nil
	}
	s, err := p.conn.cfg.newSession(p.link, p.id, p.inFlight, p.sessionLost)
	if err != nil {
		p.conn.warn(p.name, err)
		return nil
	}
	return s
}

// event tells that a session was made again.
func (c *conn) event(name string) {
	if c.run.Event != nil {
		c.run.Event("reconnect", name+": a new session")
	}
}

// warn logs that an attempt to make one failed.
func (c *conn) warn(name string, err error) {
	if c.run.Log != nil {
		c.run.Log.Warn("no session", "connection", name, "error", err)
	}
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error {
	for p.open.Load() > 0 {
		select {
		case <-p.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close implements driver.Producer. It waits for acknowledgements under way, at
// most 2 s, and for the server to take the end of the session, at most
// request-timeout.
func (p *producer) Close(ctx context.Context) error {
	p.gate.Close()
	wait, cancel := context.WithTimeout(ctx, closeWait)
	_ = p.Flush(wait) // what is left ends with the session
	cancel()
	p.closing.Store(true)
	p.end()
	p.joined.Wait()
	stop := context.AfterFunc(ctx, func() { _ = p.link.Close(ctx) }) // nothing else ends the client's waiting
	defer stop()
	if s := p.current.Swap(nil); s != nil {
		_ = s.Close()
	}
	_ = p.Flush(context.Background()) // the client has told all ends, some on a goroutine of its own
	return p.link.Close(ctx)
}
