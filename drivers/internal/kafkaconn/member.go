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
	readyLimit = 30 * time.Second // a vendor's broker waits 3 s for a group to gather, and again for each change
	readyPause = 25 * time.Millisecond
)

// A Membership is a place in a group, and the receiver of what it gets.
type Membership struct {
	Run        driver.Run
	Name       string         // of the member, in events
	Group      string         // its name
	Partitions map[string]int // how many each of its topics has
	Reader     Reader
	Fault      func(error) // takes what is survived; any goroutine calls it
}

// A Reader takes what a member of a group gets. Its methods are called one at a
// time, but for Taken and Anew, which the client may call during Room.
type Reader interface {
	// Room waits until messages may be taken, and returns how many; 0 when ctx has
	// ended.
	Room(ctx context.Context) int
	// Take takes all that one poll yielded, in the order of each partition. rs is
	// the caller's again on return, the records are not.
	Take(ctx context.Context, rs []*kgo.Record)
	// Taken is called before the group gives partitions to others, with the member's
	// client, which Join may not have returned yet.
	Taken(ctx context.Context, client *kgo.Client, ps map[string][]int32)
	// Anew is called when partitions were given to this member, and when others may
	// have them already: what is known of them is of the past.
	Anew(ps map[string][]int32)
}

// A Member is a member of a group, from Join to the Close of its Link.
type Member struct {
	Membership
	Link *Link

	gone   chan error
	joined atomic.Bool  // it was given its share, if only none
	share  atomic.Int64 // partitions given in all
	placed atomic.Bool  // positions were fetched
	rs     []*kgo.Record
}

// Join connects a client that joins the group, with more options. The Reader may be
// called before Join returns.
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

// Ready returns when this is a member of a group that has dealt out every
// partition, and knows the positions of its share; or when ctx has ended.
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

// Poll has the Reader take what comes until ctx ends, or returns why the
// subscription is lost for good.
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

// fault reports an error of a fetch, or that the subscription is lost for good.
func (m *Member) fault(ctx context.Context, topic string, p *kgo.FetchPartition) {
	// What ends a session of the group comes by groupError too.
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

// fatal reports whether trying again cannot help.
func fatal(err error) bool {
	return failure.Hopeless(err) || errors.Is(err, driver.ErrClosed)
}

// give has Ready or Poll return err.
func (m *Member) give(err error) {
	select {
	case m.gone <- fmt.Errorf("subscription lost: %w", err):
	default:
	}
}

// groupErrors is told by the client why it left its group, to join it again.
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

// assigned, revoked and lost are called by the client, one at a time, and never
// between a poll and the AllowRebalance behind it.
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

// tell says that partitions changed hands.
func (m *Member) tell(what string, ps map[string][]int32) {
	n := 0
	for _, p := range ps {
		n += len(p)
	}
	if n > 0 {
		m.Run.Tell("rebalance", fmt.Sprintf("%s: %s %d partitions", m.Name, what, n))
	}
}
