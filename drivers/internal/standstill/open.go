package standstill

import (
	"slices"
	"sync/atomic"
)

// Open counts a producer's open messages by the calls of Wait between which they were published. So
// it sees messages that wait while others, for example of another partition, are taken. Begin and
// its results may be used concurrently. The zero value is ready for use.
type Open struct {
	now atomic.Pointer[atomic.Int64]

	// For Wait alone: since the latest call but one, and before. There are at most as many as calls
	// in the longest time that a message is tried.
	last  *atomic.Int64
	older []*atomic.Int64
}

// Begin counts a message. When it has completed, 1 must be subtracted from the result.
func (o *Open) Begin() *atomic.Int64 {
	n := o.now.Load()
	for n == nil {
		o.now.CompareAndSwap(nil, &atomic.Int64{})
		n = o.now.Load()
	}
	n.Add(1)
	return n
}

// Wait reports whether a message was already open at the previous call. Only one goroutine may call
// it.
func (o *Open) Wait() bool {
	if o.last != nil {
		o.older = append(slices.DeleteFunc(o.older, func(n *atomic.Int64) bool { return n.Load() == 0 }), o.last)
	}
	o.last = o.now.Swap(&atomic.Int64{})
	return slices.ContainsFunc(o.older, func(n *atomic.Int64) bool { return n.Load() > 0 })
}
