package natsconn

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
)

// A Publisher is a driver.Producer with its own connection. Each message has a reply subject; an
// answer to it from the servers or a consumer confirms the message. The client copies the payload
// within Publish.
type Publisher struct {
	*Link
	is      Publishing
	gate    *gate.Gate
	replies *Replies[*driver.Message]
}

// Publishing configures a Publisher.
type Publishing struct {
	Name     string // of the connection, see Connect
	Spec     driver.ProducerSpec
	Subjects *driver.Targets[string]
	Done     driver.Completer
	Timeout  time.Duration // until a message without a reply ends with ErrTimeout
	Room     int           // limit for unread replies in the client, in bytes; 0: the client's default
	// Answered returns the outcome of a message that has ended with a reply or an error.
	Answered func(m *driver.Message, reply *nats.Msg, err error) error
	// Only reports whether no other reply to the same message can follow this one; nil: always
	// false.
	Only func(reply *nats.Msg) bool
}

// NewPublisher connects as Connect does, and fails with ErrTooLarge if the server accepts less than
// is.Spec.Largest.
func NewPublisher(ctx context.Context, o *Options, run driver.Run, is Publishing) (p *Publisher, err error) {
	p = &Publisher{is: is}
	// The table needs the connection, whose events need the table.
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
	if err != nil && p.replies.Drop(ticket) { // otherwise m ends with its reply, or has already ended
		p.is.Done.Complete(m, NotTaken(ctx, err))
	}
}

// NotTaken returns the error for a message that the client did not accept: ctx's, or err.
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

// Close implements driver.Producer. It waits at most 2 s for outstanding answers.
func (p *Publisher) Close(ctx context.Context) error {
	p.gate.Close()
	_ = p.replies.open.WaitLast(ctx) // the rest ends with ErrClosed
	p.replies.Close()
	return p.Link.Close(ctx)
}
