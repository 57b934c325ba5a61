package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// A Churned is the outcome of Config.Churn. Times are in ns.
type Churned struct {
	Changes   uint64 // consumers closed and replaced by a ready one
	ClosingNS int64  // the longest from asking a consumer's Run to end until it was closed
	OpeningNS int64  // the longest from then until its replacement was ready
	AwayNS    int64  // the sum of both over all changes
}

// A churning closes and reopens consumers during the run. Only one goroutine modifies it.
type churning struct {
	run   *run
	state Churned
	over  chan struct{} // closed when no more consumers should close
	wg    sync.WaitGroup
}

// newChurning starts to close and reopen consumers; nil if churn is off.
func newChurning(r *run) *churning {
	if r.cfg.Churn <= 0 {
		return nil
	}
	c := &churning{run: r, over: make(chan struct{})}
	c.wg.Go(c.loop)
	return c
}

// end stops churning and returns when all consumers are back. c may be nil.
func (c *churning) end() *Churned {
	if c == nil {
		return nil
	}
	close(c.over)
	c.wg.Wait()
	return &c.state
}

// A turn is the sink of a replacement consumer: its deliveries count for the same receiver, but it
// has its own readiness.
type turn struct {
	*receiver
	ready chan struct{}
	once  sync.Once
}

// Ready implements driver.Sink.
func (t *turn) Ready() { t.once.Do(func() { close(t.ready) }) }

// merge adds the outcome of another worker.
func (c *Churned) merge(o *Churned) {
	c.Changes += o.Changes
	c.ClosingNS, c.OpeningNS = max(c.ClosingNS, o.ClosingNS), max(c.OpeningNS, o.OpeningNS)
	c.AwayNS += o.AwayNS
}

// loop closes one consumer after the other, from the measured window on: the first consumers of all
// subscriptions, then the second, and so on. The order spans all workers; each closes only its own.
func (c *churning) loop() {
	type own struct {
		k         *receiver
		sub, turn int
	}
	var all []own
	subs, every := len(c.run.receivers), int64(c.run.cfg.Churn)
	for sub, ks := range c.run.receivers {
		for _, k := range ks {
			all = append(all, own{k, sub, k.index*subs + sub})
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b own) int { return cmp.Compare(a.turn, b.turn) })
	of := subs * c.run.cfg.Consumers
	for round := 0; ; round++ {
		for _, x := range all {
			due := c.run.from + int64(round*of+x.turn+1)*every
			select {
			case <-c.over:
				return
			case <-time.After(time.Duration(due - c.run.now())):
			}
			if err := c.change(x.k, x.sub); err != nil {
				c.run.lose(fmt.Errorf("consumer %d of subscription %d, which closed and opens again: %w", x.k.index, x.sub, err))
				return
			}
		}
	}
}

// change closes a consumer and opens its replacement.
func (c *churning) change(k *receiver, sub int) error {
	r := c.run
	ctx, cancel := context.WithTimeout(r.sending, setupLimit)
	defer cancel()
	began := r.now()
	k.leave()
	select {
	case <-k.done:
	case <-ctx.Done():
		return fmt.Errorf("its Run did not end: %w", ctx.Err())
	}
	if r.gone.Load() != nil {
		return nil // its Run has reported why
	}
	old := k.consumer
	if _, err := bounded(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, old.Close(ctx) }, nil); err != nil {
		return fmt.Errorf("closing it: %w", err)
	}
	closed := r.now()
	fresh, err := bounded(ctx, k.open, closeLate[driver.Consumer])
	if err != nil {
		return fmt.Errorf("opening it: %w", err)
	}
	next := &turn{receiver: k, ready: make(chan struct{})}
	k.consumer, k.done = fresh, make(chan struct{})
	r.consume(k, sub, next)
	select {
	case <-next.ready:
	case <-k.done:
		return ErrNotReady
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotReady, ctx.Err())
	}
	ready := r.now()
	s := &c.state
	s.Changes++
	s.ClosingNS, s.OpeningNS = max(s.ClosingNS, closed-began), max(s.OpeningNS, ready-closed)
	s.AwayNS += ready - began
	r.event("churn", fmt.Sprintf("consumer %d of subscription %d closed, and another is there after %v", k.index, sub, round(ready-began)))
	return nil
}
