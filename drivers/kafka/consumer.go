package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

const (
	prefetch = 4096 // where the scenario leaves it open: some milliseconds of commits at full speed
	endLimit = 5 * time.Second
)

// A consumer is a member of the subscription's group, from when it runs.
type consumer struct {
	conn       *conn
	spec       driver.ConsumerSpec
	name, id   string // of the consumer in events; of the group
	partitions map[string]int
	sources    map[string]int32 // by topic, which of the destinations it is
	prefetch   int

	mu   sync.Mutex
	link *kafkaconn.Link // set by Run
}

// Consumer finds the topics, and where the group begins. It joins it in Run: a
// member is given messages from when it is one.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{
		conn: c, spec: spec, prefetch: spec.Prefetch, id: c.Group(spec.Subscription, spec.Durable),
		name: fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index),
	}
	if !slices.Contains([]driver.Settle{driver.SettleBatch, driver.SettleEach, driver.SettleAuto}, spec.Settle) {
		return nil, fmt.Errorf("kafka: settle %v: %w", spec.Settle, driver.ErrUnsupported)
	}
	if x.prefetch <= 0 {
		x.prefetch = prefetch
	}
	var err error
	if x.sources, x.partitions, err = c.Sources(ctx, spec.Destinations); err == nil {
		err = c.Begin(ctx, x.id, spec.Durable, x.partitions, spec.From)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: %s: %w", x.name, err)
	}
	return x, nil
}

// A running is one Run. It implements kafkaconn.Reader.
type running struct {
	x      *consumer
	sink   driver.Sink
	settle *settler // nil: the client commits
	ds     []driver.Delivery
	data   []*kgo.Record // of ds
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	r := &running{x: x, sink: sink}
	opts := []kgo.Opt{kgo.AutoCommitInterval(x.conn.cfg.AutoCommit)}
	if x.spec.Settle != driver.SettleAuto {
		r.settle = newSettler(r, x.spec.Settle == driver.SettleEach)
		opts = []kgo.Opt{kgo.DisableAutoCommit()}
	}
	if x.conn.cfg.Transaction > 0 {
		// The ends of transactions have offsets: positions are to be behind them.
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	}
	m, err := x.conn.Join(ctx, &x.conn.cfg.Receiving, kafkaconn.Membership{Name: x.name, Group: x.id, Partitions: x.partitions, Reader: r, Fault: sink.Fault}, opts...)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	x.mu.Lock()
	x.link = m.Link
	x.mu.Unlock()
	var loop sync.WaitGroup
	if r.settle != nil {
		r.settle.link.Store(m.Link)
		loop.Go(r.settle.loop)
	}
	if err = m.Ready(ctx); err == nil && ctx.Err() == nil {
		sink.Ready()
		err = m.Poll(ctx)
	}
	r.finish(m.Link)
	if r.settle != nil {
		r.settle.close()
	}
	loop.Wait()
	if ctx.Err() != nil || err == nil {
		return nil
	}
	return fmt.Errorf("kafka: %w", err)
}

// Room implements kafkaconn.Reader.
func (r *running) Room(ctx context.Context) int {
	if r.settle == nil {
		return r.x.prefetch
	}
	return r.settle.room(ctx, r.x.prefetch)
}

// Take hands over all that a poll yielded, and notes it as to be committed.
func (r *running) Take(_ context.Context, rs []*kgo.Record) {
	r.ds, r.data = r.ds[:0], r.data[:0]
	for _, rec := range rs {
		if !rec.Attrs.IsControl() {
			r.ds = append(r.ds, driver.Delivery{Key: rec.Key, Payload: rec.Value, Partition: rec.Partition, Source: kafkaconn.Source(r.x.sources, rec.Topic)})
			r.data = append(r.data, rec)
		}
	}
	var err error
	if len(r.ds) > 0 {
		err = r.sink.Deliver(r.ds)
	}
	switch {
	case r.settle == nil:
	case err != nil:
		r.settle.refuse(r.data)
	default:
		r.settle.add(r.ds, r.data)
	}
	if r.settle != nil && len(rs) > len(r.ds) {
		r.settle.pass(rs)
	}
}

// Given implements kafkaconn.Reader.
func (r *running) Given(map[string][]int32) {}

// Taken has what was accepted committed before the group goes on.
func (r *running) Taken(ctx context.Context, client *kgo.Client, ps map[string][]int32) {
	if r.settle != nil {
		r.settle.drain(ctx, endLimit)
		r.settle.forget(ps)
		return
	}
	short, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	if err := client.CommitUncommittedOffsets(short); err != nil {
		r.sink.Fault(fmt.Errorf("not settled: %w", kafkaconn.Cause(err)))
	}
}

// Lost implements kafkaconn.Reader.
func (r *running) Lost(ps map[string][]int32) {
	if r.settle != nil {
		r.settle.forget(ps)
	}
}

// finish has what was accepted committed.
func (r *running) finish(link *kafkaconn.Link) {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if r.settle != nil {
		r.settle.drain(ctx, endLimit)
		return
	}
	if err := link.CommitUncommittedOffsets(ctx); err != nil {
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
