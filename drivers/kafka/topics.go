package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// removeLimit bounds the removing of groups when a Conn is closed.
const removeLimit = 5 * time.Second

// Declare makes a topic for each destination.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	settings := map[string]string{"max.message.bytes": strconv.Itoa(maxPayload + headroom)}
	if c.cfg.MinInsync > 0 {
		settings["min.insync.replicas"] = strconv.Itoa(c.cfg.MinInsync)
	}
	if c.cfg.FlushMessages > 0 {
		settings["flush.messages"] = strconv.FormatInt(c.cfg.FlushMessages, 10)
	}
	for _, d := range ds {
		topic, err := kafkaconn.Topic(c.run, d.Name)
		if err == nil {
			err = c.link.CreateTopic(ctx, topic, d, settings)
		}
		if err != nil {
			return fmt.Errorf("kafka: destination %s: %w", d.Name, err)
		}
		c.remember(topic)
	}
	return nil
}

// Delete removes the topics, and what this run's groups have committed of them.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	groups := c.made()
	var errs []error
	for _, d := range ds {
		topic, err := kafkaconn.Topic(c.run, d.Name)
		if err != nil {
			errs = append(errs, fmt.Errorf("kafka: destination %s: %w", d.Name, err))
			continue
		}
		for _, g := range groups {
			// The brokers do it by themselves, but later.
			if err := c.link.ForgetTopic(ctx, g, topic, max(d.Partitions, 1)); err != nil {
				errs = append(errs, fmt.Errorf("kafka: group %s: %w", g, err))
			}
		}
		if err := c.link.DeleteTopic(ctx, topic); err != nil {
			errs = append(errs, fmt.Errorf("kafka: destination %s: %w", d.Name, err))
			continue
		}
		c.mu.Lock()
		delete(c.declared, topic)
		c.mu.Unlock()
	}
	return errors.Join(errs...)
}

// remember has the facts cover a topic.
func (c *conn) remember(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.declared[topic] = true
}

// topics returns the topics of destinations, which must exist, and how many
// partitions each has.
func (c *conn) topics(ctx context.Context, destinations []string) (names map[string]string, partitions map[string]int, err error) {
	names, partitions = map[string]string{}, map[string]int{}
	for _, d := range destinations {
		topic, err := kafkaconn.Topic(c.run, d)
		if err == nil {
			partitions[topic], err = c.link.Partitions(ctx, topic)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("destination %s: %w", d, err)
		}
		names[d] = topic
		c.remember(topic)
	}
	return names, partitions, nil
}

// Facts reads the settings of the topics at every broker that holds them.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	c.mu.Lock()
	topics := slices.Sorted(maps.Keys(c.declared))
	c.mu.Unlock()
	f, err := c.link.Facts(ctx, c.cfg.Acks, topics)
	if err != nil {
		return f, fmt.Errorf("kafka: %w", err)
	}
	f.Settings["acks"] = c.cfg.Acks
	f.Settings["enable.idempotence"] = strconv.FormatBool(c.cfg.idempotent())
	return f, nil
}

// Backlog implements driver.Backlogger: what is in the log behind the positions
// that the group has committed.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	var n uint64
	for _, d := range destinations {
		topic, err := kafkaconn.Topic(c.run, d)
		if err != nil {
			return 0, fmt.Errorf("kafka: backlog of %s: %w", d, err)
		}
		lag, err := c.link.Lag(ctx, c.group(subscription, false), topic)
		if err != nil {
			return 0, fmt.Errorf("kafka: backlog of %s: %w", d, err)
		}
		n += lag
	}
	return n, nil
}

// group returns the consumer group of a subscription: its own name where that is
// durable, or was when a consumer of it was opened.
func (c *conn) group(subscription string, durable bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if durable || c.groups[subscription] {
		return subscription
	}
	return kafkaconn.Group(c.run, subscription)
}

// made returns the groups that go with this Conn.
func (c *conn) made() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for g, durable := range c.groups {
		if !durable {
			names = append(names, g)
		}
	}
	slices.Sort(names)
	return names
}

// Close removes the groups that this run made, but for durable ones, and ends the
// control connection.
func (c *conn) Close(ctx context.Context) error {
	groups := c.made()
	c.mu.Lock()
	clear(c.groups)
	c.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	err := c.link.DeleteGroups(short, groups...)
	c.link.Close(ctx)
	if err != nil {
		return fmt.Errorf("kafka: groups stay: %w", err)
	}
	return nil
}
