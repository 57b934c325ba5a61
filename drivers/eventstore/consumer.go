package eventstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// settleLimit limits the round trip by which an ending consumer makes sure that the server has its
// settlements.
const settleLimit = 2 * time.Second

// A feed takes the events of one stream, with its own client.
type feed struct {
	c             *conn
	link          *link
	stream, group string
	buffer        uint32
	source        int32

	mu sync.Mutex // held while an event is delivered and settled
	ds [1]driver.Delivery
}

// Consumer creates its subscription's groups, which have begun when it returns. A group keeps
// its events until a consumer takes them.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return blocking.NewFeeds(spec.Destinations, func(i int, d string) (blocking.Feeds, error) {
		stream, err := c.stream(d)
		f := &feed{
			c: c, link: c.connect(c.run.For(&spec), spec.Name()),
			stream: stream, group: c.group(spec.Subscription), buffer: uint32(c.cfg.Buffer), source: int32(i),
		}
		if spec.Prefetch > 0 {
			f.buffer = uint32(spec.Prefetch)
		}
		if err == nil {
			err = c.subscribe(ctx, f.stream, f.group)
		}
		return blocking.Feeds{f}, err
	})
}

// Close implements blocking.Feed. The server gives unsettled events to other consumers.
func (f *feed) Close() { f.link.close() }

// Run implements blocking.Feed. It ends when the connection is permanently lost.
func (f *feed) Run(ctx context.Context, sink driver.Sink) error {
	for {
		err := f.hold(ctx, sink)
		switch {
		case ctx.Err() != nil:
			return nil
		case failure.Hopeless(err):
			return fmt.Errorf("subscription lost: %w", err)
		}
		sink.Fault(err)
		f.link.again()
		retry.Pause(ctx, f.c.cfg.ReconnectWait)
	}
}

// hold receives events on one connection until it ends, and returns why.
func (f *feed) hold(ctx context.Context, sink driver.Sink) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // settlements outlive ctx
	defer end()
	var s *kurrentdb.PersistentSubscription
	err := f.link.do(ctx, func(ctx context.Context, k *kurrentdb.Client) (err error) {
		stop := context.AfterFunc(ctx, end)
		s, err = k.SubscribeToPersistentSubscription(life, f.stream, f.group, kurrentdb.SubscribeToPersistentSubscriptionOptions{BufferSize: f.buffer})
		if !stop() && err == nil {
			err = ctx.Err()
		}
		return err
	})
	if err != nil {
		return err
	}
	var leaving sync.WaitGroup
	leaving.Add(1)
	stop := context.AfterFunc(ctx, func() { defer leaving.Done(); f.leave(s) })
	defer func() {
		if stop() {
			leaving.Done()
			_ = s.Close()
		}
		leaving.Wait()
	}()
	for {
		got := s.Recv()
		if got.SubscriptionDropped != nil {
			return failure.Map{}.Lost(cause(got.SubscriptionDropped.Error))
		}
		if got.EventAppeared == nil {
			continue
		}
		if err := f.take(ctx, s, got.EventAppeared, sink); err != nil {
			sink.Fault(err)
		}
	}
}

// take delivers and settles one event. After ctx has ended, the event goes back to the server.
func (f *feed) take(ctx context.Context, s *kurrentdb.PersistentSubscription, e *kurrentdb.EventAppeared, sink driver.Sink) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	f.ds[0] = driver.Delivery{Payload: e.Event.OriginalEvent().Data, Partition: -1, Source: f.source, Redelivered: e.RetryCount > 0}
	var err error
	if refused := sink.Deliver(f.ds[:]); refused != nil {
		err = s.Nack("refused", kurrentdb.NackActionRetry, e.Event)
	} else {
		err = s.Ack(e.Event)
	}
	if err != nil {
		return fmt.Errorf("settling an event: %w", cause(err))
	}
	return nil
}

// leave ends a subscription once the server has its settlements: an answer to a later request
// proves that it has read them.
func (f *feed) leave(s *kurrentdb.PersistentSubscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	_ = f.link.do(ctx, func(ctx context.Context, k *kurrentdb.Client) error {
		_, err := k.GetPersistentSubscriptionInfo(ctx, f.stream, f.group, kurrentdb.GetPersistentSubscriptionOptions{})
		return err
	})
	_ = s.Close()
}
