package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

const (
	readyLimit = 30 * time.Second // by default, a broker waits 3 s for members, and again after each change
	readyPause = 25 * time.Millisecond
)

// A Membership describes a group member and its receiver.
type Membership struct {
	Run        driver.Run
	Name       string         // of the member, for events
	Group      string         // its name
	Partitions map[string]int // partition count by topic
	Reader     Reader
	Fault      func(error) // takes survived faults; called by any goroutine
}

// A Reader takes the messages of a group member. Its methods are called one at a time, except for
// Taken and Anew, which the client may call during Room.
type Reader interface {
	// Room waits until messages may be taken, and returns how many; 0 if ctx has ended.
	Room(ctx context.Context) int
	// Take takes the result of one poll, with each partition in order. The slice rs belongs to the
	// caller again on return; the records do not.
	Take(ctx context.Context, rs []*kgo.Record)
	// Taken is called before the group gives partitions to other members, with this member's
	// client, which Join may not have returned yet.
	Taken(ctx context.Context, client *kgo.Client, ps map[string][]int32)
	// Anew is called when this member receives partitions, and when others may already have them:
	// any state about them is stale.
	Anew(ps map[string][]int32)
}

// A Member is a member of a group, from Join until its Link is closed.
type Member struct {
	Membership
	Link *Link

	gone   chan error
	joined atomic.Bool  // received an assignment, possibly empty
	share  atomic.Int64 // number of partitions assigned
	placed atomic.Bool  // positions have been fetched
	rs     []*kgo.Record
}

// Join connects a client with additional options that joins the group. The Reader may be called
// before Join returns.
func (h *Hold) Join(ctx context.Context, ms Membership, more ...kgo.Opt) (*Member, error) {
	m := &Member{Membership: ms, gone: make(chan error, 1)}
	opts := append(h.cfg.Receiving.client(m.Group, slices.Sorted(maps.Keys(m.Partitions))),
		kgo.OnOffsetsFetched(m.offsets), kgo.OnPartitionsAssigned(m.assigned), kgo.OnPartitionsRevoked(m.revoked), kgo.OnPartitionsLost(m.lost),
		kgo.WithHooks(groupErrors(m.groupError)))
	var err error
	if m.Link, err = h.Connect(ctx, m.Run, m.Name, m.Fault, append(opts, more...)...); err != nil {
		return nil, err
	}
	return m, nil
}

// Ready waits until the group has assigned every partition and this member knows its positions, or
// until ctx ends.
func (m *Member) Ready(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		if m.joined.Load() && (m.placed.Load() || m.share.Load() == 0) {
			ok, err := m.Link.Shared(limit, m.Group, m.Partitions)
			if ok {
				return nil
			}
			if err != nil && limit.Err() == nil {
				m.Fault(err)
			}
		}
		select {
		case <-time.After(readyPause):
		case err := <-m.gone:
			return err
		case <-limit.Done():
			return fmt.Errorf("the group has not agreed after %v: %w", readyLimit, driver.ErrTimeout)
		}
	}
}

// Poll passes messages to the Reader until ctx ends, or returns why the subscription is permanently
// lost.
func (m *Member) Poll(ctx context.Context) error {
	for ctx.Err() == nil {
		n := m.Reader.Room(ctx)
		if n <= 0 {
			return nil // ctx has ended
		}
		fetches := m.Link.PollRecords(ctx, n)
		m.rs = m.rs[:0]
		for i := range fetches {
			for j := range fetches[i].Topics {
				t := &fetches[i].Topics[j]
				for k := range t.Partitions {
					p := &t.Partitions[k]
					if p.Err != nil {
						m.fault(ctx, t.Topic, p)
					}
					m.rs = append(m.rs, p.Records...)
				}
			}
		}
		if len(m.rs) > 0 {
			m.Reader.Take(ctx, m.rs)
		}
		m.Link.AllowRebalance()
		select {
		case err := <-m.gone:
			return err
		default:
		}
	}
	return nil
}

// fault reports a fetch error, or that the subscription is permanently lost.
func (m *Member) fault(ctx context.Context, topic string, p *kgo.FetchPartition) {
	// The end of a group session is also reported through groupError.
	if session := (*kgo.ErrGroupSession)(nil); ctx.Err() != nil || errors.As(p.Err, &session) {
		return
	}
	err := Cause(p.Err)
	if topic != "" {
		err = fmt.Errorf("topic %s, partition %d: %w", topic, p.Partition, err)
	}
	if fatal(err) {
		m.give(err)
		return
	}
	m.Fault(err)
}

// fatal reports whether retrying is pointless.
func fatal(err error) bool {
	return failure.Hopeless(err) || errors.Is(err, driver.ErrClosed)
}

// give makes Ready or Poll return err.
func (m *Member) give(err error) {
	select {
	case m.gone <- fmt.Errorf("subscription lost: %w", err):
	default:
	}
}

// groupErrors receives the client's reason for leaving and rejoining its group.
type groupErrors func(error)

func (g groupErrors) OnGroupManageError(err error) { g(err) }

var _ kgo.HookGroupManageError = groupErrors(nil)

func (m *Member) groupError(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if err = Cause(err); fatal(err) {
		m.give(err)
		return
	}
	m.Fault(fmt.Errorf("group: %w", err))
}

// assigned, revoked and lost are client callbacks: one at a time, and never between a poll and the
// following AllowRebalance.
func (m *Member) assigned(_ context.Context, _ *kgo.Client, ps map[string][]int32) {
	for _, p := range ps {
		m.share.Add(int64(len(p)))
	}
	m.joined.Store(true)
	m.Reader.Anew(ps)
	m.tell("given", ps)
}

func (m *Member) offsets(context.Context, *kgo.Client, *kmsg.OffsetFetchResponse) error {
	m.placed.Store(true)
	return nil
}

func (m *Member) revoked(ctx context.Context, client *kgo.Client, ps map[string][]int32) {
	m.Reader.Taken(ctx, client, ps)
	m.tell("took", ps)
}

func (m *Member) lost(_ context.Context, _ *kgo.Client, ps map[string][]int32) {
	m.Reader.Anew(ps)
	m.tell("lost", ps)
}

// tell reports that partitions changed hands.
func (m *Member) tell(what string, ps map[string][]int32) {
	n := 0
	for _, p := range ps {
		n += len(p)
	}
	if n > 0 {
		m.Run.Tell("rebalance", fmt.Sprintf("%s: %s %d partitions", m.Name, what, n))
	}
}
