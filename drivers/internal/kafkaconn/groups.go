package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// consumers is the protocol type of consumer group members.
const consumers = "consumer"

// Free returns ErrUnsupported if the group name is taken by members that are not classic-protocol
// consumers, or that consume other topics.
func (l *Link) Free(ctx context.Context, group string, topics []string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for {
		var g kadm.DescribedGroup
		err := patiently(ctx, func(ctx context.Context) (err error) {
			g, err = l.describe(ctx, group)
			return about("group "+group, err)
		})
		switch {
		case errors.Is(err, kerr.GroupIDNotFound), err == nil && g.State == "Dead": // or of another protocol
			return l.otherKind(ctx, group)
		case err != nil:
			return err
		case g.State == "Empty":
			return nil
		case g.State == "Stable", g.ProtocolType != "" && g.ProtocolType != consumers:
			return taken(g, topics)
		}
		if !retry.Pause(ctx, askPause) {
			return fmt.Errorf("group %s has not agreed after %v: %w", group, askLimit, driver.ErrTimeout)
		}
	}
}

// describe queries a classic-protocol group once.
func (l *Link) describe(ctx context.Context, group string) (kadm.DescribedGroup, error) {
	gs, err := l.admin.DescribeGroups(ctx, group)
	if err == nil {
		err = gs[group].Err
	}
	return gs[group], err
}

// taken returns an error if a group's members are not consumers of the topics.
func taken(g kadm.DescribedGroup, topics []string) error {
	if g.ProtocolType != consumers {
		return fmt.Errorf("group %s: name taken by members of the type %q: %w", g.Group, g.ProtocolType, driver.ErrUnsupported)
	}
	for _, m := range g.Members {
		var theirs []string
		if meta, ok := m.Join.AsConsumer(); ok {
			theirs = slices.Sorted(slices.Values(meta.Topics))
		}
		if !slices.Equal(theirs, slices.Sorted(slices.Values(topics))) {
			return fmt.Errorf("group %s: name taken by consumers of %v: %w", g.Group, theirs, driver.ErrUnsupported)
		}
	}
	return nil
}

// otherKind returns an error if a group with this name has members that use another protocol than
// the classic one.
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

// Shared reports whether a group is stable and has assigned every partition of the topics;
// partitions gives the counts.
func (l *Link) Shared(ctx context.Context, group string, partitions map[string]int) (bool, error) {
	g, err := l.describe(ctx, group)
	if err != nil || g.State != "Stable" {
		return false, Unanswered(err)
	}
	assigned := g.AssignedPartitions()
	for t, n := range partitions {
		if len(assigned[t]) < n {
			return false, nil
		}
	}
	return true, nil
}

// DeleteGroups removes consumer groups. It is no error if a group is missing. A group that still
// has members is not removed, which is an error.
func (l *Link) DeleteGroups(ctx context.Context, names ...string) error {
	return patiently(ctx, func(ctx context.Context) error {
		rs, err := l.admin.DeleteGroups(ctx, names...)
		errs := []error{err}
		for _, g := range rs.Sorted() {
			if !errors.Is(g.Err, kerr.GroupIDNotFound) {
				errs = append(errs, about("group "+g.Group, g.Err))
			}
		}
		return errors.Join(errs...)
	})
}

// ForgetTopic removes a group's committed offsets of a topic, so that a new topic of that name
// starts afresh. It is no error if the group or topic is missing, or if the group is consuming the
// topic.
func (l *Link) ForgetTopic(ctx context.Context, group, topic string, partitions int) error {
	var of kadm.TopicsSet
	for p := range partitions {
		of.Add(topic, int32(p))
	}
	return patiently(ctx, func(ctx context.Context) error {
		_, err := l.admin.DeleteOffsets(ctx, group, of)
		if errors.Is(err, kerr.GroupIDNotFound) || errors.Is(err, kerr.NonEmptyGroup) {
			return nil
		}
		return err
	})
}

// TransactionLog makes the cluster create its transaction log, which it does on the first request
// for it. id is any transactional.id.
func (l *Link) TransactionLog(ctx context.Context, id string) error {
	return patiently(ctx, func(ctx context.Context) error {
		c := l.admin.FindTxnCoordinators(ctx, id)[id]
		return said(c.Err, c.ErrMessage)
	})
}
