package kmq

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	spare      = 1024                   // the client still counts a record for a moment after its completion
	againPause = 100 * time.Millisecond // before a failed start marker is written again
)

// A consumer is a member of the queue's group while it runs.
type consumer struct {
	*kafkaconn.Consumer
	conn    *conn
	markers map[string]string // marker topics by topic
}

// Consumer looks up the topics, creates their marker topics, sets the group's start position, and
// starts tracking unsettled messages. Run joins the group.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	inner, err := c.Hold.Consumer(ctx, spec)
	if err != nil {
		return nil, err
	}
	x := &consumer{inner, c, map[string]string{}}
	for topic := range x.Partitions {
		q, err := c.queue(ctx, topic, &spec)
		if err != nil {
			return nil, err
		}
		x.markers[topic] = q.markers
	}
	if err := x.Begin(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	defer x.conn.listen(sink)()
	r := newRunning(x, sink)
	defer r.drain()
	return x.Consumer.Run(ctx, sink, r, func(l *kafkaconn.Link) error {
		r.link = l
		return l.Warm(ctx, x.conn.cfg.Idempotent())
	}, x.conn.marking(4*x.Spec.Prefetch+spare)...)
}

// A running is one call of Run. It implements kafkaconn.Reader.
type running struct {
	x    *consumer
	sink driver.Sink
	link *kafkaconn.Link
	each bool

	// Used only by Take.
	ds        []driver.Delivery
	starting  starting
	positions map[string]map[int32]kgo.EpochOffset

	turn kafkaconn.Turn // guards the fields below
	open int            // accepted messages without a confirmed end marker
	free []*ending      // for reuse
}

func newRunning(x *consumer, sink driver.Sink) *running {
	r := &running{x: x, sink: sink, each: x.Spec.Settle == driver.SettleEach, positions: map[string]map[int32]kgo.EpochOffset{}}
	r.starting.init(startValue(x.conn.cfg.RedeliverAfter))
	for topic := range x.Partitions {
		r.positions[topic] = map[int32]kgo.EpochOffset{}
	}
	return r
}

// Room waits until half of the allowed open messages can be delivered.
func (r *running) Room(ctx context.Context) int {
	r.turn.Lock()
	defer r.turn.Unlock()
	most := r.x.Spec.Prefetch
	if r.turn.Wait(ctx, func() bool { return most-r.open > most/2 }) != nil {
		return 0
	}
	return most - r.open
}

// drain waits until every end marker is confirmed or has failed, within 5 s.
func (r *running) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	r.turn.Lock()
	defer r.turn.Unlock()
	_ = r.turn.Wait(ctx, func() bool { return r.open == 0 }) // unended messages are redelivered
}

// Take writes start markers for a poll's messages, commits their positions, and delivers them.
func (r *running) Take(ctx context.Context, rs []*kgo.Record) {
	if !r.start(ctx, rs) {
		return // redelivered: nothing is committed
	}
	r.commit(rs)
	r.ds = r.ds[:0]
	for _, rec := range rs {
		r.ds = append(r.ds, driver.Delivery{Key: rec.Key, Payload: rec.Value, Partition: rec.Partition, Source: r.x.Source(rec.Topic), Redelivered: sentAgain(rec) > 0})
	}
	if r.sink.Deliver(r.ds) == nil {
		r.end(rs)
	}
}

// start writes the start markers and waits until they are confirmed. It rewrites failed ones until
// ctx ends, and then returns false.
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
		if !retry.Pause(ctx, againPause) {
			return false
		}
	}
}

// commit commits the positions after rs. The next commit makes up for a failure.
func (r *running) commit(rs []*kgo.Record) {
	for _, ps := range r.positions {
		clear(ps)
	}
	for _, rec := range rs {
		r.positions[rec.Topic][rec.Partition] = kgo.EpochOffset{Epoch: rec.LeaderEpoch, Offset: rec.Offset + 1}
	}
	if err := commit(context.Background(), r.link.Client, r.positions); err != nil {
		r.sink.Fault(fmt.Errorf("position not committed: %w", err))
	}
}

// end writes the end markers of the accepted messages, r.ds.
func (r *running) end(rs []*kgo.Record) {
	e := r.ending(len(rs))
	e.ds = append(e.ds[:0], r.ds...)
	e.left.Store(int64(len(rs)))
	e.reported.Store(false)
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

// Taken implements kafkaconn.Reader. All positions are committed, and a consumer that holds a message may
// end it, wherever its partition is.
func (*running) Taken(context.Context, *kgo.Client, map[string][]int32) {}

func (*running) Anew(map[string][]int32) {}
