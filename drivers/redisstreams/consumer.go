package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	prefetch = 500 // where the scenario leaves it open
	// readBlock is how long a read waits in the server for entries; Run's end
	// waits for it.
	readBlock = 100 * time.Millisecond
	// beginning is where a scan for pending entries starts, and the answer that it
	// has come to the end.
	beginning = "0-0"
	// endLimit bounds the wait for the last read, and for the last
	// acknowledgements.
	endLimit = 3 * time.Second
)

// A consumer is a member of the subscription's groups. It reads on one connection
// and acknowledges on another.
type consumer struct {
	cfg   *Config
	link  *redisconn.Link
	name  string // of the consumer in its groups
	group string
	keys  []string
	most  int // entries delivered and not settled
	spec  driver.ConsumerSpec
	reads redis.XReadGroupArgs

	sink      driver.Sink
	acks      *redisconn.Pipe[settlement]
	unsettled atomic.Int64 // deliveries with acknowledgements on their way
}

// A settlement is an acknowledgement on its way: of ds, or of the part of one
// read's deliveries that is on one stream.
type settlement struct{ ds []driver.Delivery }

// Consumer connects, and makes the subscription's groups where they do not exist
// yet. Unless spec.From says otherwise they get every entry of their streams,
// older ones included.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{cfg: &c.cfg, name: memberPrefix + strconv.Itoa(spec.Index), most: spec.Prefetch, spec: spec}
	if x.most <= 0 {
		x.most = prefetch
	}
	first, err := start(spec.From)
	if err != nil {
		return nil, err
	}
	if spec.Durable {
		c.keep(spec.Subscription)
	}
	for _, d := range spec.Destinations {
		g := c.group(d, spec.Subscription)
		err := c.existing(ctx, d)
		if err == nil {
			if c.run.Existing && !spec.Durable {
				c.remember(g) // before: an answer may be lost
			}
			err = redisconn.Cause(c.makeGroup(ctx, g, first))
		}
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.group = g.name
		x.keys = append(x.keys, g.key)
	}
	x.reads = redis.XReadGroupArgs{Group: x.group, Consumer: x.name, Block: readBlock, NoAck: spec.Settle == driver.SettleAuto}
	x.reads.Streams = append(x.reads.Streams, x.keys...)
	for range x.keys {
		x.reads.Streams = append(x.reads.Streams, ">")
	}
	if x.link, err = c.link.Another(ctx, connectionName(spec.Subscription, strconv.Itoa(spec.Index))); err != nil {
		return nil, err
	}
	return x, nil
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.sink = sink
	acks, err := redisconn.NewPipe(x.link, x.most, x.settled)
	if err != nil {
		return err
	}
	x.acks = acks
	if err := x.link.Ping(ctx).Err(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("subscribe: %w", redisconn.Cause(err))
	}
	sink.Ready() // the group is there since Consumer
	// A read that waits for the server endLimit after ctx has ended is given up.
	late := time.AfterFunc(time.Hour, x.link.Refuse)
	late.Stop()
	unhook := context.AfterFunc(ctx, func() { late.Reset(endLimit) })
	err = x.read(ctx)
	unhook()
	late.Stop()
	end, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if late := x.acks.Wait(end); late != nil {
		sink.Fault(fmt.Errorf("last acknowledgements: %w", redisconn.Cause(late)))
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// read reads until ctx ends, or returns why the subscription is lost.
func (x *consumer) read(ctx context.Context) error {
	var claims <-chan time.Time
	if x.spec.Settle != driver.SettleAuto {
		ticker := time.NewTicker(max(x.cfg.ClaimAfter/2, time.Millisecond))
		defer ticker.Stop()
		claims = ticker.C
	}
	later := time.NewTimer(lookAgain)
	defer later.Stop()
	err := x.takeOver(ctx) // what was left comes before what is new
	for ; ctx.Err() == nil; err = x.next(ctx, later.C, claims) {
		switch {
		case err == nil, ctx.Err() != nil:
			continue
		case gone(err):
			return lost(err)
		}
		cause := redisconn.Cause(err)
		if errors.Is(cause, driver.ErrAuth) {
			return fmt.Errorf("subscription lost: %w", cause)
		}
		if !redisconn.Answered(err) {
			x.link.Lost()
		}
		x.link.Heed(err)
		x.sink.Fault(cause)
		retry.Pause(ctx, x.cfg.ReconnectWait)
	}
	return nil
}

// next does what is due.
func (x *consumer) next(ctx context.Context, later, claims <-chan time.Time) error {
	select {
	case <-later:
		return x.takeOver(ctx)
	case <-claims:
		return x.claim(ctx)
	default:
		return x.readOnce(ctx)
	}
}

// room returns how many more entries may be delivered, once there is room.
func (x *consumer) room(ctx context.Context) (int, error) {
	for {
		if n := x.most - int(x.unsettled.Load()); n > 0 {
			return n, nil
		}
		if err := x.acks.Wait(ctx); err != nil {
			return 0, err
		}
	}
}

// readOnce reads and delivers what is at hand, or waits for it a little.
func (x *consumer) readOnce(ctx context.Context) error {
	room, err := x.room(ctx)
	if err != nil {
		return nil // ctx has ended
	}
	args := x.reads
	args.Count = int64(max(1, room/max(1, len(x.keys)))) // it counts for each stream
	// What the server hands out must not be lost with a read that was given up:
	// ctx does not end it.
	streams, err := x.link.XReadGroup(context.WithoutCancel(ctx), &args).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	// What came too late comes again, as claimed; but for what the server has
	// taken as acknowledged when it handed it out.
	if ctx.Err() != nil && x.spec.Settle != driver.SettleAuto {
		return nil
	}
	x.deliver(streams, false)
	return nil
}

// claim takes over and delivers what has been pending for too long.
func (x *consumer) claim(ctx context.Context) error {
	// Not what this consumer has just acknowledged.
	if err := x.acks.Wait(ctx); err != nil {
		return nil
	}
	for _, key := range x.keys {
		for start, more := beginning, true; more; more = start != beginning {
			room, err := x.room(ctx)
			if err != nil {
				return nil
			}
			messages, next, err := x.link.XAutoClaim(context.WithoutCancel(ctx), &redis.XAutoClaimArgs{
				Stream: key, Group: x.group, Consumer: x.name, MinIdle: x.cfg.ClaimAfter, Start: start, Count: int64(room),
			}).Result()
			if err != nil || ctx.Err() != nil {
				return err
			}
			if len(messages) > 0 {
				x.deliver([]redis.XStream{{Stream: key, Messages: messages}}, true)
			}
			start = next
		}
	}
	return nil
}

// deliver hands over what one call of the client yielded, and settles it.
func (x *consumer) deliver(streams []redis.XStream, again bool) {
	n := 0
	for _, s := range streams {
		n += len(s.Messages)
	}
	ds := make([]driver.Delivery, 0, n)
	for _, s := range streams {
		source := int32(slices.Index(x.keys, s.Stream))
		for _, m := range s.Messages {
			payload, _ := m.Values[fieldPayload].(string) // an entry of another's may have none
			d := driver.Delivery{Payload: redisconn.Bytes(payload), Partition: -1, Source: source, Redelivered: again}
			if k, ok := m.Values[fieldKey].(string); ok {
				d.Key = redisconn.Bytes(k)
			}
			ds = append(ds, d)
		}
	}
	if len(ds) == 0 || x.sink.Deliver(ds) != nil || x.spec.Settle == driver.SettleAuto {
		return
	}
	for _, s := range streams {
		x.settle(s, ds[:len(s.Messages):len(s.Messages)])
		ds = ds[len(s.Messages):]
	}
}

// settle acknowledges deliveries of one stream.
func (x *consumer) settle(s redis.XStream, ds []driver.Delivery) {
	x.unsettled.Add(int64(len(ds)))
	ctx := context.Background()
	if x.spec.Settle == driver.SettleEach {
		for i := range ds {
			x.acks.Submit(redis.NewIntCmd(ctx, "xack", s.Stream, x.group, s.Messages[i].ID), settlement{ds[i : i+1 : i+1]})
		}
		return
	}
	args := make([]any, 0, 3+len(ds))
	args = append(args, "xack", s.Stream, x.group)
	for _, m := range s.Messages {
		args = append(args, m.ID)
	}
	x.acks.Submit(redis.NewIntCmd(ctx, args...), settlement{ds})
}

// settled takes the answer to an acknowledgement.
func (x *consumer) settled(s settlement, err error) {
	x.unsettled.Add(-int64(len(s.ds)))
	x.sink.Settled(s.ds, err)
	if err != nil {
		x.sink.Fault(fmt.Errorf("not settled: %w", err))
	}
}

// Close ends the connections.
func (x *consumer) Close(ctx context.Context) error {
	if x.acks != nil {
		x.acks.Close(ctx)
	}
	return x.link.Close(ctx)
}
