package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// ClientPath implements driver.Labelled.
func (c *Config) ClientPath() string {
	return c.Label("weir's own publisher over the client's connection", "PublishMsgAsync")
}

// PublishBlocks implements driver.Labelled.
func (c *Config) PublishBlocks() bool { return true }

// A vendorProducer publishes by the client's own asynchronous publisher, with the
// retries that it makes by itself.
type vendorProducer struct {
	link        *natsconn.Link
	js          jetstream.JetStream
	done        driver.Completer
	subjects    map[string]string
	gate        *gate.Gate
	room        chan struct{} // holds a token for each message under way
	outstanding *blocking.Outstanding

	mu     sync.Mutex
	sent   map[*nats.Msg]*driver.Message
	closed bool
}

// vendorProducer connects, and fails as Producer does.
func (c *conn) vendorProducer(ctx context.Context, spec driver.ProducerSpec, subjects map[string]string, done driver.Completer) (driver.Producer, error) {
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, fmt.Sprintf("producer %d", spec.Index), natsconn.Events{})
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	size := spec.InFlight
	if size <= 0 {
		size = inFlight
	}
	p := &vendorProducer{
		link: link, done: done, subjects: subjects, gate: gate.New(link.Kill),
		room: make(chan struct{}, size), outstanding: blocking.NewOutstanding(), sent: map[*nats.Msg]*driver.Message{},
	}
	err = link.CheckSize(spec.Largest)
	for _, d := range spec.Destinations {
		if err == nil {
			err = reachable(ctx, link, subjects[d])
		}
	}
	if err == nil {
		p.js, err = jetstream.New(link.Conn,
			// More than room has: the publisher never waits for its own.
			jetstream.WithPublishAsyncMaxPending(2*size),
			jetstream.WithPublishAsyncTimeout(c.cfg.AckTimeout),
			jetstream.WithPublishAsyncAckHandler(func(_ jetstream.JetStream, m *nats.Msg, _ *jetstream.PubAck) { p.end(m, nil) }),
			jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { p.end(m, vendorCause(err)) }))
	}
	if err != nil {
		_ = link.Close(ctx)
		return nil, fmt.Errorf("jetstream: %w", cause(err))
	}
	return p, nil
}

// vendorCause says in the contract's words what only the client's publisher says.
func vendorCause(err error) error {
	switch {
	case errors.Is(err, jetstream.ErrAsyncPublishTimeout):
		return fmt.Errorf("%w: %w", driver.ErrTimeout, err)
	case errors.Is(err, jetstream.ErrJetStreamPublisherClosed):
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	return cause(err)
}

// Publish implements driver.Producer. The client gets a copy of the payload,
// because a retry of its own may read it after the message has ended.
func (p *vendorProducer) Publish(ctx context.Context, m *driver.Message) {
	if err := ctx.Err(); err != nil {
		p.done.Complete(m, err)
		return
	}
	subject, ok := p.subjects[m.Destination]
	if !ok {
		p.done.Complete(m, fmt.Errorf("jetstream: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported))
		return
	}
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		p.done.Complete(m, ctx.Err())
		return
	}
	msg := &nats.Msg{Subject: subject, Data: bytes.Clone(m.Payload)}
	if !p.begin(msg, m) {
		<-p.room
		p.done.Complete(m, driver.ErrClosed)
		return
	}
	p.gate.Enter(ctx)
	_, err := p.js.PublishMsgAsync(msg)
	p.gate.Leave()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		p.end(msg, fmt.Errorf("%w: %w", ctx.Err(), err))
	default:
		p.end(msg, vendorCause(err))
	}
}

// begin notes a message under way, and reports whether the producer is open.
func (p *vendorProducer) begin(msg *nats.Msg, m *driver.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.outstanding.Add(1)
	p.sent[msg] = m
	return true
}

// end completes a message, unless it has ended.
func (p *vendorProducer) end(msg *nats.Msg, err error) {
	p.mu.Lock()
	m, ok := p.sent[msg]
	delete(p.sent, msg)
	p.mu.Unlock()
	if !ok {
		return
	}
	<-p.room
	p.done.Complete(m, err)
	p.outstanding.Done(1)
}

// Flush implements driver.Producer.
func (p *vendorProducer) Flush(ctx context.Context) error { return p.outstanding.Wait(ctx) }

// Close implements driver.Producer. It waits for acknowledgements under way, at
// most 2 s.
func (p *vendorProducer) Close(ctx context.Context) error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return nil
	}
	p.gate.Close()
	wait, cancel := context.WithTimeout(ctx, closeWait)
	_ = p.Flush(wait) // what is left ends with ErrClosed
	cancel()
	// The connection ends first: ending the subscription on it could wait for the network.
	err := p.link.Close(ctx)
	p.js.CleanupPublisher()
	p.mu.Lock()
	left := make([]*nats.Msg, 0, len(p.sent))
	for msg := range p.sent {
		left = append(left, msg)
	}
	p.mu.Unlock()
	for _, msg := range left {
		p.end(msg, driver.ErrClosed)
	}
	return err
}

var (
	_ driver.Labelled = (*Config)(nil)
	_ driver.Producer = (*vendorProducer)(nil)
)
