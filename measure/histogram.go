package measure

import (
	"math"
	"sync/atomic"
)

// A Histogram counts values in buckets of three significant digits from 1 ns to 1 h, with the exact
// minimum and maximum. It has a fixed size of 264 KiB, of which only touched pages become resident.
// All methods may be called from any goroutine; recording takes no lock and allocates nothing.
type Histogram struct {
	_    [64]byte // keeps a neighbour's writes off the extremes, which every Record reads
	min  atomic.Int64
	max  atomic.Int64
	over atomic.Uint64
	_    [64]byte
	n    [numCounts]atomic.Uint64
	// The blocks in which something was counted since a reader took them. A bit is set after its
	// count: a reader that takes the bits first eventually sees every count.
	fresh [blockWords]atomic.Uint64
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	h := new(Histogram)
	h.min.Store(math.MaxInt64)
	h.max.Store(-1)
	return h
}

// Record counts v. A negative v counts as 0. A v above Highest counts as an overflow and in
// Highest's bucket; the maximum stays exact.
func (h *Histogram) Record(v int64) {
	if uint64(v) > Highest {
		h.outside(v, 1)
		return
	}
	// Update the extremes before the count: a reader that reads them first has a range that
	// includes every count it may rely on.
	if v > h.max.Load() {
		raise(&h.max, v)
	}
	if v < h.min.Load() {
		lower(&h.min, v)
	}
	h.count(indexOf(v), 1)
}

// count adds n to a bucket.
func (h *Histogram) count(bucket int, n uint64) {
	h.n[bucket].Add(n)
	if w, bit := &h.fresh[bucket>>(blockBits+6)], blockBit(bucket); w.Load()&bit == 0 {
		w.Or(bit)
	}
}

// RecordN counts v n times.
func (h *Histogram) RecordN(v int64, n uint64) {
	if n == 0 {
		return
	}
	if uint64(v) > Highest {
		h.outside(v, n)
		return
	}
	raise(&h.max, v)
	lower(&h.min, v)
	h.count(indexOf(v), n)
}

// outside counts a value that no bucket holds.
//
//go:noinline
func (h *Histogram) outside(v int64, n uint64) {
	if v < 0 {
		h.RecordN(0, n)
		return
	}
	raise(&h.max, v)
	lower(&h.min, v)
	h.over.Add(n)
	h.count(LastBucket, n)
}

//go:noinline
func raise(a *atomic.Int64, v int64) {
	for old := a.Load(); v > old && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

//go:noinline
func lower(a *atomic.Int64, v int64) {
	for old := a.Load(); v < old && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

// Read sets into to what has been recorded so far, reusing its memory. While others record, each
// bucket is read at some instant during the call: a later read holds no less in any bucket, its
// total is the sum of its buckets, and its extremes may be those of a value that only the next read
// counts. Once recording has stopped a read is exact.
func (h *Histogram) Read(into *Counts) {
	into.Reset()
	h.addTo(into)
}

// addTo merges what has been recorded so far into c.
func (h *Histogram) addTo(c *Counts) {
	// The order matters: extremes, then buckets (see Record).
	top, bottom := h.max.Load(), h.min.Load()
	if top < 0 || bottom == math.MaxInt64 {
		return
	}
	lo, hi := indexOf(clamp(bottom)), indexOf(clamp(top))
	if lo > hi {
		return // the first value is just being recorded
	}
	c.cover(lo, hi)
	var sum uint64
	for i := lo; i <= hi; i++ {
		if n := h.n[i].Load(); n != 0 {
			c.n[i-c.lo] += n
			c.used.mark(i)
			sum += n
		}
	}
	if sum == 0 {
		return
	}
	if c.total == 0 {
		c.min, c.max = bottom, top
	} else {
		c.min, c.max = min(c.min, bottom), max(c.max, top)
	}
	c.total += sum
	c.over += h.over.Load()
}
