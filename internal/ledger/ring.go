package ledger

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// An Event is one delivery of a message with a good stamp.
type Event struct {
	Stream      uint32
	Partition   int32 // -1 where the system has none
	Seq         uint64
	Due, Start  int64 // from the stamp
	At          int64 // when the consumer's client library yielded it; not falling from event to event of a consumer
	Bytes       uint32
	Late        uint8 // from the stamp: of Start - Due, the share that was lateness
	Corrupted   bool  // the stamp was good, the payload not
	Redelivered bool  // the system said that it delivered this before
	Misrouted   bool  // it came from another destination than the one it was sent to
}

// A Reader is where one consumer puts what it receives: a ring with one writer,
// the consumer's goroutine, and one reader, Merge.
//
// The writer stores the event and then publishes it by moving tail; Merge reads
// tail, then the event, and gives the place back by moving head. Each keeps a
// copy of what it last saw of the other's, so that the two cache lines change
// hands only when it must look again.
type Reader struct {
	_ [128]byte // nothing else on the lines of the cursors

	// The writer's.
	tail     atomic.Uint64 // events ever written
	headSeen uint64        // of head
	tell     uint64        // the tail at which Wake is signalled again
	foreign  atomic.Uint64
	_        [96]byte

	// Merge's.
	head  atomic.Uint64 // events ever taken, as published
	taken uint64        // events ever taken
	limit uint64        // of tail, at the start of the pass
	seen  seen
	_     [128]byte

	// Fixed.
	slots []Event // a power of two
	mask  uint64
	wake  chan<- struct{}
}

// ringSize returns how many events each of the consumers' rings holds.
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

// Next returns the place of the next event, for the caller to write all of it. What is there
// is an old one. One goroutine at a time calls it, and then Done. It waits while the ring is
// full, until Merge has taken from it, and never drops: whoever merges goes on until every
// consumer has ended. It allocates nothing.
func (r *Reader) Next() *Event {
	tail := r.tail.Load()
	if tail >= r.tell {
		r.press(tail)
	}
	return &r.slots[tail&r.mask]
}

// Done appends what was written to the place that Next returned.
func (r *Reader) Done() { r.tail.Store(r.tail.Load() + 1) }

// press signals Wake where the ring is half full, and waits where it is full.
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
		// Merge is on its way, or has not got a processor: first offer this
		// one, then get out of its way.
		if try < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(min(time.Duration(try)*time.Microsecond, time.Millisecond))
		}
	}
}

// Foreign counts a delivery that has no stamp of this run. The Reader's goroutine
// calls it.
func (r *Reader) Foreign() { r.foreign.Add(1) }
