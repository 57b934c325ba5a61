package drivertest

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/needs"
)

// budgetRounds is the number of messages per count of allocations.
const budgetRounds = 40

// budgetChecks test the cost of a message.
func budgetChecks() []check {
	return []check{{
		name:    "AllocBudget",
		rule:    "A message allocates what the client library does, and little more",
		without: func(h *Harness) string { return lackIf(h.Allocs == 0, "Allocs") },
		run:     allocBudget,
	}}
}

// A counted is a completer and a sink that allocate nothing.
type counted struct {
	completed, delivered chan struct{}
	ready                chan struct{}
	failed               atomic.Pointer[error]
}

func (c *counted) Complete(_ *driver.Message, err error) {
	if err != nil {
		c.failed.Store(&err)
	}
	c.completed <- struct{}{}
}

func (c *counted) Ready() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *counted) Deliver(ds []driver.Delivery) error {
	for range ds {
		c.delivered <- struct{}{}
	}
	return nil
}

func (c *counted) Settled([]driver.Delivery, error) {}

func (c *counted) Fault(err error) { c.failed.Store(&err) }

// allocBudget sends one message at a time. It takes the lowest of several counts: other activity of
// the process adds to some of them.
func allocBudget(e *env) {
	if needs.Race {
		return // the race detector allocates, too
	}
	s := e.open()
	s.declare("d")
	c := &counted{completed: make(chan struct{}, inFlight), delivered: make(chan struct{}, inFlight), ready: make(chan struct{}, 1)}
	var p driver.Producer
	s.must("open a producer", func(ctx context.Context) (err error) {
		p, err = s.conn.Producer(ctx, driver.ProducerSpec{Destinations: []string{"d"}, InFlight: inFlight}, c)
		return err
	})
	s.later(p.Close)
	if e.caps.Consume {
		s.consume(e.spec("s", "d"), c)
	}
	m := messages("d", "counted", 1, 64)[0]
	least := math.Inf(1)
	if !within(patience, func() {
		for range 5 {
			least = min(least, testing.AllocsPerRun(budgetRounds, func() {
				p.Publish(e.ctx, m)
				<-c.completed
				if e.caps.Consume {
					<-c.delivered
				}
			}))
			if least <= e.s.h.Allocs {
				return
			}
		}
	}) {
		e.fatalf("%d messages, one by one, were not sent and delivered within %v", budgetRounds, patience)
	}
	if err := c.failed.Load(); err != nil {
		e.fatalf("a message failed: %v", *err)
	}
	if least > e.s.h.Allocs {
		e.errorf("%v allocations a message; the harness allows %v", least, e.s.h.Allocs)
	}
}

// consume runs a consumer until the check ends, and returns when it is ready.
func (s *session) consume(spec driver.ConsumerSpec, sink *counted) {
	var x driver.Consumer
	s.must("open a consumer", func(ctx context.Context) (err error) {
		x, err = s.conn.Consumer(ctx, spec)
		return err
	})
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := x.Run(ctx, sink); err != nil {
			sink.Fault(err)
		}
	}()
	s.later(func(ctx context.Context) error {
		cancel()
		<-ended
		return x.Close(ctx)
	})
	s.must("be ready", func(ctx context.Context) error {
		select {
		case <-sink.ready:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
