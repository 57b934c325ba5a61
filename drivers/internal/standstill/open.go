package standstill

import (
	"slices"
	"sync/atomic"
	"time"
)

// Open counts a producer's open messages by the interval in which they were published. So it sees
// messages that wait while others, for example of another partition, are taken. Begin and its
// results may be used concurrently. The zero value is ready for use.
type Open struct {
	now atomic.Pointer[atomic.Int64]

	// For Wait alone. There are as many as the longest time that a message is tried has intervals.
	changed time.Time
	last    *atomic.Int64
	older   []*atomic.Int64
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

// Wait reports whether a message has been open for at least one interval, if it is called more
// often than that. Only one goroutine may call it.
func (o *Open) Wait() bool {
	if time.Since(o.changed) >= interval {
		o.changed = time.Now()
		if o.last != nil {
			o.older = append(slices.DeleteFunc(o.older, func(n *atomic.Int64) bool { return n.Load() == 0 }), o.last)
		}
		o.last = o.now.Swap(&atomic.Int64{})
	}
	return slices.ContainsFunc(o.older, func(n *atomic.Int64) bool { return n.Load() > 0 })
}
