package natsstreaming

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/stan.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// durableName is the durable name of every group that is weir's own.
const durableName = "weir"

// Bounds of waiting for what a cluster does behind its answers.
const (
	spreadLimit = 10 * time.Second // for every node to have a channel
	removeLimit = 10 * time.Second // of removing all groups
)

// A group is a durable queue group on a channel. The server calls it
// "durable:queue".
type group struct{ channel, durable, queue string }

func (g group) name() string { return g.durable + ":" + g.queue }

// channel returns the channel of a destination. One that exists without weir must
// be there, as far as that can be asked.
func (c *conn) channel(ctx context.Context, destination string) (string, error) {
	if !c.run.Existing {
		return natsconn.Subject(c.run, destination), nil
	}
	switch wild, err := natsconn.CheckSubject(destination); {
	case err != nil:
		return "", err
	case wild, strings.ContainsAny(destination, "/*>"):
		return "", fmt.Errorf("%q is not a channel (neither wildcards nor /): %w", destination, driver.ErrUnsupported)
	}
	if _, known := c.channels.Load(destination); !known && c.monitors.any() {
		if err := c.monitors.mustHave(ctx, destination); err != nil {
			return "", err
		}
	}
	c.channels.Store(destination, true)
	return destination, nil
}

// Declare makes a channel for each destination. A cluster keeps every message on
// every node: replicas are 1 or all.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	if err := each.InTurn(ds, func(d driver.Destination) error { return c.checkReplicas(ctx, d) }); err != nil {
		return err
	}
	return each.InTurn(ds, func(d driver.Destination) error {
		name := natsconn.Subject(c.run, d.Name)
		if err := c.ask(ctx, askLimit, func(s *session) error { return s.makeChannel(name) }); err != nil {
			return words.Cause(err)
		}
		c.channels.Store(name, true)
		c.monitors.awaitSpread(ctx, name)
		return nil
	})
}

// checkReplicas refuses what is neither one replica nor one on each node.
func (c *conn) checkReplicas(ctx context.Context, d driver.Destination) error {
	if d.Replicas <= 1 {
		return nil
	}
	if !c.monitors.any() {
		return fmt.Errorf("%d replicas: how many nodes the cluster has is told at its monitoring addresses only (option monitor): %w", d.Replicas, driver.ErrUnsupported)
	}
	nodes := c.monitors.survey(ctx)
	n := 0
	for _, x := range nodes {
		if x.clustered() {
			n++
		}
	}
	switch {
	case n == 0:
		return fmt.Errorf("%d replicas: the server is not clustered: %w", d.Replicas, driver.ErrUnsupported)
	case d.Replicas != n:
		return fmt.Errorf("%d replicas: the cluster keeps every message on each of its %d nodes (replication 1 or %d): %w", d.Replicas, n, n, driver.ErrUnsupported)
	}
	return nil
}

// makeChannel has the server make a channel, by a subscription that ends at once:
// a message would stay.
func (s *session) makeChannel(name string) error {
	sub, err := s.Subscribe(name, func(*stan.Msg) {}, stan.MaxInflight(1))
	if err != nil {
		return err
	}
	return sub.Unsubscribe()
}

// Delete removes the groups that this Conn made on the destinations' channels. The
// channels themselves, and the messages in them, no client can remove.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	gone := map[string]bool{}
	for _, d := range ds {
		gone[natsconn.Subject(c.run, d.Name)] = true
	}
	if err := c.removeGroups(ctx, func(channel string) bool { return gone[channel] }); err != nil {
		return err
	}
	for name := range gone {
		c.channels.Delete(name)
	}
	return nil
}

// removeGroups removes those of the groups that this Conn made on some channels,
// within removeLimit: a group ends when its last member unsubscribes.
func (c *conn) removeGroups(ctx context.Context, on func(channel string) bool) error {
	var gone []group
	for k, keep := range c.begun.Range {
		if g := k.(group); on(g.channel) && keep == false {
			gone = append(gone, g)
			c.begun.Delete(k)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	left := gone
	err := c.ask(ctx, removeLimit, func(s *session) error {
		for len(left) > 0 {
			sub, err := s.join(left[0])
			if err == nil {
				err = sub.Unsubscribe()
			}
			if err != nil {
				return err
			}
			left = left[1:]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("queue group %s stays on channel %s: %w", left[0].name(), left[0].channel, words.Cause(err))
	}
	return nil
}

// join makes a member of a group that takes no message to heart: at most one is
// sent to it, and to another as soon as it leaves. A group that does not exist
// begins behind the last message.
func (s *session) join(g group) (stan.Subscription, error) {
	return s.QueueSubscribe(g.channel, g.queue, func(*stan.Msg) {}, stan.DurableName(g.durable),
		stan.SetManualAckMode(), stan.MaxInflight(1), stan.AckWait(time.Second))
}

// group returns the group of a subscription on a channel. A durable one is what its name
// says.
func (c *conn) group(channel, subscription string, durable bool) (group, error) {
	if !durable {
		return group{channel, durableName, natsconn.Subscription(c.run, subscription)}, nil
	}
	name, queue, two := strings.Cut(subscription, ":")
	if !two {
		queue = name
	}
	if name == "" || queue == "" {
		return group{}, fmt.Errorf("%q is not a name of a durable queue group (durable:group, or one word for both): %w", subscription, driver.ErrUnsupported)
	}
	return group{channel, name, queue}, nil
}

// begin makes a group that this Conn has not made, as it exists from here on; one
// that the server has already stays as it is.
func (c *conn) begin(ctx context.Context, s *session, g group, keep bool) error {
	if _, known := c.begun.LoadOrStore(g, keep); known {
		return nil
	}
	err := retry.While(ctx, askPause, passing, func() error {
		sub, err := s.join(g)
		if err != nil {
			return err
		}
		return sub.Close()
	})
	if err != nil {
		c.begun.Delete(g)
		return fmt.Errorf("making queue group %s: %w", g.name(), words.Cause(err))
	}
	return nil
}

// used returns the group of a subscription on a channel, as this Conn's consumers
// use it, or would.
func (c *conn) used(subscription, channel string) (group, error) {
	if g, err := c.group(channel, subscription, true); err == nil {
		if keep, _ := c.begun.Load(g); keep == true {
			return g, nil
		}
	}
	return c.group(channel, subscription, false)
}
