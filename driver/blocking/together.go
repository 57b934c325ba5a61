package blocking

import (
	"context"
	"errors"
	"sync"

	"github.com/weirmq/weir/driver"
)

// Together runs the parts of one consumer: one for each destination, connection or call
// of a client that receives by blocking. Each part delivers to the sink that it is given,
// on its own goroutine; the calls of sink.Deliver follow one another. The first error ends
// the context of the other parts. Together returns when all have returned.
func Together(ctx context.Context, sink driver.Sink, parts int, run func(ctx context.Context, part int, sink driver.Sink) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one := &oneAtATime{Sink: sink}
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
	mu sync.Mutex
}

// Deliver implements driver.Sink.
func (o *oneAtATime) Deliver(ds []driver.Delivery) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Sink.Deliver(ds)
}
