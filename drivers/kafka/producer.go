package kafka

import (
	"context"

	"github.com/weirmq/weir/driver"
)

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if c.cfg.Transaction > 0 {
		return c.transactor(ctx, spec, done)
	}
	return c.Hold.Producer(ctx, spec, done, "")
}
