package kmq

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

const (
	prefetch   = 4096                   // where the scenario leaves it open
	spare      = 1024                   // the client counts a record until a moment after its completion
	againPause = 100 * time.Millisecond // before a start marker that failed is written again
)

// A consumer is a member of the queue's group, from when it runs.
type consumer struct {
	conn       *conn
	spec       driver.ConsumerSpec
	name, id   string // of the consumer in events; of the group
	partitions map[string]int
	sources    map[string]int32  // by topic, which of the destinations it is
	markers    map[string]string // topics of markers by topic
	prefetch   int

	mu   sync.Mutex
	link *kafkaconn.Link // set by Run
}

// Consumer finds the topics, makes their markers and where the group begins, and has
// what is not settled tracked from now on. It joins the group in Run.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{
		conn: c, spec: spec, prefetch: spec.Prefetch, id: c.Group(spec.Subscription, spec.Durable),
		name: fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index), markers: map[string]string{},
	}
	fail := func(err error) (driver.Consumer, error) { return nil, fmt.Errorf("kmq: %s: %w", x.name, err) }
	if spec.Settle != driver.SettleEach && spec.Settle != driver.SettleBatch {
		return fail(fmt.Errorf("settle %v: %w", spec.Settle, driver.ErrUnsupported))
	}
	if x.prefetch <= 0 {
		x.prefetch = prefetch
	}
	var err error
	if x.sources, x.partitions, err = c.Sources(ctx, spec.Destinations); err != nil {
		return fail(err)
	}
	for topic := range x.partitions {
		q, err := c.queue(ctx, topic, &spec)
		if err != nil {
			return fail(err)
		}
		x.markers[topic] = q.markers
	}
	if err := c.Begin(ctx, x.id, spec.Durable, x.partitions, spec.From); err != nil {
		return fail(err)
	}
	return x, nil
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	defer x.conn.listen(sink)()
	r := newRunning(x, sink)
	m, err := x.conn.Join(ctx, &x.conn.cfg.Receiving,
		kafkaconn.Membership{Name: x.name, Group: x.id, Partitions: x.partitions, Reader: r, Fault: sink.Fault},
		x.conn.marking(4*x.prefetch+spare)...)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	x.mu.Lock()
	x.link = m.Link
	x.mu.Unlock()
	r.link = m.Link
	// What the first message would wait for.
	if x.conn.cfg.Idempotent() {
		_, _, err = m.Link.ProducerID(ctx)
	}
	if err == nil {
		err = m.Link.EnsureProduceConnectionIsOpen(ctx)
	}
	if err = kafkaconn.Unanswered(err); err == nil {
		err = m.Ready(ctx)
	}
	if err == nil && ctx.Err() == nil {
		sink.Ready()
		err = m.Poll(ctx)
	}
	r.drain()
	if ctx.Err() != nil || err == nil {
		return nil
	}
	return fmt.Errorf("kmq: %w", err)
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

// A running is one Run. It implements kafkaconn.Reader.
type running struct {
	x    *consumer
	sink driver.Sink
	link *kafkaconn.Link
	each bool

	// Of Take alone.
	ds        []driver.Delivery
	starting  starting
	positions map[string]map[int32]kgo.EpochOffset

	mu   sync.Mutex
	turn sync.Cond // open has changed
	open int       // messages accepted whose end marker is not confirmed
	free []*ending // to be used again
}

func newRunning(x *consumer, sink driver.Sink) *running {
	r := &running{x: x, sink: sink, each: x.spec.Settle == driver.SettleEach, positions: map[string]map[int32]kgo.EpochOffset{}}
	r.turn.L = &r.mu
	r.starting.init(startValue(x.conn.cfg.RedeliverAfter))
	for topic := range x.partitions {
		r.positions[topic] = map[int32]kgo.EpochOffset{}
	}
	return r
}

// Room waits until half of what may be open can be delivered.
func (r *running) Room(ctx context.Context) int {
	stop := context.AfterFunc(ctx, r.wake)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		n := r.x.prefetch - r.open
		switch {
		case ctx.Err() != nil:
			return 0
		case n > r.x.prefetch/2:
			return n
		}
		r.turn.Wait()
	}
}

// wake has those who wait for the turn look again.
func (r *running) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn.Broadcast()
}

// drain waits until every end marker is confirmed or has failed, within 5 s.
func (r *running) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, r.wake)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.open > 0 && ctx.Err() == nil {
		r.turn.Wait()
	}
}

// Take has what a poll yielded started, commits that it is, and delivers it.
func (r *running) Take(ctx context.Context, rs []*kgo.Record) {
	if !r.start(ctx, rs) {
		return // it comes again: nothing is committed
	}
	r.commit(rs)
	r.ds = r.ds[:0]
	for _, rec := range rs {
		r.ds = append(r.ds, driver.Delivery{Key: rec.Key, Payload: rec.Value, Partition: rec.Partition, Source: kafkaconn.Source(r.x.sources, rec.Topic), Redelivered: sentAgain(rec) > 0})
	}
	if r.sink.Deliver(r.ds) == nil {
		r.end(rs)
	}
}

// start writes the start markers and waits until they are confirmed. Those that fail
// are written again, until ctx ends; then it returns false.
func (r *running) start(ctx context.Context, rs []*kgo.Record) bool {
	s := &r.starting
	s.prepare(rs, r.x.markers)
	for {
		s.send(r.link)
		failed, err := s.wait(ctx)
		if failed == 0 {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		r.sink.Fault(fmt.Errorf("%d messages wait for their start markers: %w", failed, kafkaconn.Cause(err)))
		select {
		case <-ctx.Done():
			return false
		case <-time.After(againPause):
		}
	}
}

// commit commits the positions behind rs. A failure is made good by the next.
func (r *running) commit(rs []*kgo.Record) {
	for _, ps := range r.positions {
		clear(ps)
	}
	for _, rec := range rs {
		r.positions[rec.Topic][rec.Partition] = kgo.EpochOffset{Epoch: rec.LeaderEpoch, Offset: rec.Offset + 1}
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitLimit)
	defer cancel()
	if err := commit(ctx, r.link.Client, r.positions); err != nil {
		r.sink.Fault(fmt.Errorf("position not committed: %w", err))
	}
}

// end writes the end markers of what was accepted, which is r.ds.
func (r *running) end(rs []*kgo.Record) {
	e := r.ending(len(rs))
	e.ds = append(e.ds[:0], r.ds...)
	e.left.Store(int64(len(rs)))
	e.told.Store(false)
	for i, rec := range rs {
		m := e.marks[i]
		putKey(m.key[:], rec.Partition, rec.Offset)
		m.err = nil
		m.record = kgo.Record{Topic: r.x.markers[rec.Topic], Partition: rec.Partition, Key: m.key[:], Value: endValue[:], Context: context.Background()}
	}
	for _, m := range e.marks[:len(rs)] {
		r.link.TryProduce(context.Background(), &m.record, m.done)
	}
}

// Given implements kafkaconn.Reader.
func (r *running) Given(map[string][]int32) {}

// Taken implements kafkaconn.Reader. All positions are committed, and who has a
// message may end it wherever its partition is.
func (r *running) Taken(context.Context, *kgo.Client, map[string][]int32) {}

// Lost implements kafkaconn.Reader.
func (r *running) Lost(map[string][]int32) {}
