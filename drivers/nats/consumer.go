package nats

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// readyLimit limits how long the servers may take to confirm that they have the subscriptions.
const readyLimit = 10 * time.Second

// A consumer is a member of the subscription's queue group, on its own connection.
type consumer struct {
	*natsconn.Receiver
	group    string
	subjects []string
	room     int        // bytes per subject that may wait in the client
	answers  *gate.Gate // for a responder's answers; nil: not a responder
	ends     *natsconn.Ends
	dropped  *dropped
}

// Consumer connects.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return c.consumer(ctx, &spec)
}

func (c *conn) consumer(ctx context.Context, spec *driver.ConsumerSpec) (x *consumer, err error) {
	x = &consumer{group: natsconn.Token(spec.Subscription), room: int(c.cfg.PendingBytes), ends: &c.ends, dropped: &c.dropped}
	for _, d := range spec.Destinations {
		subject, err := natsconn.Source(c.run, d)
		if err != nil {
			return nil, err
		}
		x.subjects = append(x.subjects, subject)
	}
	if x.Receiver, err = natsconn.Receive(ctx, &c.cfg.Options, c.run, spec); err != nil {
		return nil, err
	}
	x.ends.Consumers.Note(x.Receiver, spec.Subscription)
	return x, nil
}

// Run subscribes and delivers each message from the client's own callback: one hop after the
// goroutine that reads the socket, the fewest the client offers with a bound on bytes.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.Begin(sink)
	var mu sync.Mutex // one Deliver at a time: each subject has its own goroutine
	ended := false
	ds := make([]driver.Delivery, 1)
	deliver := func(source int32, m *nats.Msg) {
		mu.Lock() // unlocked without defer: this runs for every message
		if ended {
			mu.Unlock()
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
		mu.Unlock()
	}
	defer func() {
		mu.Lock()
		ended = true
		mu.Unlock()
	}()
	for i, s := range x.subjects {
		sub, err := x.QueueSubscribe(s, x.group, func(m *nats.Msg) {
			source := int32(i)
			if !natsconn.Matches(s, m.Subject) { // the server uses another form of the subject
				source = x.source(m.Subject)
			}
			deliver(source, m)
		})
		if err == nil {
			x.dropped.begin(sub)
			defer x.dropped.end(sub)
			x.Hold(sub)
			err = sub.SetPendingLimits(math.MaxInt32, x.room)
		}
		if err != nil {
			return fmt.Errorf("subscribe: %w", natsconn.Cause(err))
		}
	}
	flush, cancel := context.WithTimeout(ctx, readyLimit)
	err := x.Known(flush)
	cancel()
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("subscribe: %w", natsconn.Cause(err))
	}
	sink.Ready()
	select {
	case <-ctx.Done():
		return nil
	case err := <-x.Gone:
		return fmt.Errorf("subscription lost: %w", err)
	}
}

// source returns the index of the destination that matches a subject; -1: none.
func (x *consumer) source(subject string) int32 {
	return int32(slices.IndexFunc(x.subjects, func(s string) bool { return natsconn.Matches(s, subject) }))
}

// Close ends the connection.
func (x *consumer) Close(ctx context.Context) error {
	x.ends.Consumers.Forget(x.Receiver)
	if x.answers != nil {
		x.answers.Close()
	}
	return x.Receiver.Close(ctx)
}
