package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Special timestamps for requesting the ends of a partition
// (https://kafka.apache.org/43/design/protocol/#The_Messages_ListOffsets).
const (
	Latest   = -1 // after the last message
	Earliest = -2 // the first message still present
)

// Offsets returns an offset for each partition of the topic: Latest, Earliest, or the first message
// at or after a time, in ms since 1970. Partitions without such a message return Latest.
func (l *Link) Offsets(ctx context.Context, topic string, at int64) (map[int32]int64, error) {
	if _, err := l.Partitions(ctx, topic); err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	err := patiently(ctx, func(ctx context.Context) (err error) {
		var list kadm.ListedOffsets
		switch at {
		case Latest:
			list, err = l.admin.ListEndOffsets(ctx, topic)
		case Earliest:
			list, err = l.admin.ListStartOffsets(ctx, topic)
		default:
			list, err = l.admin.ListOffsetsAfterMilli(ctx, at, topic)
		}
		if err != nil {
			return err
		}
		for p, o := range list[topic] {
			if o.Err != nil {
				return fmt.Errorf("topic %s, partition %d: %w", topic, p, o.Err)
			}
			out[p] = o.Offset
		}
		return nil
	})
	return out, err
}

// Committed returns the offsets that a group has committed for a topic's partitions; partitions
// without one are absent.
func (l *Link) Committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	out := map[int32]int64{}
	err := patiently(ctx, func(ctx context.Context) error {
		rs, err := l.admin.FetchOffsets(ctx, group)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return nil
		}
		for p, r := range rs[topic] {
			if r.Err != nil {
				return fmt.Errorf("group %s, topic %s, partition %d: %w", group, topic, p, r.Err)
			}
			if r.At >= 0 {
				out[p] = r.At
			}
		}
		return about("group "+group, err)
	})
	return out, err
}

// Commit sets the offsets of a topic's partitions for a group without members.
func (l *Link) Commit(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	var os kadm.Offsets
	for p, o := range offsets {
		os.AddOffset(topic, p, o, -1)
	}
	return patiently(ctx, func(ctx context.Context) error {
		rs, err := l.admin.CommitOffsets(ctx, group, os)
		rs.EachError(func(r kadm.OffsetResponse) {
			err = fmt.Errorf("group %s, topic %s, partition %d: %w", group, topic, r.Partition, r.Err)
		})
		return err
	})
}

// commitLimit limits one commit, retries included.
const commitLimit = 10 * time.Second

// CommitPositions commits positions for the client's group, within ctx and 10 s. It calls refused
// for each partition that the broker did not accept.
func CommitPositions(ctx context.Context, client *kgo.Client, at map[string]map[int32]kgo.EpochOffset, refused func(topic string, partition int32, err error)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	client.CommitOffsetsSync(ctx, at, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, e error) {
		if err = e; err != nil {
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if e := kerr.ErrorForCode(p.ErrorCode); e != nil {
					refused(t.Topic, p.Partition, e)
				}
			}
		}
	})
	return Cause(err)
}

// Lag returns how many messages of a topic a group has not committed.
func (l *Link) Lag(ctx context.Context, group, topic string) (uint64, error) {
	ends, err := l.Offsets(ctx, topic, Latest)
	if err != nil {
		return 0, err
	}
	committed, err := l.Committed(ctx, group, topic)
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
