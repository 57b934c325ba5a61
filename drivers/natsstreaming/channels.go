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

// durableName is the durable name of all of weir's own groups.
const durableName = "weir"

// Limits for waiting until a cluster has caught up with its answers.
const (
	spreadLimit = 10 * time.Second // for every node to have a channel
	removeLimit = 10 * time.Second // for removing all groups
)

// A group is a durable queue group on a channel, which the server calls "durable:queue".
type group struct{ channel, durable, queue string }

func (g group) name() string { return g.durable + ":" + g.queue }

// channel returns a destination's channel. An existing one must be there, as far as the server can
// be asked.
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

// Declare creates a channel for each destination. A cluster stores every message on every node:
// replicas are 1 or all.
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

// checkReplicas returns an error unless there is one replica, or one on each node.
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

// makeChannel makes the server create a channel, by a subscription that ends at once: a message
// would remain.
func (s *session) makeChannel(name string) error {
	sub, err := s.Subscribe(name, func(*stan.Msg) {}, stan.MaxInflight(1))
	if err != nil {
		return err
	}
	return sub.Unsubscribe()
}

// Delete removes the groups that this Conn created on the destinations' channels. No client can
// remove the channels themselves, or their messages.
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

// removeGroups removes this Conn's groups on matching channels, within removeLimit: a group ends
// when its last member unsubscribes.
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

// join joins a group without processing messages: at most one is sent to this member, and to
// another one as soon as it leaves. A missing group begins after the last message.
func (s *session) join(g group) (stan.Subscription, error) {
	return s.QueueSubscribe(g.channel, g.queue, func(*stan.Msg) {}, stan.DurableName(g.durable),
		stan.SetManualAckMode(), stan.MaxInflight(1), stan.AckWait(time.Second))
}

// group returns a subscription's group on a channel. The name of a durable one is used unchanged.
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

// begin creates a group unless this Conn already has; if the server has the group, it stays
// unchanged.
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

// used returns a subscription's group on a channel, as this Conn's consumers use it, or would.
func (c *conn) used(subscription, channel string) (group, error) {
	if g, err := c.group(channel, subscription, true); err == nil {
		if keep, _ := c.begun.Load(g); keep == true {
			return g, nil
		}
	}
	return c.group(channel, subscription, false)
}
