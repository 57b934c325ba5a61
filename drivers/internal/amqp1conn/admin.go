package amqp1conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
)

// An Admin is the connection by which a Conn asks the server. One question at a time
// uses it. Its methods may be called concurrently.
type Admin struct {
	conn *Conn
	lock chan struct{} // holds a token while the rest is in use
	link *link         // nil: none
	over bool          // there will be none

	to      map[string]*client.Sender // on link, by address
	answers *client.Receiver          // on link; nil: none
	pair    *pair                     // on link; nil: none
}

// A pair is two links of one name to one node, one each way, as HTTP over AMQP has them
// (https://docs.oasis-open.org/amqp/linkpair/v1.0/linkpair-v1.0.html).
type pair struct {
	to   *client.Sender
	from *client.Receiver
}

// Exchange sends m by a pair of links to a node and returns the answer. It sets where the
// answer goes. One node at a time has a pair. The rest is as in Ask.
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

// pairCredit is for answers. RabbitMQ ends a session that asks without credit, and the
// client renews credit behind the answer, when half of it is used.
const pairCredit = 100

// attachPair attaches both links. What comes by them is settled.
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

// Ask sends m to an address and returns the answer. It sets where the answer goes.
// It waits within ctx and the option timeout. A server that does not answer is
// driver.ErrUnreachable.
func (a *Admin) Ask(ctx context.Context, m *client.Message, to string) (answer *client.Message, err error) {
	return answer, a.AskEach(ctx, m, []string{to}, func(m *client.Message) bool { answer = m; return true })
}

// AskEach sends m to several addresses, one after the other, and gives the answers to
// take until that returns true. The rest is as in Ask.
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

// mostSenders bounds the addresses that an Admin stays attached to.
const mostSenders = 64

// send sends m to an address, and stays attached there.
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

// Properties returns what the server said of itself when it opened the connection:
// "product", "version".
func (a *Admin) Properties(ctx context.Context) (properties map[string]string, err error) {
	return properties, a.do(ctx, func(context.Context) error {
		properties = map[string]string{}
		for name, value := range a.link.Properties() {
			properties[name] = fmt.Sprint(value)
		}
		return nil
	})
}

// At returns host:port of the server that answers questions.
func (a *Admin) At(ctx context.Context) (at string, err error) {
	return at, a.do(ctx, func(context.Context) error { at = a.link.at; return nil })
}

// Attach attaches to a queue as a consumer without credit, and detaches: most servers
// make a queue so that does not exist.
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
	drainWait  = 100 * time.Millisecond // for a message, before the server is asked again
)

// Drain takes all messages out of a queue, until waiting counts none, or ctx ends.
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

// Empty takes messages out of a queue until none comes for drainWait. A queue that is
// missing is empty.
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

// drain takes messages until none comes, or drainBurst; more says which.
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

// do uses the connection, which it makes where there is none, within ctx and the option
// timeout. A connection that was lost before is made again once. After an error the
// connection is not used again: an answer may still come.
func (a *Admin) do(ctx context.Context, use func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.conn.options.Timeout)
	defer cancel()
	select {
	case a.lock <- struct{}{}:
		defer func() { <-a.lock }()
	case <-ctx.Done():
		return words.Unreachable(ctx.Err())
	}
	// It ends so early that the server can still show that it is there.
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

// there reports whether the server makes a connection, and a link from each queue: in an alarm
// RabbitMQ reads no messages, and a question is one. A queue without a majority has no link.
func (a *Admin) there(ctx context.Context) bool {
	l, err := a.conn.dial(ctx, "there")
	if err != nil {
		return false
	}
	defer l.kill()
	for _, q := range a.conn.queues.Names() {
		_, err := l.session.NewReceiver(ctx, a.conn.address(q), &client.ReceiverOptions{Credit: -1, SourceCapabilities: capability})
		if err = words.Cause(err); err != nil && !errors.Is(err, driver.ErrUnsupported) { // which a queue is that is missing
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

// drop ends the connection at once.
func (a *Admin) drop() {
	if a.link != nil {
		a.link.kill()
		a.link.end()
	}
	a.link, a.to, a.answers, a.pair = nil, nil, nil, nil
}

// end waits for the question in progress, and closes the connection.
func (a *Admin) end() {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.over = true; a.link != nil {
		a.link.end()
	}
	a.link = nil
}
