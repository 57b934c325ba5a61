package channel

import (
	"context"
	"sync"

	"github.com/weirmq/weir/drivers/internal/local"
)

// A cell has room for one payload.
type cell struct {
	n   int
	buf []byte
}

// A queue is two channels: one of cells that hold a message, and one of free cells. Each has room
// for all cells, so that only receiving ever blocks.
type queue struct {
	full, free chan *cell
	closed     chan struct{}
	once       sync.Once
}

// newQueue returns a queue with capacity cells of size bytes, in one block of memory.
func newQueue(capacity, size int) *queue {
	q := &queue{full: make(chan *cell, capacity), free: make(chan *cell, capacity), closed: make(chan struct{})}
	cells, memory := make([]cell, capacity), make([]byte, capacity*size)
	for i := range cells {
		cells[i].buf = memory[i*size : (i+1)*size : (i+1)*size]
		q.free <- &cells[i]
	}
	return q
}

// Put copies payload into a free cell, waiting for one if necessary.
func (q *queue) Put(ctx context.Context, payload []byte) error {
	var c *cell
	select {
	case c = <-q.free: // fast path, without a select over three channels
	default:
		select {
		case c = <-q.free:
		case <-ctx.Done():
			return ctx.Err()
		case <-q.closed:
			return local.ErrGone
		}
	}
	c.n = copy(c.buf, payload)
	q.full <- c
	return nil
}

// Take copies the oldest payload into buf, waiting for one if necessary, and frees its cell.
func (q *queue) Take(ctx context.Context, buf []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err // a full queue must not delay a stop
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

// Len returns how many payloads are in the queue.
func (q *queue) Len() int { return len(q.full) }

// Close ends all waiting calls.
func (q *queue) Close() { q.once.Do(func() { close(q.closed) }) }
