package natsconn

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
)

// A Publisher is a driver.Producer on a connection of its own. Each message has a reply
// subject, to which the servers or a consumer answer: that confirms it. The client
// copies the payload within Publish.
type Publisher struct {
	*Link
	is      Publishing
	gate    *gate.Gate
	replies *Replies[*driver.Message]
}

// Publishing says what a Publisher does.
type Publishing struct {
	Name     string // of the connection, as Connect has it
	Spec     driver.ProducerSpec
	Subjects *driver.Targets[string]
	Done     driver.Completer
	Timeout  time.Duration // until a message without a reply ends with ErrTimeout
	Room     int           // bytes of replies that may wait in the client; 0: its default
	// Answered returns what a message completes with that has ended with a reply, or
	// with an error.
	Answered func(m *driver.Message, reply *nats.Msg, err error) error
	// Only reports whether no other reply to the same message can come after this one; nil: one
	// always can.
	Only func(reply *nats.Msg) bool
}

// NewPublisher connects as Connect does, and fails with ErrTooLarge where the server takes
// less than is.Spec.Largest.
func NewPublisher(ctx context.Context, o *Options, run driver.Run, is Publishing) (p *Publisher, err error) {
	p = &Publisher{is: is}
	// The table is made on the connection, and the events of that need the table.
	made := make(chan struct{})
	defer close(made)
	p.Link, err = Connect(ctx, o, run, is.Name, Events{Lost: func(err error) {
		<-made
		if p.replies != nil {
			p.replies.Lost(p.Epoch(), err)
		}
	}})
	if err != nil {
		return nil, err
	}
	p.gate = gate.New(p.Kill)
	if err = p.CheckSize(is.Spec.Largest); err == nil {
		p.replies, err = NewReplies(p.Link, is.Spec.Room(), is.Timeout, p.ended, is.Only)
	}
	if err == nil && is.Room > 0 {
		err = p.replies.Room(is.Room)
	}
	if err != nil {
		if p.replies != nil {
			p.replies.Close()
		}
		_ = p.Link.Close(ctx)
		return nil, Cause(err)
	}
	return p, nil
}

// Publish implements driver.Producer.
func (p *Publisher) Publish(ctx context.Context, m *driver.Message) {
	subject, err := p.is.Subjects.Of(ctx, m)
	if err != nil {
		p.is.Done.Complete(m, err)
		return
	}
	payload := m.Payload
	reply, ticket, err := p.replies.Take(ctx, m, p.Epoch())
	if err != nil {
		p.is.Done.Complete(m, err)
		return
	}
	p.gate.Enter(ctx)
	err = p.PublishRequest(subject, reply, payload)
	p.gate.Leave()
	if err != nil && p.replies.Drop(ticket) { // else m ends with its reply, or has ended already
		p.is.Done.Complete(m, NotTaken(ctx, err))
	}
}

// NotTaken returns why the client has not taken a message: for ctx, or for err.
func NotTaken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return Cause(err)
}

func (p *Publisher) ended(m *driver.Message, reply *nats.Msg, err error) {
	p.is.Done.Complete(m, p.is.Answered(m, reply, err))
}

// Flush implements driver.Producer.
func (p *Publisher) Flush(ctx context.Context) error { return p.replies.Wait(ctx) }

// Close implements driver.Producer. It waits for answers to what is in flight, at most
// 2 s.
func (p *Publisher) Close(ctx context.Context) error {
	p.gate.Close()
	_ = p.replies.open.WaitLast(ctx) // what is left ends with ErrClosed
	p.replies.Close()
	return p.Link.Close(ctx)
}

var _ driver.Producer = (*Publisher)(nil)
