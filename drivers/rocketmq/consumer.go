package rocketmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	receiving "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// mostPulled is the maximum number of messages per pull (maxTransferCountOnMessageInMemory).
const mostPulled = 32

// A puller is the client's consumer, whose type is not exported.
type puller interface {
	Subscribe(topic string, selector receiving.MessageSelector) error
	Start() error
	Poll(ctx context.Context, timeout time.Duration) (*receiving.ConsumeRequest, error)
	ACK(ctx context.Context, taken *receiving.ConsumeRequest, result receiving.ConsumeResult)
	Rebalance()
	Shutdown() error
}

// A consumer has its own client.
type consumer struct {
	conn     *conn
	run      driver.Run
	name     string // for events
	group    string
	client   puller
	instance string
	source   map[string]int32 // index of a topic's destination
	routes   map[string]route // by topic
	ds       []driver.Delivery
	started  bool

	mu      sync.Mutex
	settled map[place]int64 // offsets that the broker does not have yet
	held    map[place]bool  // queues with a rejected message
}

// A place is a queue of a topic.
type place struct {
	topic string
	queue
}

func placeOf(q *primitive.MessageQueue) place {
	return place{q.Topic, queue{q.BrokerName, q.QueueId}}
}

// Consumer creates the group if missing, and sets its start offset in each queue.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{
		conn: c, run: c.run.For(&spec), name: spec.Name(), group: c.group(spec.Subscription, spec.Durable),
		source: map[string]int32{}, routes: map[string]route{}, settled: map[place]int64{}, held: map[place]bool{},
	}
	if !legal.MatchString(x.group) {
		return nil, fmt.Errorf("%q is not a group's name (%s): %w", x.group, legalNames, driver.ErrUnsupported)
	}
	for i, d := range spec.Destinations {
		topic, err := c.topic(ctx, d)
		if err == nil {
			x.source[topic] = int32(i)
			x.routes[topic], err = c.begin(ctx, topic, x.group, spec.From)
		}
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
	}
	if !spec.Durable {
		c.groups.Note(x.group, struct{}{})
	}
	me, err := c.cfg.peer(ctx)
	if err != nil {
		return nil, err
	}
	x.instance = me.instance
	pulled := int32(mostPulled)
	if spec.Prefetch > 0 {
		pulled = int32(min(spec.Prefetch, mostPulled))
	}
	p, err := receiving.NewPullConsumer(
		receiving.WithNsResolver(me.names), receiving.WithInstance(me.instance), receiving.WithCredentials(me.credentials),
		receiving.WithGroupName(x.group), receiving.WithPullBatchSize(pulled), receiving.WithConsumeFromWhere(receiving.ConsumeFromFirstOffset),
	)
	if err != nil {
		return nil, words.Cause(err)
	}
	x.client = p
	for topic := range x.routes {
		if err := p.Subscribe(topic, receiving.MessageSelector{}); err != nil {
			return nil, words.Cause(err)
		}
	}
	return x, nil
}

// begin creates a group on a topic's brokers, and sets an offset in each queue without one.
func (c *conn) begin(ctx context.Context, topic, group string, from driver.Position) (route, error) {
	r, err := c.cfg.route(ctx, topic)
	if err != nil {
		return r, err
	}
	for _, b := range r.brokers {
		err := c.cfg.on(ctx, b.master(), func(ctx context.Context, l *line) error {
			if err := l.makeGroup(ctx, group); err != nil {
				return err
			}
			for _, q := range r.queues {
				if q.broker != b.Name {
					continue
				}
				if err := l.beginQueue(ctx, group, place{topic, q}, from); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// makeGroup creates a group; an existing one is left unchanged.
func (l *line) makeGroup(ctx context.Context, group string) error {
	_, _, err := l.ask(ctx, groupConfig, map[string]string{"group": group}, nil)
	if !answered(err, noGroup) {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true, "notifyConsumerIdsChangedEnable": true,
		"retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
	})
	if err != nil {
		return err
	}
	_, _, err = l.ask(ctx, makeGroup, nil, body)
	return err
}

// offset asks for a group's offset in a queue; ok: it has one.
func (l *line) offset(ctx context.Context, group string, p place) (n int64, ok bool, err error) {
	fields := p.fields()
	fields["consumerGroup"], fields["setZeroIfNotFound"] = group, "false"
	a, _, err := l.ask(ctx, queryOffset, fields, nil)
	if answered(err, offsetUnknown) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	n, err = number(a, "offset")
	return n, true, err
}

// commit sets a group's offset in a queue.
func (l *line) commit(ctx context.Context, group string, p place, n int64) error {
	fields := p.fields()
	fields["consumerGroup"], fields["commitOffset"] = group, strconv.FormatInt(n, 10)
	_, _, err := l.ask(ctx, updateOffset, fields, nil)
	return err
}

// bound asks for one of a queue's offsets.
func (l *line) bound(ctx context.Context, code int, p place, at time.Time) (int64, error) {
	fields := p.fields()
	fields["timestamp"] = strconv.FormatInt(at.UnixMilli(), 10)
	a, _, err := l.ask(ctx, code, fields, nil)
	if err != nil {
		return 0, err
	}
	return number(a, "offset")
}

func (p place) fields() map[string]string {
	return map[string]string{"topic": p.topic, "queueId": strconv.Itoa(p.id)}
}

// beginQueue sets a group's first offset in a queue.
func (l *line) beginQueue(ctx context.Context, group string, p place, from driver.Position) error {
	_, ok, err := l.offset(ctx, group, p)
	if ok || err != nil {
		return err
	}
	var n int64
	switch from.At {
	case driver.AtEarliest:
		n, err = l.bound(ctx, minOffset, p, time.Time{})
	case driver.AtTime:
		// Timestamps are in milliseconds: a message stored within this one may be older.
		n, err = l.bound(ctx, offsetAtTime, p, from.Time.Add(time.Millisecond-1))
	case driver.AtOffset:
		n, err = strconv.ParseInt(from.Offset, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("offset %q (a whole number, 0 or more): %w", from.Offset, driver.ErrUnsupported)
		}
	default:
		n, err = l.bound(ctx, maxOffset, p, time.Time{})
	}
	if err != nil {
		return err
	}
	return l.commit(ctx, group, p, max(n, 0))
}

// Intervals.
const (
	pollTime = time.Second            // of a poll without messages
	sharing  = 300 * time.Millisecond // during which other consumers have to give up queues
)

// Run implements driver.Consumer. The group's offsets were set when the consumer was opened.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	if err := x.client.Start(); err != nil {
		return words.Cause(err)
	}
	x.started = true
	watching, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	for _, b := range x.brokers() {
		watch.Go(func() { x.watch(watching, b, sink) })
	}
	watch.Go(func() {
		for retry.Pause(watching, x.conn.cfg.CommitInterval) {
			if err := x.commit(watching); err != nil && watching.Err() == nil {
				sink.Fault(fmt.Errorf("settling: %w", err))
			}
		}
	})
	x.conn.open.Note(x, x.group)
	if x.others(ctx) {
		retry.Pause(ctx, sharing)
	}
	sink.Ready()
	x.poll(ctx, sink)
	end()
	watch.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.conn.cfg.Timeout)
	defer cancel()
	if err := x.commit(last); err != nil {
		sink.Fault(fmt.Errorf("settling: %w", err))
	}
	x.conn.open.Forget(x)
	return x.Close(last)
}

// poll delivers the client's messages until ctx ends. The client does not report broker errors here
// (v2.1.2), which watch detects; other errors are possible.
func (x *consumer) poll(ctx context.Context, sink driver.Sink) {
	for ctx.Err() == nil {
		switch taken, err := x.client.Poll(ctx, pollTime); {
		case err == nil:
			x.deliver(taken, sink)
		case !receiving.IsNoNewMsgError(err) && ctx.Err() == nil:
			sink.Fault(fmt.Errorf("polling: %w", words.Cause(err)))
			retry.Pause(ctx, x.conn.cfg.ReconnectWait)
		}
	}
}

// brokers returns the topics' brokers, by name.
func (x *consumer) brokers() []broker {
	all := map[string]broker{}
	for _, r := range x.routes {
		maps.Copy(all, r.brokers)
	}
	return slices.Collect(maps.Values(all))
}

// others reports whether a broker has other consumers of the group.
func (x *consumer) others(ctx context.Context) bool {
	for _, b := range x.brokers() {
		var list struct {
			IDs []string `json:"consumerIdList"`
		}
		err := x.conn.cfg.on(ctx, b.master(), func(ctx context.Context, l *line) error {
			_, body, err := l.ask(ctx, consumersOf, map[string]string{"consumerGroup": x.group}, nil)
			if err != nil {
				return err
			}
			return json.Unmarshal(body, &list)
		})
		if err == nil && slices.ContainsFunc(list.IDs, func(id string) bool { return !strings.HasSuffix(id, "@"+x.instance) }) {
			return true
		}
	}
	return false
}

// deliver delivers the result of one poll, and settles it.
func (x *consumer) deliver(taken *receiving.ConsumeRequest, sink driver.Sink) {
	at, all := placeOf(taken.GetMQ()), taken.GetMsgList()
	source, ok := x.source[at.topic]
	if !ok {
		source = -1
	}
	partition := int32(slices.Index(x.routes[at.topic].queues, at.queue))
	x.ds = x.ds[:0]
	for _, m := range all {
		d := driver.Delivery{Payload: m.Body, Partition: partition, Source: source, Redelivered: m.ReconsumeTimes > 0}
		if key := m.GetShardingKey(); key != "" {
			d.Key = []byte(key)
		}
		x.ds = append(x.ds, d)
	}
	err := sink.Deliver(x.ds)
	x.mu.Lock()
	if err != nil {
		x.held[at] = true // until another consumer gets the queue
	} else if !x.held[at] {
		x.settled[at] = all[len(all)-1].QueueOffset + 1
	}
	x.mu.Unlock()
	if err == nil {
		x.client.ACK(context.Background(), taken, receiving.ConsumeSuccess)
	}
}

// commit sends the brokers what has been settled since. The client would send it every 5 s,
// unconfirmed, and may lose it when consumers come and go.
func (x *consumer) commit(ctx context.Context) error {
	x.mu.Lock()
	todo := maps.Clone(x.settled)
	clear(x.settled)
	x.mu.Unlock()
	var errs []error
	for _, b := range x.brokers() {
		mine := slices.DeleteFunc(slices.Collect(maps.Keys(todo)), func(p place) bool { return p.broker != b.Name })
		if len(mine) == 0 {
			continue
		}
		err := x.conn.cfg.on(ctx, b.master(), func(ctx context.Context, l *line) error {
			for _, p := range mine {
				if err := l.commit(ctx, x.group, p, todo[p]); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			continue
		}
		errs = append(errs, err)
		x.mu.Lock()
		for _, p := range mine {
			x.settled[p] = max(x.settled[p], todo[p])
		}
		x.mu.Unlock()
	}
	return errors.Join(errs...)
}

// watch keeps a connection to a broker until ctx ends, because the client does not report the loss
// of its own. After a broker was away, the client also leaves a consumer without queues for up to a
// minute, unless it is told to rebalance, twice: the first time it finds that the broker does not
// know the consumer, and registers it there.
func (x *consumer) watch(ctx context.Context, b broker, sink driver.Sink) {
	cfg := &x.conn.cfg
	keep := retry.Connection[line]{
		Connect: func(ctx context.Context) (*line, error) {
			ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
			defer cancel()
			l, err := cfg.dial(ctx, b.master())
			if err != nil {
				return nil, err
			}
			if err = x.greet(ctx, l); err != nil {
				_ = l.Close()
				return nil, err
			}
			return l, nil
		},
		Hold: func(ctx context.Context, l *line) error {
			if l == nil { // the first attempt failed
				return nil
			}
			defer func() { _ = l.Close() }()
			for retry.Pause(ctx, cfg.CommitInterval) {
				asked, cancel := context.WithTimeout(ctx, cfg.Timeout)
				err := x.greet(asked, l)
				cancel()
				if err != nil && ctx.Err() == nil {
					err = words.Lost(err)
					sink.Fault(fmt.Errorf("broker %s: %w", b.Name, err))
					return err
				}
			}
			return ctx.Err()
		},
		Made: func(_, _ *line, _ error) {
			x.run.Tell(driver.Reconnect, x.name)
			x.client.Rebalance()
			x.client.Rebalance()
		},
		Wait: cfg.ReconnectWait, For: math.MaxInt64,
	}
	l, err := keep.Connect(ctx)
	if err != nil && ctx.Err() == nil {
		sink.Fault(fmt.Errorf("broker %s: %w", b.Name, err))
	}
	_ = keep.Keep(ctx, l) // ends with ctx
}

// greet sends a broker a cheap request.
func (x *consumer) greet(ctx context.Context, l *line) error {
	for topic, r := range x.routes {
		if len(r.queues) > 0 {
			_, err := l.bound(ctx, minOffset, place{topic, r.queues[0]}, time.Time{})
			return err
		}
	}
	return nil
}

// Close implements driver.Consumer. The client leaves background work for up to two minutes.
// Shutting down a consumer that has not started would panic.
func (x *consumer) Close(context.Context) error {
	if x.started {
		_ = x.client.Shutdown() // returns no error, and works once
	}
	return nil
}
