package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// A receiver is a consumer with its sink, running.
type receiver struct {
	e      *env
	c      driver.Consumer
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned; nil before it was called

	mu      sync.Mutex
	err     error // of Run
	got     []received
	readies int
	faults  []error
	settled map[uint64]int // by token
	refused []error        // settlements with an error
	tokens  uint64         // given out so far

	// deliver is the check's hook in Deliver, on its goroutine; Deliver returns its result. Nil:
	// accept.
	deliver func(ds []driver.Delivery) error
}

// A received is a copy of one delivery.
type received struct {
	payload, key string
	partition    int32
	source       int32
	redelivered  bool
	refused      bool // Deliver returned an error
}

// spec returns the specification of a consumer of subscription with the driver's default way of
// settling.
func (e *env) spec(subscription string, destinations ...string) driver.ConsumerSpec {
	s := driver.ConsumerSpec{Subscription: subscription, Destinations: destinations}
	if len(e.caps.Settle) > 0 {
		s.Settle = e.caps.Settle[0]
	}
	return s
}

// receive opens a consumer, runs it, and returns when it is ready. deliver may
// be nil.
func (s *session) receive(spec driver.ConsumerSpec, deliver func(ds []driver.Delivery) error) *receiver {
	r := s.start(spec, deliver)
	r.awaitReady()
	return r
}

// start is receive without waiting for Ready.
func (s *session) start(spec driver.ConsumerSpec, deliver func(ds []driver.Delivery) error) *receiver {
	return s.startBy(s.conn.Consumer, spec, deliver)
}

// startBy is start with an open function: Conn.Consumer, or Requester.Responder.
func (s *session) startBy(open func(context.Context, driver.ConsumerSpec) (driver.Consumer, error), spec driver.ConsumerSpec, deliver func(ds []driver.Delivery) error) *receiver {
	r := s.opened(open, spec, deliver)
	r.run()
	return r
}

// opened is startBy without Run.
func (s *session) opened(open func(context.Context, driver.ConsumerSpec) (driver.Consumer, error), spec driver.ConsumerSpec, deliver func(ds []driver.Delivery) error) *receiver {
	r := &receiver{e: s.env, settled: map[uint64]int{}, deliver: deliver}
	s.must("open a consumer", func(ctx context.Context) (err error) {
		r.c, err = open(ctx, spec)
		return err
	})
	s.later(func(ctx context.Context) error {
		if r.ended != nil {
			r.end()
		}
		return r.c.Close(ctx)
	})
	return r
}

func (r *receiver) run() {
	ctx, cancel := context.WithCancel(r.e.ctx)
	r.cancel, r.ended = cancel, make(chan struct{})
	go func() {
		defer close(r.ended)
		err := r.c.Run(ctx, r)
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}()
}

// awaitReady waits until the sink is ready, and ends the check if it does not become so.
func (r *receiver) awaitReady() {
	ok := eventually(func() bool {
		select {
		case <-r.ended:
			return true
		default:
			return r.ready() > 0
		}
	})
	if r.ready() == 0 {
		if ok {
			r.e.fatalf("Run returned before Ready: %v", r.runErr())
		}
		r.e.fatalf("Ready was not called within %v", patience)
	}
}

// end ends Run and reports whether it returned in time.
func (r *receiver) end() bool {
	r.cancel()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.ended:
		return true
	case <-timer.C:
		return false
	}
}

// close ends Run and closes the consumer; both must succeed.
func (r *receiver) close() {
	if !r.end() {
		r.e.fatalf("Run has not returned %v after its context ended", patience)
	}
	r.e.must("close the consumer", r.c.Close)
}

func (r *receiver) runErr() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *receiver) ready() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readies
}

// Ready implements driver.Sink.
func (r *receiver) Ready() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readies++
}

// Deliver implements driver.Sink.
func (r *receiver) Deliver(ds []driver.Delivery) error {
	copies := make([]received, len(ds))
	for i := range ds {
		d := &ds[i]
		copies[i] = received{payload: string(d.Payload), key: string(d.Key), partition: d.Partition, source: d.Source, redelivered: d.Redelivered}
	}
	r.mu.Lock()
	for i := range ds {
		r.tokens++
		ds[i].Token = r.tokens
	}
	r.mu.Unlock()
	var err error
	if r.deliver != nil {
		err = r.deliver(ds)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range copies {
		copies[i].refused = err != nil
	}
	r.got = append(r.got, copies...)
	return err
}

// Settled implements driver.Sink.
func (r *receiver) Settled(ds []driver.Delivery, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range ds {
		r.settled[ds[i].Token]++
	}
	if err != nil {
		r.refused = append(r.refused, err)
	}
}

// Fault implements driver.Sink.
func (r *receiver) Fault(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, err)
}

func (r *receiver) faulted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.faults)
}

// cut reports whether the consumer lost a connection.
func (r *receiver) cut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Is(errors.Join(r.faults...), driver.ErrDisconnected)
}

// deliveries returns what has arrived, in order.
func (r *receiver) deliveries() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// texts returns the payloads that have arrived and were accepted, in order.
func (r *receiver) texts() []string {
	var ts []string
	for _, d := range r.deliveries() {
		if !d.refused {
			ts = append(ts, d.payload)
		}
	}
	return ts
}
