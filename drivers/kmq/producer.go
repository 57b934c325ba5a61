package kmq

import (
	"context"

	"github.com/weirmq/weir/driver"
)

// Producer connects. It is the driver kafka's.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p, err := c.Hold.Producer(ctx, &c.cfg.Sending, spec, done, "")
	if err != nil {
		return nil, err
	}
	return p, nil
}
