package kmq

import (
	"context"

	"github.com/weirmq/weir/driver"
)

// Producer connects. It is the same as in driver kafka.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return c.Hold.Producer(ctx, spec, done, "")
}
