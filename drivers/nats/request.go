package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// errNobody is the error of a request without a responder.
var errNobody = errors.New("no responder answers requests there")

// A requester is a producer of requests.
type requester struct {
	*natsconn.Publisher
	ends *natsconn.Ends
}

// Requester connects. Replies arrive on the same connection.
func (c *conn) Requester(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	subjects, err := c.targets(&spec)
	if err != nil {
		return nil, err
	}
	p, err := natsconn.NewPublisher(ctx, &c.cfg.Options, c.run, natsconn.Publishing{
		Name: fmt.Sprintf("requester %d", spec.Index), Spec: spec, Subjects: subjects, Done: done,
		Timeout: c.cfg.RequestTimeout, Room: int(c.cfg.PendingBytes), Answered: c.answered,
		Only: natsconn.Responds, // one consumer of the subscription answers
	})
	if err != nil {
		return nil, err
	}
	c.requests.Store(true)
	c.ends.Producers.Note(p.Link, "")
	return requester{p, &c.ends}, nil
}

// answered handles a reply to m, or returns why there is none.
func (c *conn) answered(m *driver.Message, reply *nats.Msg, err error) error {
	switch {
	case err == nil && natsconn.NoResponders(reply):
		return fmt.Errorf("%w: %w", errNobody, nats.ErrNoResponders)
	case err == nil:
		m.Reply = reply.Data
	case errors.Is(err, driver.ErrTimeout):
		return fmt.Errorf("no reply within %v: %w", c.cfg.RequestTimeout, err)
	}
	return err
}

func (q requester) Close(ctx context.Context) error {
	q.ends.Producers.Forget(q.Link)
	return q.Publisher.Close(ctx)
}

// Responder connects.
func (c *conn) Responder(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x, err := c.consumer(ctx, &spec)
	if err != nil {
		return nil, err
	}
	x.answers = gate.New(x.Kill)
	return x, nil
}

// answer sends a request's bytes back. It may wait for the network until ctx ends.
func (x *consumer) answer(ctx context.Context, m *nats.Msg) error {
	if m.Reply == "" {
		return nil // not a request
	}
	x.answers.Enter(ctx)
	defer x.answers.Leave()
	if err := x.Publish(m.Reply, m.Data); err != nil {
		return fmt.Errorf("answering a request: %w", natsconn.Cause(err))
	}
	return nil
}
