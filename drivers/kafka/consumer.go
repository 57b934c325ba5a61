package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// endLimit limits the last commits of a Run and of revoked partitions.
const endLimit = 5 * time.Second

// A consumer is a member of the subscription's group while it runs.
type consumer struct {
	*kafkaconn.Consumer
	conn *conn
}

// Consumer looks up the topics and the group's start position. Run joins the group.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x, err := c.Hold.Consumer(ctx, spec)
	if err == nil {
		err = x.Begin(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &consumer{x, c}, nil
}

// A running is one call of Run. It implements kafkaconn.Reader.
type running struct {
	x      *consumer
	sink   driver.Sink
	settle *settler // nil: the client commits
	ds     []driver.Delivery
	data   []*kgo.Record // records of ds
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	r := &running{x: x, sink: sink}
	opts := []kgo.Opt{kgo.AutoCommitInterval(x.conn.cfg.AutoCommit)}
	if x.Spec.Settle != driver.SettleAuto {
		r.settle = newSettler(r, x.Spec.Settle == driver.SettleEach)
		opts = []kgo.Opt{kgo.DisableAutoCommit()}
	}
	if x.conn.cfg.Transaction > 0 {
		// Transaction markers have offsets, too: positions must advance past them.
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	}
	var client *kgo.Client
	var loop sync.WaitGroup
	err := x.Consumer.Run(ctx, sink, r, func(l *kafkaconn.Link) error {
		client = l.Client
		if r.settle != nil {
			r.settle.client.Store(client)
			loop.Go(r.settle.loop)
		}
		return nil
	}, opts...)
	if client != nil {
		r.finish(client)
	}
	loop.Wait()
	return err
}

func (r *running) Room(ctx context.Context) int {
	if r.settle == nil {
		return r.x.Spec.Prefetch
	}
	return r.settle.room(ctx, r.x.Spec.Prefetch)
}

// Take delivers everything from a poll, and queues it for committing.
func (r *running) Take(_ context.Context, rs []*kgo.Record) {
	r.ds, r.data = r.ds[:0], r.data[:0]
	for _, rec := range rs {
		if !rec.Attrs.IsControl() {
			r.ds = append(r.ds, driver.Delivery{Key: rec.Key, Payload: rec.Value, Partition: rec.Partition, Source: r.x.Source(rec.Topic)})
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

// Taken commits what was accepted before the group rebalances.
func (r *running) Taken(ctx context.Context, client *kgo.Client, ps map[string][]int32) {
	r.commit(ctx, client, "not settled")
	r.Anew(ps)
}

func (r *running) Anew(ps map[string][]int32) {
	if r.settle != nil {
		r.settle.forget(ps)
	}
}

// commit commits what was accepted, within ctx and 5 s.
func (r *running) commit(ctx context.Context, client *kgo.Client, fault string) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	if r.settle != nil {
		r.settle.drain(ctx)
		return
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		r.sink.Fault(fmt.Errorf("%s: %w", fault, kafkaconn.Cause(err)))
	}
}

// finish commits what was accepted, and stops the settler.
func (r *running) finish(client *kgo.Client) {
	r.commit(context.Background(), client, "last positions")
	if r.settle != nil {
		r.settle.close()
	}
}
