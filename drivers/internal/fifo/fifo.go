// Package fifo implements an unbounded queue between goroutines. Use it if each of many
// destinations has a queue and any one of them may have to hold everything in flight: channels
// would have to reserve that space for each destination.
package fifo

import (
	"iter"
	"sync"
)

// A Queue is an unbounded queue. Put and Close never wait; only one goroutine may take. Create it
// with New: the zero Queue is not usable.
type Queue[T any] struct {
	wake chan struct{}

	mu     sync.Mutex
	put    []T
	closed bool

	taken []T // from an earlier Put; owned by the taker
	next  int // in taken
}

// mostKept limits the capacity that an empty Queue keeps, in elements.
const mostKept = 16 << 10

func New[T any]() *Queue[T] { return &Queue[T]{wake: make(chan struct{}, 1)} }

// Put appends x. After Close, x may never be taken.
func (q *Queue[T]) Put(x T) {
	q.mu.Lock()
	q.put = append(q.put, x)
	q.mu.Unlock()
	q.signal()
}

// Close closes the Queue: Take returns the remaining elements, then false.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *Queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Empty reports whether Take would wait now. Only the taking goroutine may call it.
func (q *Queue[T]) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next == len(q.taken) && len(q.put) == 0
}

// Take removes the first element, waiting for one. It returns false when the Queue is closed and
// empty.
func (q *Queue[T]) Take() (x T, ok bool) {
	for q.next == len(q.taken) {
		if cap(q.taken) > mostKept {
			q.taken = nil
		}
		q.mu.Lock()
		q.taken, q.put, q.next = q.put, q.taken[:0], 0
		closed := q.closed
		q.mu.Unlock()
		switch {
		case len(q.taken) > 0:
		case closed:
			return x, false
		default:
			<-q.wake
		}
	}
	var none T
	x, q.taken[q.next] = q.taken[q.next], none
	q.next++
	return x, true
}

// All takes elements until the Queue is closed and empty.
func (q *Queue[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for x, ok := q.Take(); ok && yield(x); x, ok = q.Take() {
		}
	}
}
