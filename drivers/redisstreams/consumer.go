package redisstreams

import (
	"cmp"
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
	prefetch = 500 // if the scenario does not set it
	// readBlock is how long a read waits in the server for entries; the end of Run waits for it.
	readBlock = 100 * time.Millisecond
	// beginning is the start of a scan for pending entries, and also the answer at its end.
	beginning = "0-0"
	// endLimit limits the wait for the last read, and for the last acknowledgements.
	endLimit = 3 * time.Second
)

// A reader is a member of the subscription's groups on the streams of one server. It reads on one
// connection and acknowledges on another.
type reader struct {
	cfg   *Config
	link  *redisconn.Link
	name  string // of the consumer within its groups
	group string
	keys  []string
	from  map[string]source // by key
	most  int               // limit of entries delivered and not settled
	turns chan struct{}     // readers that may deliver and await acks at a time; nil: all
	spec  driver.ConsumerSpec
	reads redis.XReadGroupArgs

	sink      driver.Sink
	acks      *redisconn.Pipe[settlement]
	unsettled atomic.Int64 // deliveries whose acknowledgements are in flight
}

// A source identifies a stream: the index of its destination, and its partition.
type source struct{ destination, partition int32 }

// A settlement is an acknowledgement in flight for ds, the deliveries of one read from one stream.
type settlement struct{ ds []driver.Delivery }

// Consumer connects, and creates missing groups of the subscription. Unless spec.From says
// otherwise, they receive every entry of their streams, older ones included.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	first, err := start(spec.From)
	if err != nil {
		return nil, err
	}
	if spec.Durable {
		c.durable.Note(spec.Subscription, struct{}{})
	}
	x := &consumer{}
	readers := map[int]*reader{} // by slot
	for i, d := range spec.Destinations {
		keys, err := c.streams(ctx, d)
		if err == nil {
			err = c.existing(ctx, d)
		}
		for n, key := range keys {
			if err != nil {
				break
			}
			g := c.group(key, spec.Subscription)
			if c.run.Existing && !spec.Durable {
				c.groups.Note(g, struct{}{}) // before creating it: the answer may be lost
			}
			err = c.makeGroup(ctx, g, first)
			slot := c.slot(key)
			r := readers[slot]
			if r == nil {
				r = &reader{cfg: &c.cfg, name: memberPrefix + strconv.Itoa(spec.Index), group: g.name, from: map[string]source{}, spec: spec}
				readers[slot] = r
				x.readers = append(x.readers, r)
			}
			r.keys = append(r.keys, key)
			if !c.cfg.Cluster {
				n = -1
			}
			r.from[key] = source{int32(i), int32(n)}
		}
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, redisconn.Cause(err))
		}
	}
	x.share(cmp.Or(max(0, spec.Prefetch), prefetch))
	for slot, r := range readers {
		r.reads = redis.XReadGroupArgs{Group: r.group, Consumer: r.name, Block: readBlock, NoAck: spec.Settle == driver.SettleAuto}
		r.reads.Streams = slices.Clone(r.keys)
		for range r.keys {
			r.reads.Streams = append(r.reads.Streams, ">")
		}
		if r.link, err = c.another(ctx, c.run.For(&spec), slot, connectionName(spec.Subscription, strconv.Itoa(spec.Index))); err != nil {
			return nil, errors.Join(err, x.Close(ctx))
		}
	}
	return x, nil
}

func (x *reader) run(ctx context.Context, sink driver.Sink) error {
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
	sink.Ready() // the group exists since Consumer
	// A read that still waits endLimit after ctx has ended is aborted.
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
func (x *reader) read(ctx context.Context) error {
	var claims <-chan time.Time
	if x.spec.Settle != driver.SettleAuto {
		ticker := time.NewTicker(max(x.cfg.ClaimAfter/2, time.Millisecond))
		defer ticker.Stop()
		claims = ticker.C
	}
	later := time.NewTimer(lookAgain)
	defer later.Stop()
	err := x.takeOver(ctx) // old entries come before new ones
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
		x.link.CheckMoved(err)
		x.sink.Fault(cause)
		retry.Pause(ctx, x.cfg.ReconnectWait)
	}
	return nil
}

func (x *reader) next(ctx context.Context, later, claims <-chan time.Time) error {
	select {
	case <-later:
		return x.takeOver(ctx)
	case <-claims:
		return x.claim(ctx)
	default:
		return x.readOnce(ctx)
	}
}

// room waits until entries may be delivered, and returns how many.
func (x *reader) room(ctx context.Context) (int, error) {
	for {
		if n := x.most - int(x.unsettled.Load()); n > 0 {
			return n, nil
		}
		if err := x.acks.Wait(ctx); err != nil {
			return 0, err
		}
	}
}

// readOnce reads and delivers what is available, or waits briefly.
func (x *reader) readOnce(ctx context.Context) error {
	room, err := x.room(ctx)
	if err != nil {
		return nil // ctx has ended
	}
	args := x.reads
	args.Count = int64(max(1, room/len(x.keys))) // the count applies per stream
	// Entries handed out by the server must not be lost with an aborted read, so ctx does not end
	// it.
	streams, err := x.link.XReadGroup(context.WithoutCancel(ctx), &args).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	// Late entries are redelivered by claiming, except those that the server counted as
	// acknowledged when it handed them out.
	if ctx.Err() != nil && x.spec.Settle != driver.SettleAuto {
		return nil
	}
	x.deliver(ctx, streams, false)
	return nil
}

// claim claims and delivers entries that have been pending for too long.
func (x *reader) claim(ctx context.Context) error {
	// Not entries that this consumer has just acknowledged.
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
				x.deliver(ctx, []redis.XStream{{Stream: key, Messages: messages}}, true)
			}
			start = next
		}
	}
	return nil
}

// deliver delivers the entries from one client call and settles them, in several parts if there is
// not enough room. The rest at the end of ctx is redelivered by claiming.
func (x *reader) deliver(ctx context.Context, streams []redis.XStream, again bool) {
	auto := x.spec.Settle == driver.SettleAuto
	for len(streams) > 0 && (ctx.Err() == nil || auto) {
		room, err := x.room(ctx)
		if err != nil {
			return // ctx has ended
		}
		var part []redis.XStream
		part, streams = split(streams, room)
		if x.turns == nil || auto {
			x.hand(part, again)
			continue
		}
		select {
		case x.turns <- struct{}{}:
			x.hand(part, again)
			_ = x.acks.Wait(ctx) // or ctx has ended
			<-x.turns
		case <-ctx.Done():
			return
		}
	}
}

func split(streams []redis.XStream, n int) (first, rest []redis.XStream) {
	for i, s := range streams {
		if len(s.Messages) > n {
			later := append([]redis.XStream{{Stream: s.Stream, Messages: s.Messages[n:]}}, streams[i+1:]...)
			if n == 0 {
				return streams[:i:i], later
			}
			return append(streams[:i:i], redis.XStream{Stream: s.Stream, Messages: s.Messages[:n]}), later
		}
		n -= len(s.Messages)
	}
	return streams, nil
}

// hand delivers entries and settles them.
func (x *reader) hand(streams []redis.XStream, again bool) {
	n := 0
	for _, s := range streams {
		n += len(s.Messages)
	}
	ds := make([]driver.Delivery, 0, n)
	for _, s := range streams {
		from := x.from[s.Stream]
		for _, m := range s.Messages {
			payload, _ := m.Values[fieldPayload].(string) // a foreign entry may have none
			d := driver.Delivery{Payload: redisconn.Bytes(payload), Partition: from.partition, Source: from.destination, Redelivered: again}
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

// settle acknowledges deliveries from one stream.
func (x *reader) settle(s redis.XStream, ds []driver.Delivery) {
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

// settled handles the answer to an acknowledgement.
func (x *reader) settled(s settlement, err error) {
	x.sink.Settled(s.ds, err)
	x.unsettled.Add(-int64(len(s.ds)))
	if err != nil {
		x.sink.Fault(fmt.Errorf("not settled: %w", err))
	}
}

// close ends the connections.
func (x *reader) close(ctx context.Context) error {
	if x.acks != nil {
		x.acks.Close(ctx)
	}
	if x.link == nil { // opening failed
		return nil
	}
	return x.link.Close(ctx)
}
