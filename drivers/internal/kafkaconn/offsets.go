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

// The instants by which an end of a partition is asked for.
// (https://kafka.apache.org/43/design/protocol/#The_Messages_ListOffsets)
const (
	Latest   = -1 // behind the last message
	Earliest = -2 // the first message that is still there
)

// Offsets returns an offset of each partition of the topic: Latest, Earliest, or
// of the first message at an instant, in ms since 1970, or later; where there is
// none, Latest.
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

// Committed returns the offsets that a group has committed of a topic's partitions; those
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

// Commit has a group without members begin a topic's partitions at offsets.
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

// commitLimit bounds one commit, its retries included.
const commitLimit = 10 * time.Second

// CommitPositions commits positions of the group that the client is a member of, within
// ctx and 10 s. refused is called for each partition without one that the broker took.
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

// Lag returns how far a group is behind on a topic: what is there, and not
// committed.
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
