package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

const (
	prefetch   = 4096             // where the scenario leaves it open: some milliseconds of commits at full speed
	readyLimit = 30 * time.Second // a vendor's broker waits 3 s for a group to gather, and again for each change
	readyPause = 25 * time.Millisecond
	endLimit   = 5 * time.Second
)

// A consumer is a member of the subscription's group, from when it runs.
type consumer struct {
	conn       *conn
	spec       driver.ConsumerSpec
	name, id   string // of the consumer in events; of the group
	topics     []string
	partitions map[string]int
	prefetch   int

	mu   sync.Mutex
	link *kafkaconn.Link // set by Run
}

// Consumer finds the topics, and where the group begins. It joins it in Run: a
// member is given messages from when it is one.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{
		conn: c, spec: spec, prefetch: spec.Prefetch, id: c.group(spec.Subscription, spec.Durable),
		name: fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index),
	}
	if !slices.Contains([]driver.Settle{driver.SettleBatch, driver.SettleEach, driver.SettleAuto}, spec.Settle) {
		return nil, fmt.Errorf("kafka: settle %v: %w", spec.Settle, driver.ErrUnsupported)
	}
	if x.prefetch <= 0 {
		x.prefetch = prefetch
	}
	var err error
	if _, x.partitions, err = c.topics(ctx, spec.Destinations); err != nil {
		return nil, fmt.Errorf("kafka: %s: %w", x.name, err)
	}
	x.topics = slices.Sorted(maps.Keys(x.partitions))
	if err := x.begin(ctx); err != nil {
		return nil, fmt.Errorf("kafka: %s: %w", x.name, err)
	}
	return x, nil
}

// begin has the group begin where it was asked to, if it has not begun. Consumers
// that are opened at once come one after the other, so that the first decides.
func (x *consumer) begin(ctx context.Context) error {
	c := x.conn
	c.beginning.Lock()
	defer c.beginning.Unlock()
	c.mu.Lock()
	_, ours := c.groups[x.id]
	c.mu.Unlock()
	if x.spec.Durable && !ours {
		if err := c.link.Free(ctx, x.id, x.topics); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.groups[x.id] = x.spec.Durable
	c.mu.Unlock()
	return c.link.Begin(ctx, x.id, x.partitions, x.spec.From)
}

// A running is one Run.
type running struct {
	x      *consumer
	sink   driver.Sink
	link   *kafkaconn.Link
	settle *settler // nil: the client commits
	gone   chan error
	joined atomic.Bool  // this member was given its share, if only none
	share  atomic.Int64 // partitions given in all
	placed atomic.Bool  // positions were fetched
	ds     []driver.Delivery
	rs     []*kgo.Record
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	r := &running{x: x, sink: sink, gone: make(chan error, 1)}
	opts := append(x.conn.cfg.consuming(x.id, x.topics, x.spec.Settle),
		kgo.OnOffsetsFetched(r.offsets), kgo.OnPartitionsAssigned(r.assigned), kgo.OnPartitionsRevoked(r.revoked), kgo.OnPartitionsLost(r.lost),
		kgo.WithHooks(groupErrors(r.groupError)))
	if x.spec.Settle != driver.SettleAuto {
		r.settle = newSettler(r, x.spec.Settle == driver.SettleEach)
	}
	link, err := kafkaconn.Connect(ctx, &x.conn.cfg.Options, x.conn.run, x.name, sink.Fault, opts...)
	if ctx.Err() != nil && err != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kafka: %s: %w", x.name, err)
	}
	x.mu.Lock()
	x.link = link
	x.mu.Unlock()
	var loop sync.WaitGroup
	if r.settle != nil {
		r.settle.link.Store(link)
		loop.Go(r.settle.loop)
	}
	r.link = link
	if err = r.ready(ctx); err == nil && ctx.Err() == nil {
		sink.Ready()
		err = r.poll(ctx)
	}
	r.finish()
	if r.settle != nil {
		r.settle.close()
	}
	loop.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// consuming returns the client's options for a member of a group.
func (c *Config) consuming(group string, topics []string, settle driver.Settle) []kgo.Opt {
	balancer := map[string]kgo.GroupBalancer{
		"cooperative-sticky": kgo.CooperativeStickyBalancer(), "sticky": kgo.StickyBalancer(),
		"range": kgo.RangeBalancer(), "round-robin": kgo.RoundRobinBalancer(),
	}[c.Balancer]
	opts := []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topics...),
		// Where a group begins is committed before it meets (begin). This is for
		// what was removed from the log since.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(c.SessionTimeout),
		kgo.BlockRebalanceOnPoll(),
		kgo.KeepRetryableFetchErrors(), // they are for Fault; the client retries all the same
		kgo.FetchMaxWait(c.FetchMaxWait),
		kgo.FetchMinBytes(int32(c.FetchMinBytes)),
		kgo.FetchMaxBytes(int32(c.FetchMaxBytes)),
	}
	if settle == driver.SettleAuto {
		return append(opts, kgo.AutoCommitInterval(c.AutoCommit))
	}
	return append(opts, kgo.DisableAutoCommit())
}

// ready returns when this is a member of a group that has dealt out every
// partition, and knows the positions of its share.
func (r *running) ready(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		if r.joined.Load() && (r.placed.Load() || r.share.Load() == 0) {
			ok, err := r.link.Shared(limit, r.x.id, r.x.partitions)
			if ok {
				return nil
			}
			if err != nil && limit.Err() == nil {
				r.sink.Fault(err)
			}
		}
		select {
		case <-time.After(readyPause):
		case err := <-r.gone:
			return err
		case <-limit.Done():
			return fmt.Errorf("kafka: %s: the group has not agreed after %v: %w", r.x.name, readyLimit, driver.ErrTimeout)
		}
	}
}

// poll delivers until ctx ends.
func (r *running) poll(ctx context.Context) error {
	for ctx.Err() == nil {
		n := r.x.prefetch
		if r.settle != nil {
			n = r.settle.room(ctx, n)
		}
		if n <= 0 {
			return nil // ctx has ended
		}
		fetches := r.link.PollRecords(ctx, n)
		r.deliver(ctx, fetches)
		r.link.AllowRebalance()
		select {
		case err := <-r.gone:
			return err
		default:
		}
	}
	return nil
}

// deliver hands over all that a poll yielded, and notes it as to be committed.
func (r *running) deliver(ctx context.Context, fetches kgo.Fetches) {
	r.ds, r.rs = r.ds[:0], r.rs[:0]
	for i := range fetches {
		for j := range fetches[i].Topics {
			t := &fetches[i].Topics[j]
			for k := range t.Partitions {
				p := &t.Partitions[k]
				if p.Err != nil {
					r.fault(ctx, t.Topic, p)
				}
				for _, rec := range p.Records {
					r.rs = append(r.rs, rec)
					r.ds = append(r.ds, driver.Delivery{Key: rec.Key, Payload: rec.Value, Partition: rec.Partition})
				}
			}
		}
	}
	if len(r.ds) == 0 {
		return
	}
	err := r.sink.Deliver(r.ds)
	if r.settle == nil {
		return
	}
	if err != nil {
		r.settle.refuse(r.rs)
		return
	}
	r.settle.add(r.ds, r.rs)
}

// fault reports an error of a fetch, or that the subscription is lost for good.
func (r *running) fault(ctx context.Context, topic string, p *kgo.FetchPartition) {
	// What ends a session of the group comes by groupError too.
	if session := (*kgo.ErrGroupSession)(nil); ctx.Err() != nil || errors.As(p.Err, &session) {
		return
	}
	err := kafkaconn.Cause(p.Err)
	if topic != "" {
		err = fmt.Errorf("topic %s, partition %d: %w", topic, p.Partition, err)
	}
	if fatal(err) {
		r.give(err)
		return
	}
	r.sink.Fault(err)
}

// fatal reports whether trying again cannot help.
func fatal(err error) bool {
	return errors.Is(err, driver.ErrAuth) || errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrClosed)
}

// give has Run return err.
func (r *running) give(err error) {
	select {
	case r.gone <- fmt.Errorf("kafka: %s: subscription lost: %w", r.x.name, err):
	default:
	}
}

// groupErrors is told by the client why it left its group, to join it again.
type groupErrors func(error)

// OnGroupManageError implements kgo.HookGroupManageError.
func (g groupErrors) OnGroupManageError(err error) { g(err) }

var _ kgo.HookGroupManageError = groupErrors(nil)

func (r *running) groupError(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if err = kafkaconn.Cause(err); fatal(err) {
		r.give(err)
		return
	}
	r.sink.Fault(fmt.Errorf("group: %w", err))
}

// assigned, revoked and lost are called by the client, one at a time, and never
// between a poll and the AllowRebalance behind it.
func (r *running) assigned(_ context.Context, _ *kgo.Client, ps map[string][]int32) {
	for _, p := range ps {
		r.share.Add(int64(len(p)))
	}
	r.joined.Store(true)
	r.event("given", ps)
}

func (r *running) offsets(context.Context, *kgo.Client, *kmsg.OffsetFetchResponse) error {
	r.placed.Store(true)
	return nil
}

func (r *running) revoked(ctx context.Context, client *kgo.Client, ps map[string][]int32) {
	if r.settle != nil {
		r.settle.drain(ctx, endLimit)
		r.settle.forget(ps)
	} else {
		short, cancel := context.WithTimeout(ctx, endLimit)
		defer cancel()
		if err := client.CommitUncommittedOffsets(short); err != nil {
			r.sink.Fault(fmt.Errorf("not settled: %w", kafkaconn.Cause(err)))
		}
	}
	r.event("took", ps)
}

func (r *running) lost(_ context.Context, _ *kgo.Client, ps map[string][]int32) {
	if r.settle != nil {
		r.settle.forget(ps)
	}
	r.event("lost", ps)
}

// event says that partitions changed hands.
func (r *running) event(what string, ps map[string][]int32) {
	n := 0
	for _, p := range ps {
		n += len(p)
	}
	if emit := r.x.conn.run.Event; emit != nil && n > 0 {
		emit("rebalance", fmt.Sprintf("%s: %s %d partitions", r.x.name, what, n))
	}
}

// finish has what was accepted committed.
func (r *running) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if r.settle != nil {
		r.settle.drain(ctx, endLimit)
		return
	}
	if err := r.link.CommitUncommittedOffsets(ctx); err != nil {
		r.sink.Fault(fmt.Errorf("last positions: %w", kafkaconn.Cause(err)))
	}
}

// Close leaves the group.
func (x *consumer) Close(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.link != nil {
		x.link.Close(ctx)
	}
	return nil
}
