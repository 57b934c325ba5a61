package amqp1conn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/fifo"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/standstill"
)

// capability is what a link asks for at an address: a queue rather than a topic.
var capability = []string{"queue"}

// A producer has a connection with a link to each of its queues.
type producer struct {
	*blocking.Outgoing
	conn    *Conn
	name    string
	targets *driver.Targets[int] // indexes into queues
	queues  []string

	out    *retry.Kept[outlet]
	routes []*route // one per queue
	all    sync.WaitGroup
}

// A route sends to one queue. Its messages are sent and confirmed in order, independently of other
// queues: a server that grants one link no credit, or settles none of its messages, may still serve
// the others.
type route struct {
	*producer
	index   int
	waiting *fifo.Queue[item]    // read by the goroutine that sends
	sent    *fifo.Queue[receipt] // read by the goroutine that waits for outcomes

	taken   atomic.Uint64 // messages credit was granted for, plus outcomes: credit comes in batches
	sending atomic.Bool   // the client is sending, or waiting for credit
	open    atomic.Int64  // messages without an outcome
}

// An item is a message waiting to be sent, with the context of its Publish.
type item struct {
	ctx context.Context
	m   *driver.Message
}

// A receipt is a message waiting for its outcome.
type receipt struct {
	client.SendReceipt
	m *driver.Message
}

// An outlet is one connection of a producer, with a sender for each queue.
type outlet struct {
	*link
	senders []*client.Sender
}

// Producer connects, and attaches to each queue.
func (c *Conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{
		Outgoing: blocking.NewOutgoing(done), conn: c, name: spec.Name(),
	}
	var err error
	p.targets, err = driver.NewTargets(spec.Destinations, func(d string) (int, error) {
		q, err := c.existing(ctx, d)
		p.queues = append(p.queues, q)
		return len(p.queues) - 1, err
	})
	if err != nil {
		return nil, err
	}
	if err := c.takes(ctx, p.queues); err != nil {
		return nil, err
	}
	o, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	const limit = "the server's max-message-size"
	for _, s := range o.senders {
		most := min(s.MaxMessageSize(), 1<<62)
		if err := driver.CheckSize(spec.Largest, int64(most), limit); err != nil {
			o.end()
			return nil, err
		}
		p.targets.Limit(int64(most), limit)
	}
	p.out = retry.Connection[outlet]{
		Connect: p.connect,
		Hold: func(ctx context.Context, o *outlet) error {
			why := o.lost(ctx)
			if ctx.Err() == nil {
				o.end()
			}
			return why
		},
		Wait: c.options.ReconnectWait, For: c.options.ReconnectFor, Final: failure.Hopeless,
	}.Start(o, c.run, p.name)
	for i := range p.queues {
		r := &route{producer: p, index: i, waiting: fifo.New[item](), sent: fifo.New[receipt]()}
		p.routes = append(p.routes, r)
		p.all.Go(r.send)
		p.all.Go(func() { r.watch(p.out.Life()) })
		p.all.Go(r.confirm)
	}
	return p, nil
}

// connect makes a connection with a sender for each queue.
func (p *producer) connect(ctx context.Context) (*outlet, error) {
	l, err := p.conn.dial(ctx, p.name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.conn.options.Timeout)
	defer cancel()
	o := &outlet{link: l}
	mode := client.SenderSettleModeUnsettled
	if !p.conn.options.Confirm {
		mode = client.SenderSettleModeSettled
	}
	for _, q := range p.queues {
		s, err := l.session.NewSender(ctx, p.conn.address(q), &client.SenderOptions{SettlementMode: &mode, TargetCapabilities: capability})
		if err != nil {
			l.kill()
			l.end()
			return nil, fmt.Errorf("queue %s: %w", q, words.Unreachable(err))
		}
		o.senders = append(o.senders, s)
	}
	return o, nil
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	queue, err := p.targets.Of(ctx, m)
	if p.Admit(m, err) {
		p.routes[queue].waiting.Put(item{ctx, m})
	}
}

// send passes messages to the client, which returns when a message is written.
func (r *route) send() {
	defer r.sent.Close()
	var body [1][]byte
	message := client.Message{Header: &client.MessageHeader{Durable: r.conn.options.Durable}, Data: body[:]}
	for it := range r.waiting.All() {
		err := it.ctx.Err()
		if r.Ending() {
			err = driver.ErrClosed
		}
		if err != nil {
			r.Complete(it.m, err)
			continue
		}
		o := r.out.Now()
		s := o.senders[r.index]
		body[0] = it.m.Payload
		r.sending.Store(true)
		var sent client.SendReceipt
		if r.conn.options.Confirm {
			sent, err = s.SendWithReceipt(it.ctx, &message, nil)
		} else {
			err = s.Send(it.ctx, &message, nil)
		}
		r.sending.Store(false)
		switch {
		case err != nil:
			r.Complete(it.m, r.failed(it.ctx, o, err))
			continue
		case r.conn.options.Confirm:
			r.open.Add(1)
			r.sent.Put(receipt{sent, it.m})
		default:
			r.Complete(it.m, nil)
		}
		r.taken.Add(1)
	}
}

// watch reports a server that answers but accepts no messages. Servers that are full or in an alarm
// grant no credit, for which the client waits silently, or settle nothing.
func (r *route) watch(life context.Context) {
	who, queue := r.name, r.queues[r.index]
	if len(r.queues) > 1 {
		who += " to " + queue
	}
	(&standstill.Watch{
		Run: r.conn.run, Who: who,
		Look: func() (uint64, bool) { return r.taken.Load(), r.sending.Load() || r.open.Load() > 0 },
		Why: func(ctx context.Context) string {
			why, err := r.conn.full(ctx, queue)
			if why != "" || !r.sending.Load() {
				return why
			}
			if !errors.Is(err, driver.ErrBlocked) {
				_, err = r.conn.system.Waiting(ctx, r.conn.admin, queue)
			}
			if err != nil && !errors.Is(err, driver.ErrBlocked) {
				return ""
			}
			return "no credit for messages to queue " + queue
		},
	}).Keep(life)
}

// failed returns why the client did not send, or nil. If the server has ended only a link, and not
// the connection, failed reconnects.
func (p *producer) failed(ctx context.Context, o *outlet, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if errors.As(err, new(*client.LinkError)) || errors.As(err, new(*client.SessionError)) {
		o.kill()
		return words.Lost(err)
	}
	return words.Cause(err)
}

// confirm waits for outcomes, in message order. When a connection ends, so do the waits for
// messages in flight on it.
func (r *route) confirm() {
	for sent := range r.sent.All() {
		state, err := sent.Wait(context.Background())
		if err != nil {
			err = words.Lost(err)
		} else {
			err = outcome(state)
		}
		r.Complete(sent.m, err)
		r.open.Add(-1)
		r.taken.Add(1)
	}
}

// Close implements driver.Producer. It waits at most 2 s for outstanding answers and, if messages
// are sent settled, for the server to take them.
func (p *producer) Close(ctx context.Context) error {
	return p.End(ctx, func(late bool) error {
		for _, r := range p.routes {
			r.waiting.Close()
		}
		p.out.End()
		if late {
			p.out.Now().kill()
		}
		p.all.Wait()
		o := p.out.Now()
		if late || p.conn.options.Confirm {
			o.end()
			return nil
		}
		o.settle(p.conn.system)
		return nil
	})
}

// settle waits, at most endLimit, until the server has taken the messages sent settled, then closes
// the connection. If the connection is lost meanwhile, the fate of those messages is unknown.
func (o *outlet) settle(s System) {
	if d, ok := s.(Deferring); ok {
		late := time.AfterFunc(endLimit, o.kill)
		m, address := d.Question()
		ctx := context.Background() // unblocked when the socket closes
		if x, err := o.session.NewSender(ctx, address, nil); err == nil {
			_ = x.Send(ctx, m, nil)
		}
		late.Stop()
	}
	_ = finish(o.link, o.senders)
}
