package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// Declare makes a topic for each destination.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		topic, err := kafkaconn.Topic(c.Run, d.Name)
		if err == nil {
			err = c.Link.CreateTopic(ctx, topic, d, c.cfg.Settings())
		}
		if err != nil {
			return fmt.Errorf("kafka: destination %s: %w", d.Name, err)
		}
		c.Remember(topic)
	}
	return nil
}

// Delete removes the topics, and what this run's groups have committed of them.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	var errs []error
	for _, d := range ds {
		topic, err := kafkaconn.Topic(c.Run, d.Name)
		if err == nil {
			err = c.Hold.Delete(ctx, topic, d.Partitions)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("kafka: destination %s: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Facts reads the settings of the topics at every broker that holds them.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.Link.Facts(ctx, c.cfg.Acks, c.Declared())
	if err != nil {
		return f, fmt.Errorf("kafka: %w", err)
	}
	f.Settings["acks"] = c.cfg.Acks
	f.Settings["enable.idempotence"] = strconv.FormatBool(c.cfg.Idempotent())
	if c.cfg.Transaction == 0 {
		return f, nil
	}
	log, err := c.Link.TransactionFacts(ctx)
	if err != nil {
		return f, fmt.Errorf("kafka: log of transactions: %w", err)
	}
	f.Confirms = kafkaconn.Weaker(f.Confirms, log.Confirms)
	f.Settings["transaction"], f.Settings["isolation.level"] = strconv.Itoa(c.cfg.Transaction), "read_committed"
	for _, s := range []string{"replication.factor", "min.insync.replicas", "flush.messages"} {
		f.Settings["__transaction_state "+s] = log.Settings[s]
	}
	return f, nil
}

// Backlog implements driver.Backlogger: what is in the log behind the positions
// that the group has committed.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	var n uint64
	for _, d := range destinations {
		topic, err := kafkaconn.Topic(c.Run, d)
		if err != nil {
			return 0, fmt.Errorf("kafka: backlog of %s: %w", d, err)
		}
		lag, err := c.Link.Lag(ctx, c.Group(subscription, false), topic)
		if err != nil {
			return 0, fmt.Errorf("kafka: backlog of %s: %w", d, err)
		}
		n += lag
	}
	return n, nil
}
