package channel

import (
	"context"

	"github.com/weirmq/weir/drivers/internal/local"
)

// Take copies the oldest payload into buf, waiting for one, and gives its cell
// back.
func (q *queue) Take(ctx context.Context, buf []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err // a full queue must not outrun a stop
	}
	var c *cell
	select {
	case c = <-q.full:
	default:
		select {
		case c = <-q.full:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-q.closed:
			return 0, local.ErrGone
		}
	}
	n := copy(buf, c.buf[:c.n])
	q.free <- c
	return n, nil
}
