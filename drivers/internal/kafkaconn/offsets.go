package kafkaconn

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
)

// The instants by which an end of a partition is asked for.
// (https://kafka.apache.org/43/design/protocol/#The_Messages_ListOffsets)
const (
	Latest   = -1 // behind the last message
	Earliest = -2 // the first message that is still there
)

// Offsets returns an offset of each partition of the topic: Latest, Earliest, or
// of the first message at an instant, in ms since 1970, or later; -1 where there
// is none.
func (l *Link) Offsets(ctx context.Context, topic string, at int64) (map[int32]int64, error) {
	n, err := l.Partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for p := range n {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = int32(p), at
		t.Partitions = append(t.Partitions, rp)
	}
	req.Topics = append(req.Topics, t)
	out := map[int32]int64{}
	err = patiently(ctx, func(ctx context.Context) error {
		for _, shard := range l.RequestSharded(ctx, req) {
			if shard.Err != nil {
				return Unanswered(shard.Err)
			}
			for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
				for _, p := range t.Partitions {
					if err := code(p.ErrorCode, nil); err != nil {
						return fmt.Errorf("topic %s, partition %d: %w", topic, p.Partition, Cause(err))
					}
					out[p.Partition] = p.Offset
				}
			}
		}
		return nil
	})
	return out, err
}

// Committed returns the offsets that a group has committed of a topic's
// partitions; those of which it has committed none are absent.
func (l *Link) Committed(ctx context.Context, group, topic string, partitions int) (map[int32]int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic = topic
	for p := range partitions {
		t.Partitions = append(t.Partitions, int32(p))
	}
	g.Topics = append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	out := map[int32]int64{}
	err := patiently(ctx, func(ctx context.Context) error {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		for _, g := range resp.(*kmsg.OffsetFetchResponse).Groups {
			if err := code(g.ErrorCode, nil); errors.Is(err, kerr.GroupIDNotFound) {
				return nil
			} else if err != nil {
				return fmt.Errorf("group %s: %w", group, Cause(err))
			}
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					if err := code(p.ErrorCode, nil); err != nil {
						return fmt.Errorf("group %s, topic %s, partition %d: %w", group, topic, p.Partition, Cause(err))
					}
					if p.Offset >= 0 {
						out[p.Partition] = p.Offset
					}
				}
			}
		}
		return nil
	})
	return out, err
}

// Commit has a group without members begin a topic's partitions at offsets.
func (l *Link) Commit(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	of, err := l.topic(ctx, topic)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, of.TopicID // by name or id, as the broker's version has it
	for p, o := range offsets {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch = p, o, -1
		t.Partitions = append(t.Partitions, rp)
	}
	req.Topics = append(req.Topics, t)
	return patiently(ctx, func(ctx context.Context) error {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		for _, t := range resp.(*kmsg.OffsetCommitResponse).Topics {
			for _, p := range t.Partitions {
				if err := code(p.ErrorCode, nil); err != nil {
					return fmt.Errorf("group %s, topic %s, partition %d: %w", group, topic, p.Partition, Cause(err))
				}
			}
		}
		return nil
	})
}

// Lag returns how far a group is behind on a topic: what is there, and not
// committed.
func (l *Link) Lag(ctx context.Context, group, topic string) (uint64, error) {
	ends, err := l.Offsets(ctx, topic, Latest)
	if err != nil {
		return 0, err
	}
	committed, err := l.Committed(ctx, group, topic, len(ends))
	if err != nil {
		return 0, err
	}
	var begins map[int32]int64
	if len(committed) < len(ends) {
		if begins, err = l.Offsets(ctx, topic, Earliest); err != nil {
			return 0, err
		}
	}
	var n uint64
	for p, end := range ends {
		from, ok := committed[p]
		if !ok {
			from = begins[p]
		}
		n += uint64(max(0, end-from))
	}
	return n, nil
}

// Shared reports whether a group has agreed, and has dealt out every partition of
// the topics, of which partitions says how many there are.
func (l *Link) Shared(ctx context.Context, group string, partitions map[string]int) (bool, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	resp, err := l.Request(ctx, req)
	if err != nil {
		return false, Unanswered(err)
	}
	dealt := map[string]int{}
	for _, g := range resp.(*kmsg.DescribeGroupsResponse).Groups {
		if err := code(g.ErrorCode, nil); err != nil {
			return false, Cause(err)
		}
		if g.State != "Stable" {
			return false, nil
		}
		for _, m := range g.Members {
			a := kmsg.ConsumerMemberAssignment{}
			if err := a.ReadFrom(m.MemberAssignment); err != nil {
				return false, fmt.Errorf("group %s: the share of %s is not readable: %w", group, m.MemberID, err)
			}
			for _, t := range a.Topics {
				dealt[t.Topic] += len(t.Partitions)
			}
		}
	}
	for t, n := range partitions {
		if dealt[t] < n {
			return false, nil
		}
	}
	return true, nil
}

// transactions is the topic in which the brokers decide about transactions.
const transactions = "__transaction_state"

// TransactionLog has the cluster have a log of transactions, which it makes when one
// is first asked for. id is any transactional.id.
func (l *Link) TransactionLog(ctx context.Context, id string) error {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = 1, id, []string{id} // one or the other, as the version has it
	return patiently(ctx, func(ctx context.Context) error {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		r := resp.(*kmsg.FindCoordinatorResponse)
		if err := code(r.ErrorCode, r.ErrorMessage); err != nil {
			return Cause(err)
		}
		for _, c := range r.Coordinators {
			if err := code(c.ErrorCode, c.ErrorMessage); err != nil {
				return Cause(err)
			}
		}
		return nil
	})
}

// TransactionFacts reads what a decision in the log of transactions means.
func (l *Link) TransactionFacts(ctx context.Context) (driver.Facts, error) {
	return l.Facts(ctx, "all", []string{transactions})
}
