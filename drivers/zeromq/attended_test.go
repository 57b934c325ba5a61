package zeromq

import (
	"context"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// An attended is a pipeline Config in which a destination without a consumer gets a discarding one:
// a PUSH socket waits for a peer.
type attended struct{ Config }

func (a *attended) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	c, err := a.Config.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	return trial.Attend(c), nil
}
