package amqp1conn

import (
	"context"
	"errors"
	"fmt"

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
}

// Ask sends m to an address and returns the answer. It sets where the answer goes.
// It waits within ctx and the option timeout. A server that does not answer is
// driver.ErrUnreachable.
func (a *Admin) Ask(ctx context.Context, to string, m *client.Message) (answer *client.Message, err error) {
	err = a.do(ctx, func(ctx context.Context) error {
		if a.answers == nil {
			a.to = map[string]*client.Sender{}
			if a.answers, err = a.link.session.NewReceiver(ctx, "", &client.ReceiverOptions{DynamicAddress: true, Credit: 1}); err != nil {
				return err
			}
		}
		sender := a.to[to]
		if sender == nil {
			if sender, err = a.link.session.NewSender(ctx, to, nil); err != nil {
				return err
			}
			a.to[to] = sender
		}
		if m.Properties == nil {
			m.Properties = &client.MessageProperties{}
		}
		address := a.answers.Address()
		m.Properties.ReplyTo = &address
		if err := sender.Send(ctx, m, nil); err != nil {
			return err
		}
		if answer, err = a.answers.Receive(ctx, nil); err != nil {
			return err
		}
		return a.answers.AcceptMessage(ctx, answer)
	})
	return answer, err
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
	err := a.once(ctx, use)
	if errors.Is(err, driver.ErrDisconnected) && ctx.Err() == nil {
		err = a.once(ctx, use)
	}
	if err != nil {
		err = words.Unreachable(fmt.Errorf("asking the server: %w", err))
	}
	return err
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
	if err = use(ctx); err != nil {
		err = words.Cause(err)
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
	a.link, a.to, a.answers = nil, nil, nil
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
