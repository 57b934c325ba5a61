package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/weirmq/weir/driver"
)

// Begin sets a group's position in the topics' partitions as they are now, except for partitions
// already begun; partitions gives each topic's count. A member that finds a committed position need
// not ask for it and fetches all its partitions with the first request; a partition resolved later
// waits until that is answered. An unsupported position is ErrUnsupported.
func (l *Link) Begin(ctx context.Context, group string, partitions map[string]int, from driver.Position) error {
	for _, topic := range slices.Sorted(maps.Keys(partitions)) {
		have, err := l.Committed(ctx, group, topic)
		if err != nil {
			return err
		}
		if len(have) == partitions[topic] {
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

// at returns a position's offsets in a topic. A position beyond an end becomes that end, as in the
// vendor's kafka-consumer-groups.
func (l *Link) at(ctx context.Context, topic string, from driver.Position) (map[int32]int64, error) {
	switch from.At {
	case driver.AtDefault, driver.AtEarliest:
		return l.Offsets(ctx, topic, Earliest)
	case driver.AtLatest:
		return l.Offsets(ctx, topic, Latest)
	case driver.AtTime:
		ms := from.Time.UnixMilli()
		if ms < 0 {
			return nil, fmt.Errorf("%v: timestamps before 1970 are not supported: %w", from.Time, driver.ErrUnsupported)
		}
		return l.Offsets(ctx, topic, ms)
	case driver.AtOffset:
		n, err := strconv.ParseInt(from.Offset, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not an offset (0 or more): %w", from.Offset, driver.ErrUnsupported)
		}
		firsts, err := l.Offsets(ctx, topic, Earliest)
		if err != nil {
			return nil, err
		}
		ends, err := l.Offsets(ctx, topic, Latest)
		for p, end := range ends {
			ends[p] = min(max(n, firsts[p]), end)
		}
		return ends, err
	}
	return nil, fmt.Errorf("a subscription from %v: %w", from.At, driver.ErrUnsupported)
}
