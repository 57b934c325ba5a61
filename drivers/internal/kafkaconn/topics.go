package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// Retries while the cluster is still agreeing: short pauses, bounded in time.
const (
	askPause  = 20 * time.Millisecond
	askLimit  = 20 * time.Second
	adminWait = 10 * time.Second // for a broker to create or remove a topic
)

// patiently retries while the cluster answers that it will know in a moment, as a newly started
// cluster does: its first group creates the topic for all groups. A request without an answer fails
// as in Unanswered.
func patiently(ctx context.Context, question func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return Unanswered(retry.While(ctx, askPause, kerr.IsRetriable, func() error { return question(ctx) }))
}

// Metadata returns metadata of the cluster and the topics. A missing topic has its error there.
func (l *Link) Metadata(ctx context.Context, topics ...string) (m kadm.Metadata, err error) {
	ctx = kadm.WithAuthorizedOps(ctx) // keeps the client from answering from its cache
	if len(topics) == 0 {
		m, err = l.admin.BrokerMetadata(ctx)
	} else {
		m, err = l.admin.Metadata(ctx, topics...)
	}
	return m, Unanswered(err)
}

// Partitions returns the partition count of a topic, which must exist.
func (l *Link) Partitions(ctx context.Context, topic string) (int, error) {
	n, _, err := l.Shape(ctx, topic)
	return n, err
}

// Shape returns the partition count of a topic, which must exist, and the smallest replica count of
// any partition.
func (l *Link) Shape(ctx context.Context, topic string) (partitions, replicas int, err error) {
	meta, err := l.Metadata(ctx, topic)
	t := meta.Topics[topic]
	if err == nil {
		err = t.Err
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return 0, 0, fmt.Errorf("there is no topic %s: %w: %w", topic, driver.ErrUnsupported, err)
	case err != nil:
		return 0, 0, fmt.Errorf("topic %s: %w", topic, Cause(err))
	}
	return len(t.Partitions), leastReplicas(t), nil
}

// leastReplicas returns the smallest replica count of any partition.
func leastReplicas(t kadm.TopicDetail) int {
	least := 0
	for _, p := range t.Partitions {
		if n := len(p.Replicas); least == 0 || n < least {
			least = n
		}
	}
	return least
}

// CreateTopic creates a topic with settings under the vendor's names, and waits until every broker
// knows the partition leaders. An existing topic is left unchanged.
func (l *Link) CreateTopic(ctx context.Context, name string, d driver.Destination, settings map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	configs := map[string]*string{}
	for k, v := range settings {
		configs[k] = &v
	}
	var id kadm.TopicID // of the new topic, as a topic of the same name may just have been removed
	// A newly started cluster may not have all its brokers yet.
	err := patiently(ctx, func(ctx context.Context) error {
		t, err := l.admin.CreateTopic(ctx, int32(max(d.Partitions, 1)), int16(max(d.Replicas, 1)), configs, name)
		if id = t.ID; errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		}
		return said(err, t.ErrMessage)
	})
	if err != nil {
		return err
	}
	return l.led(ctx, name, id)
}

// led waits until every broker knows a leader for each partition of the topic; id, if known, is the
// topic's.
func (l *Link) led(ctx context.Context, name string, id kadm.TopicID) error {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &name
	req.Topics = append(req.Topics, rt)
	for {
		meta, err := l.Metadata(ctx)
		if err != nil {
			return err
		}
		ok := len(meta.Brokers) > 0
		for _, b := range meta.Brokers {
			resp, err := req.RequestWith(ctx, l.Broker(int(b.NodeID)))
			if err != nil {
				return Unanswered(err)
			}
			ok = ok && isLed(resp, id)
		}
		if ok {
			return nil
		}
		if !retry.Pause(ctx, askPause) {
			return fmt.Errorf("topic %s has no leaders: %w", name, driver.ErrTimeout)
		}
	}
}

func isLed(m *kmsg.MetadataResponse, id kadm.TopicID) bool {
	if len(m.Topics) != 1 || m.Topics[0].ErrorCode != 0 || id != (kadm.TopicID{}) && m.Topics[0].TopicID != id {
		return false
	}
	return !slices.ContainsFunc(m.Topics[0].Partitions, func(p kmsg.MetadataResponseTopicPartition) bool {
		return p.ErrorCode != 0 || p.Leader < 0
	})
}

// DeleteTopic removes a topic. It is no error if the topic is missing.
func (l *Link) DeleteTopic(ctx context.Context, name string) error {
	return patiently(ctx, func(ctx context.Context) error {
		t, err := l.admin.DeleteTopic(ctx, name)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		return said(err, t.ErrMessage)
	})
}
