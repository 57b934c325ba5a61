package rabbitmq

import (
	"context"
	"strings"

	client "github.com/rabbitmq/amqp091-go"
)

// there returns an error for a place that does not exist on the server. For an existing
// destination, it determines the kind.
func (c *conn) there(ctx context.Context, destination string, p place) error {
	err := c.ask(ctx, func(ch *client.Channel) error { return c.see(ch, p) })
	if err != nil || !c.run.Existing {
		return err
	}
	_, err = c.kinds.Of(destination, func() (k queueKind, err error) {
		if p.queue != "" {
			k = c.inspect(ctx, p.queue)
		}
		return k, nil
	})
	return err
}

// see checks a place on a channel, which is closed if the place does not exist.
func (c *conn) see(ch *client.Channel, p place) error {
	if p.exchange != "" {
		return ch.ExchangeDeclarePassive(p.exchange, c.cfg.Exchange, c.cfg.Durable, false, false, false, nil)
	}
	_, err := ch.QueueDeclarePassive(p.queue, c.cfg.Durable, false, false, false, nil)
	return err
}

// inspect determines the kind of a queue that was not created here: from the management plugin, or
// else by AMQP. Nothing is created: declaring an existing queue with an impossible type is refused
// with the difference between the two.
func (c *conn) inspect(ctx context.Context, queue string) queueKind {
	if c.http != nil {
		if k, err := c.http.queue(ctx, c.cfg.Vhost, queue); err == nil {
			return k
		}
	}
	for _, durable := range []bool{true, false} {
		err := c.ask(ctx, func(ch *client.Channel) error {
			_, err := ch.QueueDeclare(queue, durable, false, false, false, client.Table{"x-queue-type": "weir-asks"})
			return err
		})
		switch {
		case err == nil:
			return queueKind{}
		case strings.Contains(err.Error(), "inequivalent arg 'durable'"):
			continue
		case !strings.Contains(err.Error(), "inequivalent arg 'x-queue-type'"):
			return queueKind{}
		}
		_, current, _ := strings.Cut(err.Error(), "but current is ")
		for _, kind := range []string{classic, quorum, "stream"} {
			if strings.Contains(current, kind) {
				return queueKind{kind: kind, durable: durable}
			}
		}
		return queueKind{kind: classic, durable: durable} // declared without a type
	}
	return queueKind{}
}
