package ledger

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// An Event is one delivery of a message with an intact header.
type Event struct {
	Stream      uint32
	Partition   int32 // -1 if the system has none
	Seq         uint64
	Due, Start  int64 // from the header
	At          int64 // when the consumer's client library yielded it; nondecreasing per consumer
	Bytes       uint32
	Late        uint8 // from the header: the share of Start - Due that was lateness
	Corrupted   bool  // the header is intact, the payload is not
	Redelivered bool  // the system flagged it as delivered before
	Misrouted   bool  // it came from another destination than the one it was sent to
}

// A Reader takes one consumer's deliveries: a ring with one writer, the consumer's goroutine, and
// one reader, Merge.
//
// The writer stores the event and then publishes it by moving tail; Merge reads tail, then the
// event, and returns the place by moving head. Each caches what it last saw of the other's cursor,
// so that the two cache lines change hands only when it must look again.
type Reader struct {
	_ [128]byte // keeps other data off the cache lines of the cursors

	// Owned by the writer.
	tail     atomic.Uint64 // events ever written
	headSeen uint64        // of head
	tell     uint64        // the tail at which Wake is signalled again
	foreign  atomic.Uint64
	_        [96]byte

	// Owned by Merge.
	head  atomic.Uint64 // events ever taken, as published
	taken uint64        // events ever taken
	limit uint64        // of tail, at the start of the pass
	seen  seen
	_     [128]byte

	// Immutable.
	slots []Event // a power of two
	mask  uint64
	wake  chan<- struct{}
}

// ringSize returns the capacity in events of each consumer's ring.
func ringSize(ringBytes, consumers int) int {
	n := ringBytes / int(unsafe.Sizeof(Event{})) / max(consumers, 1)
	n = min(max(n, minRing), maxRing)
	return 1 << (bits.Len(uint(n)) - 1)
}

func newReader(wake chan<- struct{}, size int) *Reader {
	return &Reader{slots: make([]Event, size), mask: uint64(size - 1), wake: wake, tell: uint64(size / 2)}
}

// Delivered appends a copy of e, as Next and Done do.
func (r *Reader) Delivered(e *Event) {
	*r.Next() = *e
	r.Done()
}

// Next returns the place of the next event, of which the caller must write every field: it holds an
// old event. One goroutine at a time calls it, and then Done. While the ring is full it waits for
// Merge and never drops, so merging must continue until every consumer has ended. It allocates
// nothing.
func (r *Reader) Next() *Event {
	tail := r.tail.Load()
	if tail >= r.tell {
		r.press(tail)
	}
	return &r.slots[tail&r.mask]
}

// Done appends the event written to the place that Next returned.
func (r *Reader) Done() { r.tail.Store(r.tail.Load() + 1) }

// press signals Wake if the ring is half full, and waits while it is full.
func (r *Reader) press(tail uint64) {
	size := uint64(len(r.slots))
	for try := 0; ; try++ {
		r.headSeen = r.head.Load()
		used := tail - r.headSeen
		if used < size/2 {
			r.tell = r.headSeen + size/2
			return
		}
		select {
		case r.wake <- struct{}{}:
		default:
		}
		if used < size {
			// Look again after another eighth, at the latest when full.
			r.tell = min(tail+size/8, r.headSeen+size)
			return
		}
		// Merge is running, or has no processor: first yield, then sleep.
		if try < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(min(time.Duration(try)*time.Microsecond, time.Millisecond))
		}
	}
}

// Foreign counts a delivery without a header of this run. The Reader's goroutine calls it.
func (r *Reader) Foreign() { r.foreign.Add(1) }
