package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// readyLimit bounds how long the server may take to answer that it has the
// subscriptions.
const readyLimit = 10 * time.Second

// A consumer is a member of the subscription's queue group, on a connection of
// its own.
type consumer struct {
	link     *natsconn.Link
	spec     driver.ConsumerSpec
	group    string
	subjects []string
	pending  int64
	answers  *gate.Gate // of a responder, for its answers; nil: none are sent
	over     func()

	held natsconn.Held // by Run's subscriptions

	sink atomic.Pointer[driver.Sink] // set by Run; events before it have nobody to go to
	gone chan error                  // holds why the client gave up
}

// Consumer connects.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x, err := c.consumer(ctx, spec)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (c *conn) consumer(ctx context.Context, spec driver.ConsumerSpec) (*consumer, error) {
	if spec.Settle != driver.SettleNone {
		return nil, fmt.Errorf("nats: settle %v: core NATS knows no acknowledgement: %w", spec.Settle, driver.ErrUnsupported)
	}
	x := &consumer{spec: spec, group: natsconn.Token(spec.Subscription), pending: c.cfg.PendingBytes, gone: make(chan error, 1)}
	for _, d := range spec.Destinations {
		subject, err := natsconn.Source(c.run, d)
		if err != nil {
			return nil, fmt.Errorf("nats: %w", err)
		}
		x.subjects = append(x.subjects, subject)
	}
	link, err := natsconn.Connect(ctx, &c.cfg.Options, c.run, fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index), natsconn.Events{
		Lost: x.fault,
		Gone: func(err error) { x.gone <- err },
		Faults: func(sub *nats.Subscription, err error) {
			x.fault(natsconn.Dropped(sub, err))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	x.link = link
	x.over = c.ends.receives(x)
	return x, nil
}

func (x *consumer) fault(err error) {
	if s := x.sink.Load(); s != nil {
		(*s).Fault(err)
	}
}

// Run subscribes and delivers each message from the client's own callback: one
// hop after the goroutine that reads the socket, the fewest the client offers
// with a bound on bytes.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.sink.Store(&sink)
	var mu sync.Mutex // one Deliver at a time: each subject has a goroutine of its own
	ended := false
	ds := make([]driver.Delivery, 1)
	deliver := func(source int32, m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		ds[0] = driver.Delivery{Payload: m.Data, Partition: -1, Source: source}
		if err := sink.Deliver(ds); err != nil {
			sink.Fault(fmt.Errorf("not delivered again, core NATS cannot: %w", err))
		} else if x.answers != nil {
			if err := x.answer(ctx, m); err != nil {
				sink.Fault(err)
			}
		}
	}
	defer func() {
		mu.Lock()
		ended = true
		mu.Unlock()
	}()
	for i, s := range x.subjects {
		sub, err := x.link.QueueSubscribe(s, x.group, func(m *nats.Msg) {
			source := int32(i)
			if !natsconn.Matches(s, m.Subject) { // the server's word for the subject is another
				source = x.source(m.Subject)
			}
			deliver(source, m)
		})
		if err != nil {
			return fmt.Errorf("nats: subscribe: %w", natsconn.Cause(err))
		}
		defer func() { _ = sub.Unsubscribe() }()
		x.held.Add(sub)
		if err := sub.SetPendingLimits(math.MaxInt32, int(x.pending)); err != nil {
			return fmt.Errorf("nats: subscribe: %w", err)
		}
	}
	flush, cancel := context.WithTimeout(ctx, readyLimit)
	err := x.link.FlushWithContext(flush)
	cancel()
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("nats: subscribe: %w", natsconn.Cause(err))
	}
	sink.Ready()
	select {
	case <-ctx.Done():
		return nil
	case err := <-x.gone:
		return errors.Join(errors.New("nats: subscription lost"), err)
	}
}

// source returns which of the destinations takes a subject; -1: none.
func (x *consumer) source(subject string) int32 {
	return int32(slices.IndexFunc(x.subjects, func(s string) bool { return natsconn.Matches(s, subject) }))
}

// Close ends the connection.
func (x *consumer) Close(ctx context.Context) error {
	x.over()
	if x.answers != nil {
		x.answers.Close()
	}
	return x.link.Close(ctx)
}
