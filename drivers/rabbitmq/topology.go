package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/names"
)

// mostName is the maximum length of a name in AMQP, in bytes.
const mostName = 255

// name joins parts to a valid AMQP name; see names.Join.
func name(parts ...string) string { return names.Join(mostName, parts...) }

// A place is a destination on the server.
type place struct {
	exchange string // to publish to; "": the default exchange
	key      string // to publish with
	binding  string // to bind subscriptions with
	queue    string // the only one with the default exchange, otherwise for messages without a subscription
	rest     string // the exchange that leads to it
}

func (c *conn) place(destination string) (place, error) {
	switch {
	case !c.run.Existing:
		own := name("weir", c.run.ID, destination)
		if c.cfg.Exchange == byDefault {
			return place{key: own, queue: own}, nil
		}
		return place{exchange: own, key: own, binding: c.binding(own), queue: own, rest: name("weir", c.run.ID, destination, "rest")}, nil
	case len(destination) > mostName:
		return place{}, fmt.Errorf("name of %d bytes (up to %d): %w", len(destination), mostName, driver.ErrUnsupported)
	case c.cfg.Existing == areQueues:
		return place{key: destination, queue: destination}, nil
	}
	key := destination
	if c.cfg.RoutingKey != "" {
		key = c.cfg.RoutingKey
	}
	return place{exchange: destination, key: key, binding: c.binding(key)}, nil
}

// binding returns the key that binds subscriptions to an exchange, given the routing key.
func (c *conn) binding(key string) string {
	if c.cfg.Exchange == topic && c.cfg.RoutingKey == "" {
		return "#"
	}
	return key
}

// subscriptionQueue returns the name of a subscription's queue for a destination with an exchange.
func (c *conn) subscriptionQueue(subscription, destination string, durable bool) string {
	if durable {
		return subscription
	}
	return name("weir", c.run.ID, destination, strings.TrimPrefix(subscription, c.run.ID+"-"))
}

// A queueKind decides what a confirmation of a queue's messages means.
type queueKind struct {
	kind     string // classic, quorum or another server type; "": unknown
	durable  bool
	version  string // storage version of a classic queue: "1", "2"; "": unknown
	replicas int    // of a quorum queue
	refusals int    // of a quorum queue: at this count, a message goes to dead; 0: the server's setting
	dead     place
}

// kind returns the kind of queue created for a destination with a number of replicas.
func (c *conn) kind(replicas int) queueKind {
	k := c.cfg.queueKind(replicas)
	if k.kind == classic {
		k.version = c.askedVersion()
	}
	return k
}

// queueKind is kind without knowledge of the server.
func (c *Config) queueKind(replicas int) queueKind {
	k := queueKind{kind: c.Queue, durable: c.Durable, replicas: max(1, replicas)}
	if k.kind == auto {
		if k.kind = classic; replicas > 1 {
			k.kind = quorum
		}
	}
	return k
}

// refuses returns why a kind of queue cannot be created.
func (c *conn) refuses(k queueKind) error {
	switch n := k.replicas; {
	case k.kind == classic && n > 1:
		return fmt.Errorf("%d replicas: a classic queue is on one node (option queue: quorum): %w", n, driver.ErrUnsupported)
	case k.kind == quorum && !k.durable:
		return fmt.Errorf("%d replicas: a quorum queue is durable (option durable: yes): %w", n, driver.ErrUnsupported)
	case n > 1 && c.http == nil && n > len(c.addresses):
		return fmt.Errorf("%d replicas: AMQP does not report how many a queue has, and there are %d addresses (option management, or as many addresses as replicas): %w",
			n, len(c.addresses), driver.ErrUnsupported)
	}
	return nil
}

// askedVersion returns the storage version that classic queues are declared with; "": the server's.
func (c *conn) askedVersion() string {
	if c.cfg.ClassicVersion == server || c.onlyVersion() != "" {
		return ""
	}
	return c.cfg.ClassicVersion
}

// onlyVersion returns the storage version of classic queues where the server has only one, and
// otherwise "".
func (c *conn) onlyVersion() string {
	switch {
	case c.lavinMQ:
		return ""
	case c.release.Before(3, 10):
		return "1"
	case c.release.Before(4, 0):
		return ""
	}
	return "2"
}

// note makes Delete, or Close with an existing exchange, remove a subscription's queue.
func (c *conn) note(destination, queue string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.made[destination], queue) {
		c.made[destination] = append(c.made[destination], queue)
	}
}

// forget returns the queues noted for a destination, and clears everything known about it.
func (c *conn) forget(destination string) (queues []string) {
	c.kinds.Forget(destination)
	c.mu.Lock()
	defer c.mu.Unlock()
	queues = c.made[destination]
	delete(c.made, destination)
	delete(c.only, destination)
	return queues
}

// Declare creates the exchanges, and each destination's queue for messages without a subscription.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error { return c.declare(ctx, d) })
}

func (c *conn) declare(ctx context.Context, d driver.Destination) error {
	p, err := c.place(d.Name)
	if err != nil {
		return err
	}
	k := c.kind(d.Replicas)
	if err := c.refuses(k); err != nil {
		return err
	}
	if k.refusals = d.Refusals; k.refusals > 0 {
		if k.dead, err = c.place(driver.DeadLetters(d.Name)); err != nil {
			return err
		}
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
	if err == nil && k.replicas > 1 && c.http != nil {
		err = c.counted(ctx, p.queue, k.replicas)
	}
	if err != nil {
		return errors.Join(err, c.remove(context.WithoutCancel(ctx), p, nil))
	}
	c.kinds.Note(d.Name, k)
	return nil
}

// counted returns an error for a quorum queue with fewer members than requested. With too few
// nodes, the server creates one with fewer members.
func (c *conn) counted(ctx context.Context, queue string, n int) error {
	k, err := c.http.queue(ctx, c.cfg.Vhost, queue)
	if err != nil {
		return fmt.Errorf("option management: %w", err)
	}
	if k.replicas < n {
		return fmt.Errorf("%d replicas: the server made a queue of %d: %w", n, k.replicas, driver.ErrUnsupported)
	}
	return nil
}

func (c *conn) declareQueue(ch *client.Channel, queue string, k queueKind) error {
	t := client.Table{"x-queue-type": k.kind}
	if k.kind == quorum {
		t["x-quorum-initial-group-size"] = int64(k.replicas)
	}
	// Not k.version: once observed, it would make the next declaration of the same queue another one.
	if v, err := strconv.ParseInt(c.askedVersion(), 10, 64); err == nil && k.kind == classic {
		t["x-queue-version"] = v
	}
	if k.refusals > 0 { // the limit is the number of redeliveries
		t["x-delivery-limit"] = int64(k.refusals - 1)
		t["x-dead-letter-exchange"], t["x-dead-letter-routing-key"] = k.dead.exchange, k.dead.key
	}
	if c.cfg.MaxLength > 0 {
		t["x-max-length"], t["x-overflow"] = c.cfg.MaxLength, c.cfg.Overflow
	}
	_, err := ch.QueueDeclare(queue, k.durable, false, false, false, t)
	return err
}

// Delete removes the exchanges, and the queues of all subscriptions created here.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		p, err := c.place(d.Name)
		if err != nil {
			return err
		}
		return c.remove(ctx, p, c.forget(d.Name))
	})
}

// remove removes a destination's exchanges and queues, as far as they exist.
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

// subscribe returns a subscription's queue for a destination. The queue stores messages from then
// on.
func (c *conn) subscribe(ctx context.Context, spec driver.ConsumerSpec, destination string) (string, error) {
	p, err := c.place(destination)
	if err != nil {
		return "", err
	}
	if p.exchange == "" {
		if spec.Durable && spec.Subscription != p.queue {
			return "", fmt.Errorf("the durable subscription of a queue is the queue itself, %s, and not %s: %w", p.queue, spec.Subscription, driver.ErrUnsupported)
		}
		if err := c.alone(spec.Subscription, destination); err != nil {
			return "", err
		}
		return p.queue, c.there(ctx, destination, p)
	}
	if err := c.there(ctx, destination, p); err != nil {
		return "", err
	}
	k := c.kind(1)
	if c.run.Existing {
		c.kinds.Note(destination, k)
	} else {
		k, _ = c.kinds.Of(destination, func() (queueKind, error) { return c.madeElsewhere(ctx, p), nil })
	}
	q := c.subscriptionQueue(spec.Subscription, destination, spec.Durable)
	if !c.run.Existing || !spec.Durable {
		c.note(destination, q) // before creating it: the answer may be lost
	}
	return q, c.ask(ctx, func(ch *client.Channel) error {
		if err := c.declareQueue(ch, q, k); err != nil {
			return err
		}
		return ch.QueueBind(q, p.binding, p.exchange, false, nil)
	})
}

// madeElsewhere returns the kind of a destination that another process declared: that of its queue.
// AMQP does not reveal the member count, so the number of addresses is assumed.
func (c *conn) madeElsewhere(ctx context.Context, p place) queueKind {
	k := c.kind(1)
	switch is := c.inspect(ctx, p.queue); is.kind {
	case quorum:
		if is.replicas == 0 {
			is.replicas = len(c.addresses)
		}
		k = queueKind{kind: quorum, durable: true, replicas: is.replicas}
	case classic:
		k.kind, k.durable = classic, is.durable
	}
	return k
}

// alone returns an error for a second subscription of a destination that is a single queue.
func (c *conn) alone(subscription, destination string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.only[destination]; have != "" && have != subscription {
		return fmt.Errorf("a queue has one subscription, which is %s (another kind of exchange: option exchange): %w", have, driver.ErrUnsupported)
	}
	c.only[destination] = subscription
	return nil
}
