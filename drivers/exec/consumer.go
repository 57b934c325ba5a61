package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirmq/weir/driver"
)

// mostUnsettled limits the deliver frames that wait for their settled frame.
const mostUnsettled = 1 << 16

// A consumer reads deliver frames and answers each with a settle frame.
type consumer struct {
	child    *child
	conn     *peer
	spec     driver.ConsumerSpec
	run      driver.Run
	away     bool // the child lost its connection, and has sent only faults since
	confirms bool // the child sends settled frames
	answers  bool // and receives settle frames

	ds        []driver.Delivery
	unsettled map[uint32][]driver.Delivery // by frame
	out       []byte
}

// Consumer makes the child open a consumer.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	for word, needed := range map[string]bool{
		"consumers": true, "competing": spec.Index > 0, "settle-" + spec.Settle.String(): true,
	} {
		if err := c.needs(word, needed); err != nil {
			return nil, err
		}
	}
	if err := c.share(spec); err != nil {
		return nil, err
	}
	conn, _, err := c.child.channel(ctx, "consumer", fields{
		"destination": spec.Destinations, "index": {strconv.Itoa(spec.Index)}, "subscription": {spec.Subscription},
		"prefetch": {strconv.Itoa(spec.Prefetch)}, "settle": {spec.Settle.String()},
	})
	if err != nil {
		return nil, err
	}
	answers := spec.Settle == driver.SettleEach || spec.Settle == driver.SettleBatch
	return &consumer{
		child: c.child, conn: conn, spec: spec, run: c.run.For(&spec), answers: answers, confirms: answers && c.can["settle-confirmed"],
		unsettled: map[uint32][]driver.Delivery{},
	}, nil
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	err := x.send(run)
	late := time.AfterFunc(time.Hour, func() { x.child.drop(x.conn) })
	late.Stop()
	ending := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		late.Reset(x.child.limit)
		close(ending)
	})
	defer late.Stop()
	ended := make(chan struct{})
	over := make(chan struct{})
	go func() { // Deliver may block the goroutine that reads
		defer close(over)
		select {
		case <-ending:
			_ = x.send(end)
		case <-ended:
		}
	}()
	for err == nil {
		err = x.next(ctx, sink)
	}
	if stop() { // ctx has not ended, so the connection has
		close(ended)
	}
	<-over
	var gone *lostError
	switch {
	case errors.As(err, &gone):
		return err
	case ctx.Err() == nil:
		return fmt.Errorf("subscription lost: %w", x.child.why(err))
	case errors.Is(err, errMalformed):
		sink.Fault(err)
	}
	for _, ds := range x.unsettled {
		sink.Settled(ds, driver.ErrClosed)
	}
	return nil
}

// A lostError means that the child has lost the subscription.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// send writes a frame without a body.
func (x *consumer) send(k kind) error {
	b := begin(nil, k)
	finish(b, 0)
	_, err := x.conn.Write(b)
	return err
}

// next reads and handles a frame.
func (x *consumer) next(ctx context.Context, sink driver.Sink) error {
	k, body, err := x.conn.in.next()
	if err != nil {
		return err
	}
	if x.away && k != fault && k != lost { // no frame says that a connection is back
		x.away = false
		x.run.Tell(driver.Reconnect, x.spec.Name())
	}
	c := cursor{b: body}
	switch k {
	case ready:
		if err := c.err(k); err != nil {
			return err
		}
		sink.Ready()
	case deliver:
		return x.deliver(ctx, &c, sink)
	case settled:
		n := uint32(c.number(4))
		failed := cause(&c)
		ds, known := x.unsettled[n]
		if err := c.err(k); err != nil {
			return err
		}
		if !known {
			return fmt.Errorf("%w: deliver frame %d does not wait for a settled frame", errMalformed, n)
		}
		delete(x.unsettled, n)
		sink.Settled(ds, failed)
		if failed != nil {
			sink.Fault(fmt.Errorf("not settled: %w", failed))
		}
	case fault, lost:
		err := readFields(&c).err()
		switch {
		case c.failed || err == nil:
			return fmt.Errorf("%w: kind %d without an error", errMalformed, k)
		case k == lost:
			return &lostError{err}
		}
		x.away = errors.Is(err, driver.ErrDisconnected)
		sink.Fault(err)
	default:
		return fmt.Errorf("%w: kind %d on the connection of a consumer", errMalformed, k)
	}
	return nil
}

// deliver delivers a frame's messages, and answers whether they were accepted. After ctx has ended,
// it delivers only messages that the system has already settled.
func (x *consumer) deliver(ctx context.Context, c *cursor, sink driver.Sink) error {
	n := uint32(c.number(4))
	x.ds = x.ds[:0]
	for len(c.b) > 0 && !c.failed {
		x.ds = append(x.ds, readDelivery(c, len(x.spec.Destinations)))
	}
	if err := c.err(deliver); err != nil {
		return err
	}
	accepted := byte(0)
	if len(x.ds) > 0 && (ctx.Err() == nil || !x.answers) && sink.Deliver(x.ds) == nil {
		accepted = 1
	}
	if !x.answers {
		return nil
	}
	if accepted == 1 && x.confirms {
		if _, twice := x.unsettled[n]; twice || len(x.unsettled) == mostUnsettled {
			return fmt.Errorf("%w: deliver frame %d, where %d wait for a settled frame", errMalformed, n, len(x.unsettled))
		}
		kept := make([]driver.Delivery, len(x.ds))
		for i, d := range x.ds {
			kept[i] = driver.Delivery{Partition: d.Partition, Source: d.Source, Redelivered: d.Redelivered, Token: d.Token}
		}
		x.unsettled[n] = kept
	}
	x.out = append(binary.BigEndian.AppendUint32(begin(x.out[:0], settle), n), accepted)
	finish(x.out, 0)
	_, err := x.conn.Write(x.out)
	return err
}

// Close ends the connection.
func (x *consumer) Close(context.Context) error {
	x.child.drop(x.conn)
	return nil
}
