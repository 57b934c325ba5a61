package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/inflight"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// ClientPath implements driver.Labelled.
func (c *Config) ClientPath() string {
	if c.Path == byVendor {
		return "the client's own publisher (PublishMsgAsync)"
	}
	return "weir's own publisher over the client's connection"
}

// A vendorProducer uses the client's asynchronous publisher, including its retries.
type vendorProducer struct {
	natsconn.Publishing
	*inflight.Set[*nats.Msg]
	link *natsconn.Link
	js   jetstream.JetStream
	gate *gate.Gate
	room chan struct{} // holds a token per message in flight
}

// vendorProducer connects, and fails as Producer does.
func (c *conn) vendorProducer(ctx context.Context, is natsconn.Publishing) (driver.Producer, error) {
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, is.Name, natsconn.Events{})
	if err != nil {
		return nil, err
	}
	size := is.Spec.Room()
	p := &vendorProducer{
		Publishing: is, Set: inflight.New[*nats.Msg](is.Done),
		link: link, gate: gate.New(link.Kill), room: make(chan struct{}, size),
	}
	if err = link.CheckSize(is.Spec.Largest); err == nil {
		err = reachable(ctx, link, is.Subjects)
	}
	if err == nil {
		p.js, err = jetstream.New(link.Conn,
			// More than room holds, so the publisher never waits for its own limit.
			jetstream.WithPublishAsyncMaxPending(2*size),
			jetstream.WithPublishAsyncTimeout(is.Timeout),
			jetstream.WithPublishAsyncAckHandler(func(_ jetstream.JetStream, m *nats.Msg, _ *jetstream.PubAck) { p.end(m, nil) }),
			jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { p.end(m, vendorCause(err)) }))
	}
	if err != nil {
		_ = link.Close(ctx)
		return nil, words.Cause(err)
	}
	return p, nil
}

// vendorCause maps errors that only the client's publisher returns to the contract's.
func vendorCause(err error) error {
	switch {
	case errors.Is(err, jetstream.ErrAsyncPublishTimeout):
		return fmt.Errorf("%w: %w", driver.ErrTimeout, err)
	case errors.Is(err, jetstream.ErrJetStreamPublisherClosed):
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	return words.Cause(err)
}

// Publish implements driver.Producer. The client gets a copy of the payload, because its own retry
// may read it after the message has completed.
func (p *vendorProducer) Publish(ctx context.Context, m *driver.Message) {
	subject, err := p.Subjects.Of(ctx, m)
	if err != nil {
		p.Done.Complete(m, err)
		return
	}
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		p.Done.Complete(m, ctx.Err())
		return
	}
	msg := &nats.Msg{Subject: subject, Data: bytes.Clone(m.Payload)}
	if !p.Begin(msg, m, nil) {
		<-p.room
		return
	}
	p.gate.Enter(ctx)
	_, err = p.js.PublishMsgAsync(msg)
	p.gate.Leave()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		p.end(msg, fmt.Errorf("%w: %w", ctx.Err(), err))
	default:
		p.end(msg, vendorCause(err))
	}
}

// end completes a message unless it has already completed.
func (p *vendorProducer) end(msg *nats.Msg, err error) {
	if p.Ended(msg, err) {
		<-p.room
	}
}

// Close implements driver.Producer. It waits at most 2 s for outstanding acknowledgements.
func (p *vendorProducer) Close(ctx context.Context) error {
	return p.Set.Close(ctx, func() error {
		p.gate.Close()
		// Close the connection first: unsubscribing on it could wait for the network.
		err := p.link.Close(ctx)
		p.js.CleanupPublisher()
		return err
	})
}

var _ driver.Labelled = (*Config)(nil)
