package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
)

// Begin has a group begin the partitions of the topics at a position, as the topics
// are now, but for those in which it has begun already; partitions says how many a
// topic has. A member that finds it committed need not ask for it, and fetches all
// its partitions by its first request: one that is found later waits until that is
// answered. A position that the system does not know is ErrUnsupported.
func (l *Link) Begin(ctx context.Context, group string, partitions map[string]int, from driver.Position) error {
	for _, topic := range slices.Sorted(maps.Keys(partitions)) {
		n := partitions[topic]
		have, err := l.Committed(ctx, group, topic, n)
		if err != nil {
			return err
		}
		if len(have) == n {
			continue
		}
		begins, err := l.at(ctx, topic, from)
		if err != nil {
			return err
		}
		for p := range have {
			delete(begins, p)
		}
		err = l.Commit(ctx, group, topic, begins)
		if errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) {
			return fmt.Errorf("group %s has members and has committed nothing of topic %s: where it begins is theirs to say: %w", group, topic, driver.ErrUnsupported)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// at returns the offsets of a position in a topic. What is beyond an end becomes
// that end, as the vendor's kafka-consumer-groups has it.
func (l *Link) at(ctx context.Context, topic string, from driver.Position) (map[int32]int64, error) {
	switch from.At {
	case driver.AtDefault, driver.AtEarliest:
		return l.Offsets(ctx, topic, Earliest)
	case driver.AtLatest:
		return l.Offsets(ctx, topic, Latest)
	case driver.AtOffset:
		n, err := strconv.ParseInt(from.Offset, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not an offset (0 or more): %w", from.Offset, driver.ErrUnsupported)
		}
		return l.within(ctx, topic, func(first, end int64, _ int32) int64 { return min(max(n, first), end) })
	case driver.AtTime:
		ms := from.Time.UnixMilli()
		if ms < 0 {
			return nil, fmt.Errorf("%v is before 1970, which the protocol has no word for: %w", from.Time, driver.ErrUnsupported)
		}
		then, err := l.Offsets(ctx, topic, ms)
		if err != nil {
			return nil, err
		}
		return l.within(ctx, topic, func(_, end int64, p int32) int64 {
			if then[p] < 0 {
				return end
			}
			return then[p]
		})
	}
	return nil, fmt.Errorf("a subscription from %v: %w", from.At, driver.ErrUnsupported)
}

// within returns for each partition what choose makes of the partition's ends.
func (l *Link) within(ctx context.Context, topic string, choose func(first, end int64, p int32) int64) (map[int32]int64, error) {
	firsts, err := l.Offsets(ctx, topic, Earliest)
	if err != nil {
		return nil, err
	}
	ends, err := l.Offsets(ctx, topic, Latest)
	if err != nil {
		return nil, err
	}
	for p, end := range ends {
		ends[p] = choose(firsts[p], end, p)
	}
	return ends, nil
}

// Free reports, by ErrUnsupported, that a group's name is taken: by members that
// are not consumers of the classic protocol, or that consume other topics.
func (l *Link) Free(ctx context.Context, group string, topics []string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for {
		g, err := l.describe(ctx, group)
		if err != nil {
			return err
		}
		switch g.State {
		case "Dead": // or of another kind, which this question is not about
			return l.otherKind(ctx, group)
		case "Empty":
			return nil
		case "Stable":
			return taken(g, topics)
		}
		if g.ProtocolType != "" && g.ProtocolType != consumers {
			return taken(g, topics)
		}
		if !pause(ctx, askPause) {
			return fmt.Errorf("group %s has not agreed after %v: %w", group, askLimit, driver.ErrTimeout)
		}
	}
}

// consumers is the type of protocol of a consumer group's members.
const consumers = "consumer"

func (l *Link) describe(ctx context.Context, group string) (g kmsg.DescribeGroupsResponseGroup, err error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	err = patiently(ctx, func(ctx context.Context) error {
		resp, err := l.Request(ctx, req)
		if err != nil {
			return Unanswered(err)
		}
		of := resp.(*kmsg.DescribeGroupsResponse).Groups
		if len(of) != 1 {
			return fmt.Errorf("group %s: the broker answers of %d groups", group, len(of))
		}
		g = of[0]
		if err := code(g.ErrorCode, nil); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return fmt.Errorf("group %s: %w", group, Cause(err))
		}
		return nil
	})
	if g.ErrorCode != 0 {
		g.State = "Dead"
	}
	return g, err
}

// taken returns why a stable group is not one of consumers of the topics.
func taken(g kmsg.DescribeGroupsResponseGroup, topics []string) error {
	if g.ProtocolType != consumers {
		return fmt.Errorf("group %s: name taken by members of the type %q: %w", g.Group, g.ProtocolType, driver.ErrUnsupported)
	}
	for _, m := range g.Members {
		meta := kmsg.ConsumerMemberMetadata{}
		if err := meta.ReadFrom(m.ProtocolMetadata); err != nil {
			return fmt.Errorf("group %s: name taken, what %s consumes is not readable: %w: %w", g.Group, m.MemberID, driver.ErrUnsupported, err)
		}
		theirs := slices.Sorted(slices.Values(meta.Topics))
		if !slices.Equal(theirs, slices.Sorted(slices.Values(topics))) {
			return fmt.Errorf("group %s: name taken by consumers of %v: %w", g.Group, theirs, driver.ErrUnsupported)
		}
	}
	return nil
}

// otherKind reports that there is a group of the name with members of another
// protocol than the classic one.
func (l *Link) otherKind(ctx context.Context, group string) error {
	for _, shard := range l.RequestSharded(ctx, kmsg.NewPtrListGroupsRequest()) {
		if shard.Err != nil {
			return Unanswered(shard.Err)
		}
		for _, g := range shard.Resp.(*kmsg.ListGroupsResponse).Groups {
			if g.Group == group && g.GroupType != "" && g.GroupType != "classic" && g.GroupState != "Empty" && g.GroupState != "Dead" {
				return fmt.Errorf("group %s: name taken by a group of the type %q: %w", group, g.GroupType, driver.ErrUnsupported)
			}
		}
	}
	return nil
}
