package jetstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// closeWait bounds how long Close waits for acknowledgements under way.
const closeWait = 2 * time.Second

// inFlight is the size of a producer's table where the scenario leaves it open.
const inFlight = 10_000

// A producer publishes on a connection of its own.
type producer struct {
	link     *natsconn.Link
	done     driver.Completer
	subjects map[string]string
	gate     *gate.Gate
	acks     *natsconn.Replies[*driver.Message]
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{done: done, subjects: map[string]string{}}
	for _, d := range spec.Destinations {
		t, err := c.target(ctx, d)
		if err == nil {
			err = t.publishable(spec.Largest)
		}
		if err != nil {
			return nil, fmt.Errorf("jetstream: destination %s: %w", d, err)
		}
		p.subjects[d] = t.subject
	}
	if c.cfg.ByVendor() {
		return c.vendorProducer(ctx, spec, p.subjects, done)
	}
	// The table is made on the connection, whose events need the table.
	made := make(chan struct{})
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, fmt.Sprintf("producer %d", spec.Index), natsconn.Events{
		Lost: func(err error) {
			<-made
			if p.acks != nil {
				p.acks.Lost(p.link.Epoch(), err)
			}
		},
	})
	if err != nil {
		close(made)
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	if err := link.CheckSize(spec.Largest); err != nil {
		close(made)
		_ = link.Close(ctx)
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	size := spec.InFlight
	if size <= 0 {
		size = inFlight
	}
	p.link, p.gate = link, gate.New(link.Kill)
	p.acks, err = natsconn.NewReplies(link, size, c.cfg.AckTimeout, p.acknowledged)
	close(made)
	for _, d := range spec.Destinations {
		if err == nil {
			err = reachable(ctx, link, p.subjects[d])
		}
	}
	if err != nil {
		if p.acks != nil {
			p.acks.Close()
		}
		_ = link.Close(ctx)
		return nil, fmt.Errorf("jetstream: %w", cause(err))
	}
	return p, nil
}

// Publish implements driver.Producer. The payload is copied by the client before
// it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	if err := ctx.Err(); err != nil {
		p.done.Complete(m, err)
		return
	}
	subject, ok := p.subjects[m.Destination]
	if !ok {
		p.done.Complete(m, fmt.Errorf("jetstream: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported))
		return
	}
	payload := m.Payload
	reply, ticket, err := p.acks.Take(ctx, m, p.link.Epoch())
	if err != nil {
		p.done.Complete(m, err)
		return
	}
	p.gate.Enter(ctx)
	err = p.link.PublishRequest(subject, reply, payload)
	p.gate.Leave()
	if err == nil || !p.acks.Drop(ticket) {
		return
	}
	if ctx.Err() != nil {
		p.done.Complete(m, fmt.Errorf("%w: %w", ctx.Err(), err))
		return
	}
	p.done.Complete(m, cause(err))
}

// acknowledged completes m as the server, or the table, says.
func (p *producer) acknowledged(m *driver.Message, reply *nats.Msg, err error) {
	if err == nil {
		err = pubAck(reply)
	}
	p.done.Complete(m, err)
}

// stored begins every acknowledgement of a stored message (server/stream.go makes
// it from a template); one of an error begins with its error.
var stored = []byte(`{"stream":`)

// pubAck returns the error in an acknowledgement.
func pubAck(reply *nats.Msg) error {
	if bytes.HasPrefix(reply.Data, stored) {
		return nil
	}
	if err := refused(reply); err != nil {
		return err
	}
	var ack struct {
		Error  *jetstream.APIError `json:"error"`
		Stream string              `json:"stream"`
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return fmt.Errorf("jetstream: acknowledgement is not readable: %w", err)
	}
	if ack.Error != nil {
		return cause(ack.Error)
	}
	if ack.Stream == "" {
		return jetstream.ErrInvalidJSAck
	}
	return nil
}

// refused returns the error of a reply that is the server's own: nobody took the
// request.
func refused(m *nats.Msg) error {
	if natsconn.Nobody(m) {
		return fmt.Errorf("no stream or consumer answers: %w", nats.ErrNoResponders)
	}
	return nil
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error { return p.acks.Wait(ctx) }

// Close implements driver.Producer. It waits for acknowledgements under way, at
// most 2 s.
func (p *producer) Close(ctx context.Context) error {
	p.gate.Close()
	wait, cancel := context.WithTimeout(ctx, closeWait)
	_ = p.acks.Wait(wait) // what is left ends with ErrClosed
	cancel()
	p.acks.Close()
	return p.link.Close(ctx)
}
