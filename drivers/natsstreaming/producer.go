package natsstreaming

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nats-io/stan.go"
	"github.com/nats-io/stan.go/pb"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A producer publishes in a session on its own connection.
type producer struct {
	*blocking.Outgoing
	conn     *conn
	id       string // client ID
	inFlight int
	link     *natsconn.Link
	channels *driver.Targets[string]
	gate     *gate.Gate

	current atomic.Pointer[session] // nil while it is being replaced
	broken  chan struct{}           // holds a token after the session, or the connection, may be lost
	stop    context.CancelFunc
	joined  sync.WaitGroup
}

// A pending message is in the client. Each pooled message has one.
type pending struct {
	p     *producer
	s     *session
	m     *driver.Message
	ended func(guid string, err error) // acknowledged, created once
}

// Producer connects and starts a session.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{Outgoing: blocking.NewOutgoing(done), conn: c, id: c.clientID(), inFlight: spec.InFlight, broken: make(chan struct{}, 1)}
	if p.inFlight <= 0 {
		p.inFlight = stan.DefaultMaxPubAcksInflight
	}
	largest := 0 // including the protocol's overhead
	var err error
	p.channels, err = driver.NewTargets(spec.Destinations, func(d string) (string, error) {
		name, err := c.channel(ctx, d)
		if spec.Largest > 0 {
			largest = max(largest, spec.Largest+envelope(p.id, name))
		}
		return name, err
	})
	if err != nil {
		return nil, err
	}
	p.channels.Limit(MaxPayload, "the driver's limit")
	p.link, err = natsconn.Connect(ctx, &c.cfg.Options, c.run, spec.Name(), natsconn.Events{Lost: func(error) { p.lost(nil) }})
	if err != nil {
		return nil, err
	}
	var s *session
	if err = p.link.CheckSize(largest); err == nil {
		s, err = c.cfg.interruptible(ctx, p.link, p.id, p.inFlight, p.sessionLost)
	}
	if err != nil {
		_ = p.link.Close(ctx)
		return nil, err
	}
	p.current.Store(s)
	p.gate = gate.New(p.link.Kill)
	life, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.joined.Go(func() { p.keep(life) })
	return p, nil
}

// envelope returns the maximum number of bytes that the protocol adds to a message.
func envelope(id, channel string) int {
	unique := "1234567890123456789012"
	m := pb.PubMsg{ClientID: id, Guid: unique, Subject: channel, ConnID: []byte(unique), Data: make([]byte, 0)}
	return m.Size() + 2 + 5 // the data's tag and length, which Size omits
}

// Publish implements driver.Producer. The client copies the payload before it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	name, err := p.channels.Of(ctx, m)
	s := p.current.Load()
	if err == nil && s == nil {
		err = errNoSession
	}
	if !p.Admit(m, err) {
		return
	}
	w, ok := m.Slot.(*pending)
	if !ok {
		w = &pending{m: m}
		w.ended = w.acknowledged
		m.Slot = w
	}
	w.p, w.s = p, s
	p.gate.Enter(ctx)
	_, err = s.PublishAsync(name, m.Payload, w.ended)
	p.gate.Leave()
	switch { // on error, the client has not accepted the message
	case err == nil:
	case ctx.Err() != nil:
		p.Complete(m, fmt.Errorf("%w: %w", ctx.Err(), err))
	default:
		if errors.Is(err, stan.ErrConnectionClosed) {
			p.lost(s) // it may have been given up before it became current
		}
		p.Complete(m, words.Cause(err))
	}
}

// acknowledged is the client's callback, called once for each accepted message, on the goroutine
// that reads acknowledgements, a timer's or one of its own.
func (w *pending) acknowledged(_ string, err error) {
	if err != nil {
		if err.Error() == unknownPublisher {
			w.p.lost(w.s)
		}
		err = words.Cause(err)
	}
	w.p.Complete(w.m, err)
}

// lost makes keep check the session. s is known to be over; nil: the connection broke.
func (p *producer) lost(s *session) {
	if s != nil {
		s.over.Store(true)
	}
	select {
	case p.broken <- struct{}{}:
	default:
	}
}

// sessionLost is the client's callback when it has given up a session.
func (p *producer) sessionLost(of stan.Conn, _ error) {
	if s := p.current.Load(); s != nil && s.Conn == of {
		p.lost(s)
	}
}

// keep replaces the session when it is lost, until ctx ends. Messages in flight in the old one
// fail, because their acknowledgements may have been lost.
func (p *producer) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.broken:
		}
		s := p.current.Load()
		if s.epoch == p.link.Epoch() && !s.over.Load() {
			continue // already replaced
		}
		p.current.Store(nil)
		_ = s.Close() // the server may miss it; the next session has the same client ID
		for s = p.again(); s == nil; s = p.again() {
			if !retry.Pause(ctx, p.conn.cfg.ReconnectWait) {
				return
			}
		}
		p.current.Store(s)
		if s.epoch != p.link.Epoch() {
			p.lost(nil) // it broke meanwhile
		}
		p.conn.run.Tell(driver.Reconnect, p.link.Name+": a new session")
	}
}

// again tries to start the session again; nil means failure.
func (p *producer) again() *session {
	if !p.link.Up() {
		return nil
	}
	s, err := p.conn.cfg.newSession(p.link, p.id, p.inFlight, p.sessionLost)
	if err != nil {
		p.conn.run.Logger().Warn("no session", "connection", p.link.Name, "error", err)
	}
	return s
}

// Close implements driver.Producer. It waits at most 2 s for outstanding acknowledgements, and at
// most request-timeout for the server to end the session.
func (p *producer) Close(ctx context.Context) error {
	p.gate.Close()
	return p.End(ctx, func(bool) error { // the rest ends with the session
		p.stop()
		p.joined.Wait()
		stop := context.AfterFunc(ctx, func() { _ = p.link.Close(ctx) }) // nothing else interrupts the client
		defer stop()
		if s := p.current.Swap(nil); s != nil {
			_ = s.Close()
		}
		_ = p.Flush(context.Background()) // the client has reported all ends, some on separate goroutines
		return p.link.Close(ctx)
	})
}
