package iris

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// An attended is a Config with pattern request or tunnel where a destination without a
// consumer has one that discards everything: nothing replies, or takes a tunnel, without
// one.
type attended struct{ Config }

func (a *attended) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	c, err := a.Config.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	return trial.Attend(c), nil
}
