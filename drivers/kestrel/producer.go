package kestrel

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// A producer sets one item at a time to preserve order, on its own connection. Other messages in
// flight wait in the Pool.
type producer struct {
	*blocking.Pool
	link   *link
	queues *driver.Targets[string]
	expiry int64 // seconds
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	queues, err := driver.NewTargets(spec.Destinations, c.queue)
	if err != nil {
		return nil, err
	}
	p := &producer{queues: queues, expiry: int64(c.cfg.Expiry.Seconds())}
	if p.link, err = c.cfg.connect(ctx, c.run, fmt.Sprintf("producer %d", spec.Index)); err != nil {
		return nil, err
	}
	p.Pool = blocking.New(1, spec.InFlight, p.send, done)
	return p, nil
}

// send sets an item and waits for the answer.
func (p *producer) send(ctx context.Context, _ int, m *driver.Message) error {
	queue, err := p.queues.Of(ctx, m)
	if err != nil {
		return err
	}
	return p.link.Do(ctx, func(s *session) error { return s.set(queue, p.expiry, m.Payload) })
}

func (p *producer) Close(ctx context.Context) error {
	err := p.Pool.Close(ctx)
	p.link.Close()
	return err
}
