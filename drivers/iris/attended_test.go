package iris

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// An attended is a Config with pattern request or tunnel in which a destination without a consumer
// gets a discarding one: otherwise nothing would reply, or accept a tunnel.
type attended struct{ Config }

func (a *attended) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	c, err := a.Config.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	return trial.Attend(c), nil
}
