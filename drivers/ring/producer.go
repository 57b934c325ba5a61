package ring

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/drivers/internal/local"
)

// apart is the distance between padded words: two cache lines, because the processor fetches them
// in pairs.
const apart = 128

// A slot is the header of one cell. At position p of the ring, it is free for the producer of p
// when seq is p, holds the message of p when seq is p+1, and becomes p+capacity when that was
// taken.
type slot struct {
	seq atomic.Uint64
	n   uint64 // payload length; written by the goroutine that has claimed the cell
}

const slotSize = 16

// A queue is Vyukov's bounded queue for multiple producers and consumers.
type queue struct {
	_      [apart]byte
	mask   uint64
	stride uint64 // distance between slots, in slots
	cell   uint64 // bytes
	slots  []slot
	memory []byte
	in     *atomic.Uint64 // next position to put into
	out    *atomic.Uint64 // next position to take from
	spins  int            // spins before the first Gosched; 0 on one processor
	closed atomic.Bool
	_      [apart]byte
}

// newQueue returns a queue with capacity cells, a power of two, of size bytes.
func newQueue(capacity, size int, padded bool) *queue {
	q := &queue{mask: uint64(capacity - 1), stride: 1, cell: uint64(size), memory: make([]byte, capacity*size)}
	words := make([]atomic.Uint64, 3*apart/8)
	q.in, q.out = &words[apart/8], &words[apart/8+1]
	if padded {
		q.stride = apart / slotSize
		q.out = &words[2*apart/8]
	}
	q.slots = make([]slot, uint64(capacity)*q.stride)
	for i := range uint64(capacity) {
		q.slots[i*q.stride].seq.Store(i)
	}
	if runtime.GOMAXPROCS(0) > 1 {
		q.spins = 64
	}
	return q
}

func (q *queue) at(position uint64) (*slot, []byte) {
	i := position & q.mask
	return &q.slots[i*q.stride], q.memory[i*q.cell : (i+1)*q.cell]
}

// Put copies payload into the next cell, waiting until it is free.
func (q *queue) Put(ctx context.Context, payload []byte) error {
	p := q.in.Load()
	for looks := 0; ; {
		s, buf := q.at(p)
		switch d := int64(s.seq.Load() - p); {
		case d == 0:
			if q.in.CompareAndSwap(p, p+1) {
				s.n = uint64(copy(buf, payload))
				s.seq.Store(p + 1)
				return nil
			}
		case d < 0: // still holds the message from the previous round: full
			if err := q.wait(ctx, looks); err != nil {
				return err
			}
			looks++
		}
		p = q.in.Load()
	}
}

// Take copies the payload of the next cell into buf, waiting until there is one,
// and frees the cell.
func (q *queue) Take(ctx context.Context, buf []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err // a full ring must not delay a stop
	}
	p := q.out.Load()
	for looks := 0; ; {
		s, cell := q.at(p)
		switch d := int64(s.seq.Load() - (p + 1)); {
		case d == 0:
			if q.out.CompareAndSwap(p, p+1) {
				n := copy(buf, cell[:s.n])
				s.seq.Store(p + q.mask + 1)
				return n, nil
			}
		case d < 0: // not yet written: empty
			if err := q.wait(ctx, looks); err != nil {
				return 0, err
			}
			looks++
		}
		p = q.out.Load()
	}
}

// Stages of waiting, counted in attempts after spinning, and the sleeps of the last stage.
const (
	yields     = 64
	firstSleep = 32 * time.Microsecond
	lastSleep  = time.Millisecond
)

// wait waits before the next attempt, given the number so far, or returns an error if waiting
// should end.
func (q *queue) wait(ctx context.Context, looks int) error {
	if looks < q.spins {
		return nil
	}
	if q.closed.Load() {
		return local.ErrGone
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	looks -= q.spins
	if looks < yields {
		runtime.Gosched()
		return nil
	}
	time.Sleep(min(firstSleep<<min(looks-yields, 16), lastSleep))
	return nil
}

// Len returns the number of payloads in the queue, including those being added.
func (q *queue) Len() int {
	out := q.out.Load() // first: in is never behind it
	return int(q.in.Load() - out)
}

// Close ends all waiting calls, within lastSleep.
func (q *queue) Close() { q.closed.Store(true) }
