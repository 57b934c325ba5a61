package kestrel

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// Producer connects. It sets one item at a time to preserve order; other messages in flight wait in
// the Pool.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	queues, err := driver.NewTargets(spec.Destinations, c.queue)
	if err != nil {
		return nil, err
	}
	l, err := c.cfg.connect(ctx, c.run, spec.Name())
	if err != nil {
		return nil, err
	}
	expiry := int64(c.cfg.Expiry.Seconds())
	return blocking.New(1, spec.InFlight, func(ctx context.Context, _ int, m *driver.Message) error {
		queue, err := queues.Of(ctx, m)
		if err != nil {
			return err
		}
		return l.Do(ctx, func(s *session) error { return s.set(queue, expiry, m.Payload) })
	}, done).Then(l.Close), nil
}
