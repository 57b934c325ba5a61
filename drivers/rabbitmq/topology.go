package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
)

// A queueKind is what decides what a confirmation of a queue's messages means.
type queueKind struct {
	kind     string // classic, quorum, another of the server's types; "" is not known
	durable  bool
	version  string // of the storage of a classic queue: "1", "2"; "" is not known
	replicas int    // of a quorum queue
}

// kind returns what is to be made for a destination.
func (c *conn) kind(d driver.Destination) (queueKind, error) {
	k := queueKind{kind: c.cfg.Queue, durable: c.cfg.Durable, replicas: max(1, d.Replicas)}
	if k.kind == auto {
		if k.kind = classic; d.Replicas > 1 {
			k.kind = quorum
		}
	}
	switch {
	case d.Partitions > 1:
		return k, fmt.Errorf("%d partitions: a queue has none: %w", d.Partitions, driver.ErrUnsupported)
	case k.kind == classic && d.Replicas > 1:
		return k, fmt.Errorf("%d replicas: a classic queue is on one node (option queue: quorum): %w", d.Replicas, driver.ErrUnsupported)
	case k.kind == quorum && !k.durable:
		return k, fmt.Errorf("%d replicas: a quorum queue is durable (option durable: yes): %w", d.Replicas, driver.ErrUnsupported)
	case d.Replicas > 1 && c.http == nil && d.Replicas > len(c.addresses):
		return k, fmt.Errorf("%d replicas: AMQP does not tell how many a queue has, and there are %d addresses (option management, or as many addresses as replicas): %w",
			d.Replicas, len(c.addresses), driver.ErrUnsupported)
	}
	if k.kind == classic && c.versioned() && c.cfg.ClassicVersion != server {
		k.version = c.cfg.ClassicVersion
	}
	return k, nil
}

// kindOf returns what was declared for a destination, by another process perhaps:
// then it is of the kind of the queue that is there, with as many members, or as AMQP
// does not tell these, as many as there are addresses.
func (c *conn) kindOf(ctx context.Context, destination string, p place) queueKind {
	c.mu.Lock()
	k, ok := c.declared[destination]
	c.mu.Unlock()
	if ok {
		return k
	}
	k, _ = c.kind(driver.Destination{Name: destination, Partitions: 1, Replicas: 1}) // which is never refused
	switch is := c.inspect(ctx, p.queue); is.kind {
	case quorum:
		if is.replicas == 0 {
			is.replicas = len(c.addresses)
		}
		k = queueKind{kind: quorum, durable: true, replicas: is.replicas}
	case classic:
		k.kind, k.durable = classic, is.durable
	}
	c.mu.Lock()
	c.declared[destination] = k
	c.mu.Unlock()
	return k
}

// versioned reports whether the server has two ways of storing classic queues. It
// has one before, and another one since.
func (c *conn) versioned() bool { return !c.before(3, 10) && c.before(4, 0) }

// arguments returns those of a queue to be made.
func (c *conn) arguments(k queueKind) client.Table {
	t := client.Table{"x-queue-type": k.kind}
	if k.kind == quorum {
		t["x-quorum-initial-group-size"] = int64(k.replicas)
	}
	if k.version != "" {
		v := int64(1)
		if k.version == "2" {
			v = 2
		}
		t["x-queue-version"] = v
	}
	if c.cfg.MaxLength > 0 {
		t["x-max-length"], t["x-overflow"] = c.cfg.MaxLength, c.cfg.Overflow
	}
	return t
}

// Declare makes the exchanges, and for each destination the queue that takes what
// nobody has subscribed to.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		if err := c.declare(ctx, d); err != nil {
			return fmt.Errorf("rabbitmq: destination %s: %w", d.Name, err)
		}
	}
	return nil
}

func (c *conn) declare(ctx context.Context, d driver.Destination) error {
	p, err := c.place(d.Name)
	if err != nil {
		return err
	}
	k, err := c.kind(d)
	if err != nil {
		return err
	}
	err = c.ask(ctx, func(ch *client.Channel) error {
		if err := c.declareQueue(ch, p.queue, k); err != nil || p.exchange == "" {
			return err
		}
		if err := ch.ExchangeDeclare(p.rest, fanout, c.cfg.Durable, false, true, false, nil); err != nil {
			return err
		}
		if err := ch.QueueBind(p.queue, "", p.rest, false, nil); err != nil {
			return err
		}
		return ch.ExchangeDeclare(p.exchange, c.cfg.Exchange, c.cfg.Durable, false, false, false, client.Table{"alternate-exchange": p.rest})
	})
	if err == nil && d.Replicas > 1 && c.http != nil {
		err = c.http.members(ctx, c.cfg.Vhost, p.queue, d.Replicas)
	}
	if err != nil {
		return errors.Join(err, c.remove(context.WithoutCancel(ctx), p, nil))
	}
	c.mu.Lock()
	c.declared[d.Name] = k
	c.mu.Unlock()
	return nil
}

func (c *conn) declareQueue(ch *client.Channel, queue string, k queueKind) error {
	_, err := ch.QueueDeclare(queue, k.durable, false, false, false, c.arguments(k))
	return err
}

// Delete removes the exchanges, and the queues of all subscriptions made here.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	var errs []error
	for _, d := range ds {
		p, err := c.place(d.Name)
		if err == nil {
			c.mu.Lock()
			queues := c.made[d.Name]
			delete(c.made, d.Name)
			delete(c.only, d.Name)
			delete(c.declared, d.Name)
			c.mu.Unlock()
			err = c.remove(ctx, p, queues)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rabbitmq: destination %s: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}

// remove removes what a destination is, as far as it is there.
func (c *conn) remove(ctx context.Context, p place, queues []string) error {
	return c.ask(ctx, func(ch *client.Channel) error {
		if p.exchange != "" {
			for _, x := range []string{p.exchange, p.rest} {
				if err := ch.ExchangeDelete(x, false, false); err != nil {
					return err
				}
			}
		}
		for _, q := range append(queues, p.queue) {
			if _, err := ch.QueueDelete(q, false, false, false); err != nil {
				return err
			}
		}
		return nil
	})
}

// there refuses a place that is not on the server. Where it exists without weir
// its kind is found out.
func (c *conn) there(ctx context.Context, destination string, p place) error {
	err := c.ask(ctx, func(ch *client.Channel) error { return c.see(ch, p) })
	if err == nil && c.run.Existing {
		c.mu.Lock()
		_, known := c.declared[destination]
		c.mu.Unlock()
		if !known {
			k := queueKind{}
			if p.queue != "" {
				k = c.inspect(ctx, p.queue)
			}
			c.mu.Lock()
			c.declared[destination] = k
			c.mu.Unlock()
		}
	}
	return err
}

// see asks for a place on a channel, which does not survive if it is not there.
func (c *conn) see(ch *client.Channel, p place) error {
	var err error
	if p.exchange != "" {
		err = ch.ExchangeDeclarePassive(p.exchange, c.cfg.Exchange, c.cfg.Durable, false, false, false, nil)
	} else {
		_, err = ch.QueueDeclarePassive(p.queue, c.cfg.Durable, false, false, false, nil)
	}
	return err
}

// inspect finds out what kind a queue has that was not made here: as the
// management plugin tells, or as AMQP lets on. Nothing is made: a queue of an
// impossible type, declared under the name of one that exists, is refused with
// what the two differ in.
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
		if err == nil {
			break
		}
		text := err.Error()
		switch {
		case strings.Contains(text, "inequivalent arg 'durable'"):
			continue
		case strings.Contains(text, "inequivalent arg 'x-queue-type'"):
			k := queueKind{kind: classic, durable: durable} // what one is that was declared without a type
			if _, current, ok := strings.Cut(text, "but current is "); ok {
				for _, kind := range []string{classic, quorum, "stream"} {
					if strings.Contains(current, kind) {
						k.kind = kind
					}
				}
			}
			return k
		}
		break
	}
	return queueKind{}
}
