package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
)

// Dead letters are received and counted in a ledger of their own, as late messages are. Assemble
// compares it with the others.

// A deadLetterReceiver receives the dead letters of all destinations.
type deadLetterReceiver struct {
	run      *run
	names    []string
	consumer driver.Consumer
	ledger   *ledger.Ledger
	reader   *ledger.Reader
	ready    chan struct{}
	done     chan struct{}
	end      context.CancelFunc
	came     int // dead letters; owned by the merge
}

// deadLetterLimit is the maximum wait for dead letters that the system still has.
const deadLetterLimit = 10 * time.Second

// deadLetters returns the dead-letter destinations.
func (r *run) deadLetters() (ds []driver.Destination) {
	if r.cfg.DeadLetter > 0 {
		for _, n := range r.names {
			ds = append(ds, driver.Destination{Name: driver.DeadLetters(n), Partitions: 1, Replicas: max(1, r.cfg.Replicas)})
		}
	}
	return ds
}

// openDeadLetters opens the dead-letter consumer and returns when it is ready. It does nothing if the
// run has none.
func (r *run) openDeadLetters(ctx context.Context) error {
	m := &deadLetterReceiver{run: r, ready: make(chan struct{}), done: make(chan struct{})}
	for _, d := range r.deadLetters() {
		m.names = append(m.names, d.Name)
	}
	if len(m.names) == 0 {
		return nil
	}
	m.ledger = ledger.New(ledger.Config{Streams: r.plan.Streams(), Consumers: []int{1}, From: r.from, RingBytes: lateRing})
	m.reader = m.ledger.Reader(0, 0)
	spec := driver.ConsumerSpec{Subscription: m.subscription(), Destinations: m.names, Prefetch: r.cfg.Prefetch, Settle: r.cfg.Settle}
	var err error
	m.consumer, err = bounded(ctx, func(ctx context.Context) (driver.Consumer, error) { return r.conn.Consumer(ctx, spec) }, closeLate[driver.Consumer])
	if err != nil {
		return fmt.Errorf("opening the consumer of dead letters: %w", err)
	}
	running, end := context.WithCancel(r.receiving)
	m.end = end
	r.deadReceiver.Store(m)
	go func() {
		defer close(m.done)
		if err := m.consumer.Run(running, m); err != nil {
			m.Fault(err)
			r.lose(fmt.Errorf("the consumer of dead letters: %w", err))
		}
	}()
	select {
	case <-m.ready:
		return nil
	case <-m.done:
		return fmt.Errorf("the consumer of dead letters ended: %w", ErrNotReady)
	case <-ctx.Done():
		return fmt.Errorf("the consumer of dead letters: %w: %w", ErrNotReady, context.Cause(ctx))
	}
}

func (m *deadLetterReceiver) subscription() string { return m.run.cfg.RunID + "-dead" }

// Ready implements driver.Sink.
func (m *deadLetterReceiver) Ready() { close(m.ready) }

// Fault implements driver.Sink.
func (m *deadLetterReceiver) Fault(err error) {
	if m.run.errs.add(err) {
		m.run.event("fault", "dead letters: "+err.Error())
	}
}

// Settled implements driver.Sink. The cost of dead letters is not measured.
func (m *deadLetterReceiver) Settled(_ []driver.Delivery, err error) {
	if err != nil {
		m.run.errs.add(err)
	}
}

// Deliver implements driver.Sink.
func (m *deadLetterReceiver) Deliver(ds []driver.Delivery) error {
	m.run.enter(m.reader, ds, m.run.now(), false, func(source int32, stream uint32) bool {
		return uint32(source) < uint32(len(m.names)) && int(source) == m.run.plan.DestinationOf(stream)
	})
	return nil
}

// mergeDeadLetters moves the dead letters received into their ledger.
func (r *run) mergeDeadLetters() {
	if m := r.deadReceiver.Load(); m != nil {
		m.came += m.ledger.Merge(nil)
	}
}

// emptyDeadLetters returns when the system has no more dead letters, and reports an event if some
// remain.
func (r *run) emptyDeadLetters(ctx context.Context) {
	m := r.deadReceiver.Load()
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deadLetterLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := m.left(ctx)
		if n == 0 && err == nil {
			return
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		if err == nil {
			err = fmt.Errorf("%d are left", n)
		}
		r.event("dead-letters", "not all dead letters were received, so that lost messages may be among them: "+err.Error())
		return
	}
}

// left asks the system how many dead letters it has still to deliver.
func (m *deadLetterReceiver) left(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return bounded(ctx, func(ctx context.Context) (uint64, error) {
		return m.run.backlogger.Backlog(ctx, m.subscription(), m.names)
	}, nil)
}

// closeDeadLetters closes the dead-letter consumer.
func (r *run) closeDeadLetters() {
	m := r.deadReceiver.Load()
	if m == nil {
		return
	}
	m.end()
	r.step("closing the consumer of dead letters", func(ctx context.Context) error {
		select {
		case <-m.done:
			return m.consumer.Close(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
