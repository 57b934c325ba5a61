package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// Bounds of a requester.
const (
	closeWait = 2 * time.Second // of Close, for replies under way
	inFlight  = 10_000          // size of the table where the scenario leaves it open
)

// errNobody is why a request fails that found no responder.
var errNobody = errors.New("no responder answers requests there")

// A requester is a producer of requests on a connection of its own, to which the
// replies come back: each to a subject of its own below one inbox, by whose last
// token the request is found.
type requester struct {
	link     *natsconn.Link
	done     driver.Completer
	subjects map[string]string
	gate     *gate.Gate
	replies  *natsconn.Replies[*driver.Message]
	timeout  time.Duration
	over     func()
}

// Requester connects.
func (c *conn) Requester(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	q := &requester{done: done, timeout: c.cfg.RequestTimeout}
	var err error
	if q.subjects, err = c.targets(spec); err != nil {
		return nil, err
	}
	// The table is made on the connection, whose events need the table.
	made := make(chan struct{})
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, fmt.Sprintf("requester %d", spec.Index), natsconn.Events{
		Lost: func(err error) {
			<-made
			if q.replies != nil {
				q.replies.Lost(q.link.Epoch(), err)
			}
		},
	})
	if err != nil {
		close(made)
		return nil, fmt.Errorf("nats: %w", err)
	}
	size := spec.InFlight
	if size <= 0 {
		size = inFlight
	}
	q.link, q.gate = link, gate.New(link.Kill)
	if err = link.CheckSize(spec.Largest); err == nil {
		if q.replies, err = natsconn.NewReplies(link, size, q.timeout, q.ended); err == nil {
			err = q.replies.Room(int(c.cfg.PendingBytes))
		}
	}
	close(made)
	if err != nil {
		if q.replies != nil {
			q.replies.Close()
		}
		_ = link.Close(ctx)
		return nil, fmt.Errorf("nats: %w", natsconn.Cause(err))
	}
	c.requests.Store(true)
	q.over = c.ends.sends(link)
	return q, nil
}

// Publish implements driver.Producer. The payload is copied by the client before
// it returns.
func (q *requester) Publish(ctx context.Context, m *driver.Message) {
	if err := ctx.Err(); err != nil {
		q.done.Complete(m, err)
		return
	}
	subject, ok := q.subjects[m.Destination]
	if !ok {
		q.done.Complete(m, fmt.Errorf("nats: destination %q is not one of this producer's: %w", m.Destination, driver.ErrUnsupported))
		return
	}
	payload := m.Payload
	reply, ticket, err := q.replies.Take(ctx, m, q.link.Epoch())
	if err != nil {
		q.done.Complete(m, err)
		return
	}
	q.gate.Enter(ctx)
	err = q.link.PublishRequest(subject, reply, payload)
	q.gate.Leave()
	if err == nil || !q.replies.Drop(ticket) {
		return // m ends with its reply, or has ended already
	}
	if ctx.Err() != nil {
		q.done.Complete(m, fmt.Errorf("%w: %w", ctx.Err(), err))
		return
	}
	q.done.Complete(m, natsconn.Cause(err))
}

// ended completes m as the reply, or the table, says.
func (q *requester) ended(m *driver.Message, reply *nats.Msg, err error) {
	switch {
	case err == nil && natsconn.Nobody(reply):
		err = fmt.Errorf("%w: %w", errNobody, nats.ErrNoResponders)
	case err == nil:
		m.Reply = reply.Data
	case errors.Is(err, driver.ErrTimeout):
		err = fmt.Errorf("no reply within %v: %w", q.timeout, err)
	}
	q.done.Complete(m, err)
}

// Flush implements driver.Producer.
func (q *requester) Flush(ctx context.Context) error { return q.replies.Wait(ctx) }

// Close implements driver.Producer. It waits for replies under way, at most 2 s.
func (q *requester) Close(ctx context.Context) error {
	q.gate.Close()
	q.over()
	wait, cancel := context.WithTimeout(ctx, closeWait)
	_ = q.replies.Wait(wait) // what is left ends with ErrClosed
	cancel()
	q.replies.Close()
	return q.link.Close(ctx)
}

// Responder connects.
func (c *conn) Responder(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x, err := c.consumer(ctx, spec)
	if err != nil {
		return nil, err
	}
	x.answers = gate.New(x.link.Kill)
	return x, nil
}

// answer sends a request's bytes back. It may wait for the network, at most
// until ctx ends.
func (x *consumer) answer(ctx context.Context, m *nats.Msg) error {
	if m.Reply == "" {
		return nil // a message that is not a request
	}
	x.answers.Enter(ctx)
	defer x.answers.Leave()
	if err := x.link.Publish(m.Reply, m.Data); err != nil {
		return fmt.Errorf("answering a request: %w", natsconn.Cause(err))
	}
	return nil
}
