package local

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/driver"
)

// Producer returns a producer.
func (c *Conn) Producer(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &producer{conn: c, done: done}, nil
}

// producer puts messages into every subscription's queue and completes them on the caller's
// goroutine.
type producer struct {
	conn   *Conn
	done   driver.Completer
	closed bool

	// The last message's destination: most producers have only one.
	name string
	last *destination
}

// Publish copies m's payload into each subscription's queue, waiting for room in each, and
// completes m. It allocates only on failure.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	p.done.Complete(m, p.put(ctx, m))
}

func (p *producer) put(ctx context.Context, m *driver.Message) error {
	if p.closed {
		return driver.ErrClosed
	}
	if err := driver.CheckSize(len(m.Payload), int64(p.conn.cell), "a cell (option cell)"); err != nil {
		return err
	}
	if p.last == nil || p.name != m.Destination || p.last.gone.Load() {
		d := p.conn.lookup(m.Destination)
		if d == nil {
			return fmt.Errorf("destination %s was not declared", m.Destination)
		}
		p.name, p.last = m.Destination, d
	}
	for _, q := range *p.last.queues.Load() {
		if err := q.Put(ctx, m.Payload); err != nil {
			return err
		}
	}
	return nil
}

// Flush returns at once: a message has completed when Publish returns.
func (p *producer) Flush(context.Context) error { return nil }

// Close makes later messages complete with driver.ErrClosed.
func (p *producer) Close(context.Context) error {
	p.closed = true
	return nil
}
