package amqp1conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/known"
)

// An Admin is the connection on which a Conn sends requests to the server, one at a time. Its
// methods may be called concurrently.
type Admin struct {
	conn *Conn
	lock chan struct{} // holds a token while the fields below are in use
	link *link         // nil: not connected
	over bool          // closed for good

	to      map[string]*client.Sender // on link, by address
	answers *client.Receiver          // on link; nil: none
	pair    *pair                     // on link; nil: none
}

// A pair is a link pair for HTTP over AMQP: two links with the same name to one node, one in each
// direction (https://docs.oasis-open.org/amqp/linkpair/v1.0/linkpair-v1.0.html).
type pair struct {
	to   *client.Sender
	from *client.Receiver
}

// Exchange sends m over a link pair to a node and returns the answer. It sets the reply-to address.
// Only one node at a time has a link pair. Otherwise it behaves like Ask.
func (a *Admin) Exchange(ctx context.Context, m *client.Message, node string) (answer *client.Message, err error) {
	return answer, a.do(ctx, func(ctx context.Context) (err error) {
		if a.pair == nil {
			if a.pair, err = a.attachPair(ctx, node); err != nil {
				return err
			}
		}
		if err = a.pair.to.Send(ctx, m, nil); err == nil {
			answer, err = a.pair.from.Receive(ctx, nil)
		}
		return err
	})
}

// pairCredit is the credit for answers. RabbitMQ ends a session that sends a request without
// credit, and the client renews credit only after the answer, once half of it is used.
const pairCredit = 100

// attachPair attaches both links. Messages on them are settled.
func (a *Admin) attachPair(ctx context.Context, node string) (p *pair, err error) {
	settled, paired := client.SenderSettleModeSettled, map[string]any{"paired": true}
	p = &pair{}
	if p.from, err = a.link.session.NewReceiver(ctx, node, &client.ReceiverOptions{
		Name: "weir", Credit: pairCredit, Properties: paired, RequestedSenderSettleMode: &settled, TargetAddress: node,
	}); err != nil {
		return nil, err
	}
	p.to, err = a.link.session.NewSender(ctx, node, &client.SenderOptions{
		Name: "weir", Properties: paired, SettlementMode: &settled, SourceAddress: node,
	})
	return p, err
}

// Ask sends m to an address and returns the answer. It sets the reply-to address. It waits until
// ctx ends, at most the option timeout. If the server does not answer, the error is
// driver.ErrUnreachable.
func (a *Admin) Ask(ctx context.Context, m *client.Message, to string) (answer *client.Message, err error) {
	return answer, a.AskEach(ctx, m, []string{to}, func(m *client.Message) bool { answer = m; return true })
}

// AskEach sends m to several addresses in turn and passes each answer to take, until take returns
// true. Otherwise it behaves like Ask.
func (a *Admin) AskEach(ctx context.Context, m *client.Message, to []string, take func(answer *client.Message) bool) error {
	return a.do(ctx, func(ctx context.Context) (err error) {
		if a.answers == nil {
			a.to = map[string]*client.Sender{}
			if a.answers, err = a.link.session.NewReceiver(ctx, "", &client.ReceiverOptions{DynamicAddress: true, Credit: 1}); err != nil {
				return err
			}
		}
		address := a.answers.Address()
		m.Properties = &client.MessageProperties{ReplyTo: &address}
		for _, t := range to {
			if err := a.send(ctx, m, t); err != nil {
				return err
			}
		}
		for {
			answer, err := a.answers.Receive(ctx, nil)
			if err == nil {
				err = a.answers.AcceptMessage(ctx, answer)
			}
			if err != nil || take(answer) {
				return err
			}
		}
	})
}

// mostSenders limits the number of addresses that an Admin stays attached to.
const mostSenders = 64

// send sends m to an address and keeps the link.
func (a *Admin) send(ctx context.Context, m *client.Message, to string) (err error) {
	sender := a.to[to]
	if sender == nil {
		if len(a.to) >= mostSenders {
			for old, s := range a.to {
				delete(a.to, old)
				if err := s.Close(ctx); err != nil {
					return err
				}
				break
			}
		}
		if sender, err = a.link.session.NewSender(ctx, to, nil); err != nil {
			return err
		}
		a.to[to] = sender
	}
	return sender.Send(ctx, m, nil)
}

// Properties returns the properties that the server sent when it opened the connection, such as
// "product" and "version".
func (a *Admin) Properties(ctx context.Context) (properties map[string]string, err error) {
	return properties, a.do(ctx, func(context.Context) error {
		properties = map[string]string{}
		for name, value := range a.link.Properties() {
			properties[name] = fmt.Sprint(value)
		}
		return nil
	})
}

// At returns host:port of the server that answers requests.
func (a *Admin) At(ctx context.Context) (at string, err error) {
	return at, a.do(ctx, func(context.Context) error { at = a.link.at; return nil })
}

// Attach attaches to a queue as a consumer without credit, then detaches. Most servers create a
// missing queue on attach.
func (a *Admin) Attach(ctx context.Context, queue string) error {
	return a.do(ctx, func(ctx context.Context) error {
		r, err := a.link.session.NewReceiver(ctx, queue, &client.ReceiverOptions{Credit: -1, SourceCapabilities: capability})
		if err != nil {
			return err
		}
		return r.Close(ctx)
	})
}

const (
	drainBurst = 1000                   // messages that one call of drain takes at most
	drainWait  = 100 * time.Millisecond // wait for a message before the server is asked again
)

// Drain removes all messages from a queue, until waiting returns 0 or ctx ends.
func (a *Admin) Drain(ctx context.Context, queue string, waiting func(ctx context.Context) (uint64, error)) error {
	for {
		n, err := waiting(ctx)
		if err != nil || n == 0 {
			return err
		}
		if err := a.do(ctx, func(ctx context.Context) error { _, err := a.drain(ctx, queue); return err }); err != nil {
			return err
		}
	}
}

// Empty removes messages from a queue until none arrives for drainWait. A missing queue counts as
// empty.
func (a *Admin) Empty(ctx context.Context, queue string) error {
	for more := true; more; {
		err := a.do(ctx, func(ctx context.Context) (err error) {
			more, err = a.drain(ctx, queue)
			return err
		})
		var e *client.Error
		if errors.As(err, &e) && e.Condition == client.ErrCondNotFound {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drain takes at most drainBurst messages, and stops when none arrives; more reports whether it
// stopped at the limit.
func (a *Admin) drain(ctx context.Context, queue string) (more bool, err error) {
	r, err := a.link.session.NewReceiver(ctx, queue, &client.ReceiverOptions{Credit: 100, SourceCapabilities: capability})
	if err != nil {
		return false, err
	}
	for range drainBurst {
		wait, cancel := context.WithTimeout(ctx, drainWait)
		m, err := r.Receive(wait, nil)
		late := wait.Err() != nil && ctx.Err() == nil
		cancel()
		if late && m == nil {
			return false, r.Close(ctx)
		}
		if err == nil {
			err = r.AcceptMessage(ctx, m)
		}
		if err != nil {
			return false, err
		}
	}
	return true, r.Close(ctx)
}

// do calls use with the connection, which it opens if there is none, within ctx and the option
// timeout. It reconnects once if the connection had been lost. After an error it drops the
// connection, because a late answer may still arrive on it.
func (a *Admin) do(ctx context.Context, use func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.conn.options.Timeout)
	defer cancel()
	select {
	case a.lock <- struct{}{}:
		defer func() { <-a.lock }()
	case <-ctx.Done():
		return words.Unreachable(ctx.Err())
	}
	// Time out early enough to check afterwards whether the server is still there.
	asking, end := context.WithTimeout(ctx, a.conn.options.Timeout*5/8)
	defer end()
	err := a.once(asking, use)
	if errors.Is(err, driver.ErrDisconnected) && asking.Err() == nil {
		err = a.once(asking, use)
	}
	if err != nil && asking.Err() != nil && ctx.Err() == nil && a.there(ctx) {
		err = fmt.Errorf("%w: connections and links are made, and questions have no answer", driver.ErrBlocked)
	}
	if err != nil {
		err = words.Unreachable(fmt.Errorf("asking the server: %w", err))
	}
	return err
}

// there reports whether the server accepts a connection and a link from each queue. In an alarm,
// RabbitMQ reads no messages, so it reads no requests either. A queue without a majority cannot be
// attached to.
func (a *Admin) there(ctx context.Context) bool {
	l, err := a.conn.dial(ctx, "there")
	if err != nil {
		return false
	}
	defer l.kill()
	for _, q := range known.Names(&a.conn.queues) {
		_, err := l.session.NewReceiver(ctx, a.conn.address(q), &client.ReceiverOptions{Credit: -1, SourceCapabilities: capability})
		if err = words.Cause(err); err != nil && !errors.Is(err, driver.ErrUnsupported) { // missing queue
			return false
		}
	}
	return true
}

func (a *Admin) once(ctx context.Context, use func(ctx context.Context) error) (err error) {
	if a.over {
		return driver.ErrClosed
	}
	if a.link == nil {
		if a.link, err = a.conn.dial(ctx, "admin"); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, a.link.kill) // go-amqp ignores the context while the session window is closed
	defer stop()
	if err = use(ctx); err != nil {
		if err = words.Cause(err); ctx.Err() != nil {
			err = words.Cause(ctx.Err())
		}
		a.drop()
	}
	return err
}

// drop closes the connection at once.
func (a *Admin) drop() {
	if a.link != nil {
		a.link.kill()
		a.link.end()
	}
	a.link, a.to, a.answers, a.pair = nil, nil, nil, nil
}

// end waits for the request in progress and closes the connection.
func (a *Admin) end() {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.over = true; a.link != nil {
		a.link.end()
	}
	a.link = nil
}
