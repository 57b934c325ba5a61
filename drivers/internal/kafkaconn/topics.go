package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
)

// Asking a cluster that is still agreeing: short pauses, not for ever.
const (
	askPause  = 20 * time.Millisecond
	askLimit  = 20 * time.Second
	adminWait = 10 * time.Second // given to a broker for making or removing a topic
)

// pause waits, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// patiently asks again while the cluster answers that it will know in a moment, as
// one does that has just started: its first group makes the topic of all groups.
func patiently(ctx context.Context, question func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for {
		err := question(ctx)
		if !kerr.IsRetriable(err) || !pause(ctx, askPause) {
			return err
		}
	}
}

// Metadata returns what the cluster says of itself and of the topics; one that
// does not exist has its error in it.
func (l *Link) Metadata(ctx context.Context, topics ...string) (*kmsg.MetadataResponse, error) {
	resp, err := l.Request(ctx, metadataRequest(topics))
	if err != nil {
		return nil, Unanswered(err)
	}
	return resp.(*kmsg.MetadataResponse), nil
}

func metadataRequest(topics []string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // nil asks for all
	for _, t := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(t)
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// Partitions returns how many partitions a topic has.
func (l *Link) Partitions(ctx context.Context, topic string) (int, error) {
	t, err := l.topic(ctx, topic)
	return len(t.Partitions), err
}

// Shape returns how many partitions a topic has, and replicas each at the least.
func (l *Link) Shape(ctx context.Context, topic string) (partitions, replicas int, err error) {
	t, err := l.topic(ctx, topic)
	for i, p := range t.Partitions {
		if i == 0 || len(p.Replicas) < replicas {
			replicas = len(p.Replicas)
		}
	}
	return len(t.Partitions), replicas, err
}

// topic returns what the cluster says of a topic, which must exist.
func (l *Link) topic(ctx context.Context, name string) (t kmsg.MetadataResponseTopic, err error) {
	meta, err := l.Metadata(ctx, name)
	if err != nil {
		return t, err
	}
	if len(meta.Topics) != 1 {
		return t, fmt.Errorf("topic %s: the broker answers of %d topics", name, len(meta.Topics))
	}
	t = meta.Topics[0]
	switch err := code(t.ErrorCode, nil); {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return t, fmt.Errorf("there is no topic %s: %w: %w", name, driver.ErrUnsupported, err)
	case err != nil:
		return t, fmt.Errorf("topic %s: %w", name, Cause(err))
	}
	return t, nil
}

// CreateTopic makes a topic with settings by the vendor's names, and returns when
// every broker knows who leads its partitions. One that is there is left as it is.
func (l *Link) CreateTopic(ctx context.Context, name string, d driver.Destination, settings map[string]string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(adminWait.Milliseconds())
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(max(d.Partitions, 1)), int16(max(d.Replicas, 1))
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, kmsg.StringPtr(settings[k])
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var id [16]byte // of the new topic, which may have the name of one just removed
	for {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		of := resp.(*kmsg.CreateTopicsResponse).Topics
		if len(of) != 1 {
			return fmt.Errorf("topic %s: the broker answers of %d topics", name, len(of))
		}
		id = of[0].TopicID
		err = code(of[0].ErrorCode, of[0].ErrorMessage)
		if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
			break
		}
		// A cluster just started has fewer brokers than it will have.
		if !kerr.IsRetriable(err) || !pause(ctx, askPause) {
			return Cause(err)
		}
	}
	return l.led(ctx, name, id)
}

// led returns when every broker knows a leader for each partition of the topic, of
// the id where that is known.
func (l *Link) led(ctx context.Context, name string, id [16]byte) error {
	for {
		meta, err := l.Metadata(ctx, name)
		if err != nil {
			return err
		}
		ok := len(meta.Brokers) > 0
		for _, b := range meta.Brokers {
			resp, err := l.Broker(int(b.NodeID)).Request(ctx, metadataRequest([]string{name}))
			if err != nil {
				return Unanswered(err)
			}
			ok = ok && isLed(resp.(*kmsg.MetadataResponse), id)
		}
		if ok {
			return nil
		}
		if !pause(ctx, askPause) {
			return fmt.Errorf("topic %s has no leaders: %w", name, driver.ErrTimeout)
		}
	}
}

func isLed(m *kmsg.MetadataResponse, id [16]byte) bool {
	if len(m.Topics) != 1 || m.Topics[0].ErrorCode != 0 || id != [16]byte{} && m.Topics[0].TopicID != id {
		return false
	}
	return !slices.ContainsFunc(m.Topics[0].Partitions, func(p kmsg.MetadataResponseTopicPartition) bool {
		return p.ErrorCode != 0 || p.Leader < 0
	})
}

// DeleteTopic removes a topic. One that is not there is no error.
func (l *Link) DeleteTopic(ctx context.Context, name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = int32(adminWait.Milliseconds())
	req.TopicNames = []string{name}
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = kmsg.StringPtr(name)
	req.Topics = append(req.Topics, t)
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		err = nil
		for _, t := range resp.(*kmsg.DeleteTopicsResponse).Topics {
			err = code(t.ErrorCode, t.ErrorMessage)
		}
		switch {
		case err == nil, errors.Is(err, kerr.UnknownTopicOrPartition):
			return nil
		case !kerr.IsRetriable(err) || !pause(ctx, askPause):
			return Cause(err)
		}
	}
}

// DeleteGroups removes consumer groups. One that is not there is no error; one
// that still has members stays, and is.
func (l *Link) DeleteGroups(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = names
	return patiently(ctx, func(ctx context.Context) error {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		var errs []error
		for _, g := range resp.(*kmsg.DeleteGroupsResponse).Groups {
			if err := code(g.ErrorCode, nil); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
				errs = append(errs, fmt.Errorf("group %s: %w", g.Group, Cause(err)))
			}
		}
		return errors.Join(errs...)
	})
}

// ForgetTopic removes what a consumer group has committed of a topic, so that a
// new topic of that name begins anew. A group or a topic that is not there, and a
// group that is consuming it, are not errors.
func (l *Link) ForgetTopic(ctx context.Context, group, topic string, partitions int) error {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = topic
	for p := range partitions {
		rp := kmsg.NewOffsetDeleteRequestTopicPartition()
		rp.Partition = int32(p)
		t.Partitions = append(t.Partitions, rp)
	}
	req.Topics = append(req.Topics, t)
	return patiently(ctx, func(ctx context.Context) error {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		err = code(resp.(*kmsg.OffsetDeleteResponse).ErrorCode, nil)
		if errors.Is(err, kerr.GroupIDNotFound) || errors.Is(err, kerr.NonEmptyGroup) {
			return nil
		}
		return Cause(err)
	})
}
