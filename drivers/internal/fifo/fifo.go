// Package fifo queues what one goroutine hands to another without a limit of its own. Use
// it where each of many destinations has a queue, and any one of them may have to hold all
// that is in flight: channels would need that room once for each destination.
package fifo

import "sync"

// A Queue is a queue. Put and Close never wait; one goroutine takes. The zero Queue is not
// ready, see New.
type Queue[T any] struct {
	wake chan struct{}

	mu     sync.Mutex
	put    []T
	closed bool

	taken []T // of an earlier put; the taker's
	next  int // in taken
}

// mostKept bounds the room that an empty Queue keeps, in elements.
const mostKept = 16 << 10

func New[T any]() *Queue[T] { return &Queue[T]{wake: make(chan struct{}, 1)} }

// Put adds x at the end. It must not follow Close.
func (q *Queue[T]) Put(x T) {
	q.mu.Lock()
	q.put = append(q.put, x)
	q.mu.Unlock()
	q.signal()
}

// Close ends the Queue: Take returns what is left, and then false.
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

// Empty reports whether Take would wait now. Only the goroutine that takes calls it.
func (q *Queue[T]) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next == len(q.taken) && len(q.put) == 0
}

// Take waits for the first element. It returns false when the Queue is closed and empty.
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
