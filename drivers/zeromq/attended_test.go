package zeromq

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// An attended is a Config of a pipeline where a destination without a consumer has one
// that discards everything: a PUSH socket waits for one.
type attended struct{ Config }

func (a *attended) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	c, err := a.Config.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	return trial.Attend(c), nil
}
