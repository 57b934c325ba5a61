package noop

import (
	"context"

	"github.com/weirmq/weir/driver"
)

// producer completes each message before Publish returns.
type producer struct {
	done   driver.Completer
	closed bool
}

// Publish completes m. It does not allocate or block.
func (p *producer) Publish(_ context.Context, m *driver.Message) {
	if p.closed {
		p.done.Complete(m, driver.ErrClosed)
		return
	}
	p.done.Complete(m, nil)
}

// PublishBatch completes ms, in order.
func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	for _, m := range ms {
		p.Publish(ctx, m)
	}
}

// Flush returns at once: nothing is ever outstanding.
func (p *producer) Flush(context.Context) error { return nil }

// Close makes later messages complete with driver.ErrClosed.
func (p *producer) Close(context.Context) error {
	p.closed = true
	return nil
}
