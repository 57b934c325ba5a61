package kafka

import (
	"context"

	"github.com/weirmq/weir/driver"
)

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if c.cfg.Transaction > 0 {
		t, err := c.transactor(ctx, spec, done)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	p, err := c.Hold.Producer(ctx, &c.cfg.Sending, spec, done, "")
	if err != nil {
		return nil, err
	}
	return p, nil
}
