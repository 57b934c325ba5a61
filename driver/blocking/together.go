package blocking

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirmq/weir/driver"
)

// Together runs the parts of one consumer: one per destination, connection or call of a client that
// receives by blocking. Each part delivers to its sink on its own goroutine; calls of sink.Deliver
// are serialized. If the parts call sink.Ready, the consumer is ready when all have: until then, or
// the end of ctx, the calls block. The first error ends the context of the other parts. Together
// returns when all have returned.
func Together(ctx context.Context, sink driver.Sink, parts int, run func(ctx context.Context, part int, sink driver.Sink) error) error {
	if parts == 1 {
		return run(ctx, 0, sink)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one := &oneAtATime{Sink: sink, unready: parts, ready: make(chan struct{}), ended: ctx.Done()}
	errs := make([]error, parts)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			if errs[i] = run(ctx, i, one); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// oneAtATime is a sink that several goroutines may deliver to.
type oneAtATime struct {
	driver.Sink
	ready chan struct{}   // closed when all parts are
	ended <-chan struct{} // closed when the parts are to end

	mu      sync.Mutex
	unready int // parts
}

// Ready implements driver.Sink.
func (o *oneAtATime) Ready() {
	o.mu.Lock()
	if o.unready--; o.unready == 0 {
		o.Sink.Ready()
		close(o.ready)
	}
	o.mu.Unlock()
	select {
	case <-o.ready:
	case <-o.ended:
	}
}

// Deliver implements driver.Sink.
func (o *oneAtATime) Deliver(ds []driver.Delivery) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Sink.Deliver(ds)
}

// A Feed is one part of a consumer.
type Feed interface {
	// Run delivers to sink until ctx ends, or until nothing more can be received, and returns why.
	Run(ctx context.Context, sink driver.Sink) error
	// Close frees what Run used. It is idempotent.
	Close()
}

// Feeds are a consumer of a system that retains messages: it is ready as soon as it starts. Use it
// if each destination has a connection of its own.
type Feeds []Feed

// NewFeeds calls open for each destination, and returns all its feeds. If one fails, it closes those
// of the others.
func NewFeeds(destinations []string, open func(i int, destination string) (Feeds, error)) (driver.Consumer, error) {
	var all Feeds
	for i, d := range destinations {
		fs, err := open(i, d)
		if err != nil {
			_ = all.Close(context.Background())
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		all = append(all, fs...)
	}
	return all, nil
}

// Run implements driver.Consumer.
func (fs Feeds) Run(ctx context.Context, sink driver.Sink) error {
	sink.Ready()
	return Together(ctx, sink, len(fs), func(ctx context.Context, i int, sink driver.Sink) error { return fs[i].Run(ctx, sink) })
}

// Close implements driver.Consumer.
func (fs Feeds) Close(context.Context) error {
	for _, f := range fs {
		f.Close()
	}
	return nil
}
