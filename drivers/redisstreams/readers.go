package redisstreams

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/each"
)

// A consumer consists of readers: one, or in a cluster one per slot.
type consumer struct{ readers []*reader }

// share limits unsettled deliveries of all readers together to most.
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

// Run implements driver.Consumer. No reader delivers before all are ready.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	return blocking.Together(ctx, sink, len(x.readers), func(ctx context.Context, i int, sink driver.Sink) error {
		return x.readers[i].run(ctx, sink)
	})
}

func (x *consumer) Close(ctx context.Context) error {
	return each.AtOnce(x.readers, func(r *reader) error { return r.close(ctx) })
}
