package kmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

const (
	markersSuffix = ".markers"
	trackerSuffix = ".redelivery"
)

// A queue is a topic with its markers, for one subscription.
type queue struct {
	topic, markers string
	partitions     int // of both topics
	subscription   string
	redeliver      string // the group of the trackers
	ours           bool   // the marker topic is removed with the Conn
	tracker        *tracker
}

// Delete removes the topics, and the offsets that this run's groups have committed for them. It
// stops their trackers.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	err := each.Of(ds, func(d driver.Destination) error {
		topic, err := kafkaconn.Topic(c.Run, d.Name)
		if err != nil {
			return nil // it has none, which is reported below
		}
		c.drop(topic)
		return c.Remove(ctx, topic+markersSuffix, d.Partitions)
	})
	return errors.Join(err, c.Hold.Delete(ctx, ds...))
}

// drop stops a topic's tracker, if there is one.
func (c *conn) drop(topic string) {
	c.mu.Lock()
	q := c.queues[topic]
	delete(c.queues, topic)
	c.mu.Unlock()
	if q != nil {
		q.tracker.stop()
	}
}

// queue returns the topic's queue, with markers and a tracker, or why the subscription cannot use
// it.
func (c *conn) queue(ctx context.Context, topic string, spec *driver.ConsumerSpec) (*queue, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	q := c.queues[topic]
	c.mu.Unlock()
	if q != nil && q.subscription != spec.Subscription {
		return nil, fmt.Errorf("what comes again comes to the topic, which one subscription reads (that is %s): %w", q.subscription, driver.ErrUnsupported)
	}
	if q == nil {
		q = &queue{topic: topic, subscription: spec.Subscription}
		switch {
		case spec.Durable:
			q.markers = topic + "." + kafkaconn.Token(spec.Subscription) + markersSuffix
		case c.Run.Existing:
			q.markers, q.ours = "weir."+kafkaconn.Token(c.Run.ID)+"."+kafkaconn.Token(topic)+markersSuffix, true
		default:
			q.markers = topic + markersSuffix
		}
		q.redeliver = q.markers + trackerSuffix
	}
	if err := c.begin(ctx, q, spec); err != nil {
		return nil, err
	}
	if q.tracker == nil {
		q.tracker = c.track(q)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[topic] = q
	return q, nil
}

// begin creates the queue's marker topic, if missing, and sets both groups' start positions.
func (c *conn) begin(ctx context.Context, q *queue, spec *driver.ConsumerSpec) error {
	partitions, replicas, err := c.Link.Shape(ctx, q.topic)
	if err != nil {
		return err
	}
	q.partitions = partitions
	if q.tracker == nil {
		if err := c.Link.CreateTopic(ctx, q.markers, driver.Destination{Partitions: partitions, Replicas: replicas}, c.cfg.Settings()); err != nil {
			return fmt.Errorf("topic of markers %s: %w", q.markers, err)
		}
	}
	marked, _, err := c.Link.Shape(ctx, q.markers)
	if err != nil {
		return err
	}
	if marked != partitions {
		return fmt.Errorf("topic %s has %d partitions and %s of its markers %d: %w", q.topic, partitions, q.markers, marked, driver.ErrUnsupported)
	}
	earliest := driver.Position{At: driver.AtEarliest}
	return c.Begin(ctx, q.redeliver, spec.Durable, map[string]int{q.markers: marked}, earliest)
}

// Close stops the trackers, removes the groups that this run created and the marker topics of
// existing topics, and closes the control connection.
func (c *conn) Close(ctx context.Context) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	queues := c.queues
	c.queues = map[string]*queue{}
	c.mu.Unlock()
	var errs []error
	for _, q := range queues {
		q.tracker.stop()
	}
	for _, q := range queues {
		if !q.ours {
			continue
		}
		if err := c.Link.DeleteTopic(ctx, q.markers); err != nil {
			errs = append(errs, fmt.Errorf("%s stays: %w", q.markers, err))
		}
	}
	return errors.Join(append(errs, c.Hold.Close(ctx))...)
}
