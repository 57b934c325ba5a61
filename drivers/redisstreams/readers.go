package redisstreams

import (
	"context"
	"errors"
	"sync"

	"github.com/weirmq/weir/driver"
)

// A consumer is its readers: one, or in a cluster one a slot.
type consumer struct{ readers []*reader }

// share bounds what the readers deliver and have not settled, by most of all together.
func (x *consumer) share(most int) {
	n := len(x.readers)
	var turns chan struct{}
	if most < n {
		turns = make(chan struct{}, most)
	}
	for i, r := range x.readers {
		r.turns, r.most = turns, max(1, most/n)
		if turns == nil && i < most%n {
			r.most++
		}
	}
}

// Run implements driver.Consumer. It ends with the first reader that does.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	if len(x.readers) == 1 {
		return x.readers[0].run(ctx, sink)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &shared{Sink: sink, left: len(x.readers), ready: make(chan struct{}), ended: ctx.Done()}
	errs := make([]error, len(x.readers))
	var running sync.WaitGroup
	for i, r := range x.readers {
		running.Go(func() {
			defer cancel()
			errs[i] = r.run(ctx, s)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Close implements driver.Consumer.
func (x *consumer) Close(ctx context.Context) error {
	errs := make([]error, len(x.readers))
	var closing sync.WaitGroup
	for i, r := range x.readers {
		closing.Go(func() { errs[i] = r.close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// shared is the sink of several readers. None delivers before all are ready.
type shared struct {
	driver.Sink
	ready chan struct{}   // closed when all are
	ended <-chan struct{} // closed when Run is to end

	mu   sync.Mutex
	left int // readers that are not ready
}

// Ready implements driver.Sink. It returns when all readers are ready, or Run is to end.
func (s *shared) Ready() {
	s.mu.Lock()
	s.left--
	if s.left == 0 {
		s.Sink.Ready()
		close(s.ready)
	}
	s.mu.Unlock()
	select {
	case <-s.ready:
	case <-s.ended:
	}
}

// Deliver implements driver.Sink: the readers' deliveries one after the other.
func (s *shared) Deliver(ds []driver.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Sink.Deliver(ds)
}
