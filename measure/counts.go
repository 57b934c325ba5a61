package measure

import (
	"iter"
	"math"
	"math/bits"
)

// Counts is a plain copy of a histogram's counts with their exact extremes. The zero value is empty
// and ready. It keeps only the range of buckets that it needs, 264 KiB at most. It must not be used
// by two goroutines at once.
type Counts struct {
	lo       int      // the bucket of n[0]; a multiple of half
	n        []uint64 // its length is a multiple of half
	used     blocks   // outside of them all of n is 0
	total    uint64
	over     uint64
	min, max int64 // meaningless while total is 0
}

// FromBuckets returns counts read from elsewhere: values with their counts, in any order; buckets
// of another geometry are counted at the value given. The extremes are those of the buckets: the
// lowest value of the first and the highest of the last.
func FromBuckets(buckets iter.Seq2[int64, uint64]) *Counts {
	c := new(Counts)
	for v, n := range buckets {
		c.Add(v, n)
	}
	if c.total > 0 && c.over == 0 {
		c.min, c.max = LowestEquivalent(c.min), HighestEquivalent(c.max)
	}
	return c
}

// block returns the counts of a block, by its first bucket.
func (c *Counts) block(bucket int) []uint64 {
	return c.n[bucket-c.lo : bucket-c.lo+blockLen : bucket-c.lo+blockLen]
}

// Reset empties c and keeps its memory.
func (c *Counts) Reset() {
	for b := c.used.next(0); b >= 0; b = c.used.next(b + blockLen) {
		clear(c.block(b))
	}
	c.used = blocks{}
	c.total, c.over, c.min, c.max = 0, 0, 0, 0
}

// Add counts v n times, as Histogram.RecordN does.
func (c *Counts) Add(v int64, n uint64) {
	if n == 0 {
		return
	}
	v = max(v, 0)
	if v > Highest {
		c.over += n
	}
	i := indexOf(clamp(v))
	c.cover(i, i)
	c.n[i-c.lo] += n
	c.used.mark(i)
	c.extremes(v, v)
	c.total += n
}

// extremes widens the extremes; it is called before total grows.
func (c *Counts) extremes(lo, hi int64) {
	if c.total == 0 {
		c.min, c.max = lo, hi
		return
	}
	c.min, c.max = min(c.min, lo), max(c.max, hi)
}

// cover makes room for the buckets lo to hi.
func (c *Counts) cover(lo, hi int) {
	lo, hi = lo&^(half-1), (hi|(half-1))+1
	switch {
	case len(c.n) == 0:
	case lo >= c.lo && hi <= c.lo+len(c.n):
		return
	default: // at least double, so that growing step by step stays cheap
		old := len(c.n)
		if lo < c.lo {
			lo = max(0, min(lo, c.lo-old))
		}
		if hi > c.lo+old {
			hi = min(numCounts, max(hi, c.lo+2*old))
		}
		lo, hi = min(lo, c.lo), max(hi, c.lo+old)
	}
	n := make([]uint64, hi-lo)
	if len(c.n) > 0 {
		copy(n[c.lo-lo:], c.n)
	}
	c.lo, c.n = lo, n
}

// Assign makes c a copy of o, reusing c's memory.
func (c *Counts) Assign(o *Counts) {
	c.Reset()
	c.Merge(o)
}

// Merge adds o to c.
func (c *Counts) Merge(o *Counts) {
	if o.total == 0 {
		// The overflows of an interval may be counted an interval before their
		// buckets (see Histogram): they must not be lost when those are summed up.
		c.over += o.over
		return
	}
	c.cover(o.used.bounds())
	for b := o.used.next(0); b >= 0; b = o.used.next(b + blockLen) {
		into := c.block(b)
		for i, n := range o.block(b) {
			into[i] += n
		}
		c.used.mark(b)
	}
	c.extremes(o.min, o.max)
	c.total += o.total
	c.over += o.over
}

// Total returns how many values are counted.
func (c *Counts) Total() uint64 { return c.total }

// Overflow returns how many values are above Highest.
func (c *Counts) Overflow() uint64 { return c.over }

// Min returns the smallest value in nanoseconds: exact as recorded, the bound of a bucket in an
// interval and after FromBuckets; 0 if empty.
func (c *Counts) Min() int64 { return c.min }

// Max returns the largest value in nanoseconds: exact as recorded, also above Highest, and the
// bound of a bucket in an interval and after FromBuckets; 0 if empty.
func (c *Counts) Max() int64 { return c.max }

// At returns the value of the given rank, 1 being the smallest: the highest value of its bucket, or
// the exact maximum if that is less. A rank beyond either end is taken as that end; the result is 0
// if c is empty.
func (c *Counts) At(rank uint64) int64 {
	if c.total == 0 {
		return 0
	}
	if rank >= c.total {
		return c.max
	}
	rank = max(rank, 1)
	var sum uint64
	for i, n := range c.n {
		if sum += n; sum >= rank {
			return max(min(highestOf(c.lo+i), c.max), c.min)
		}
	}
	return c.max
}

// LowestAt returns the lower bound of the value of the given rank: the lowest value of its bucket,
// or the exact minimum if that is more.
func (c *Counts) LowestAt(rank uint64) int64 {
	if c.total == 0 {
		return 0
	}
	if rank <= 1 {
		return c.min
	}
	rank = min(rank, c.total)
	var sum uint64
	for i, n := range c.n {
		if sum += n; sum >= rank {
			return max(BucketLowest(c.lo+i), c.min)
		}
	}
	return c.min
}

// Below returns how many of the values are certainly less than v: those in
// buckets below v's.
func (c *Counts) Below(v int64) uint64 {
	if v < 0 {
		return 0
	}
	if v > c.max && c.total > 0 {
		return c.total
	}
	end := indexOf(clamp(v)) - c.lo
	var sum uint64
	for i := 0; i < end && i < len(c.n); i++ {
		sum += c.n[i]
	}
	return sum
}

// Buckets yields the lowest value and the count of each nonempty bucket, in ascending order.
func (c *Counts) Buckets() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		for i, n := range c.Range() {
			if !yield(BucketLowest(i), n) {
				return
			}
		}
	}
}

// Range yields the index and the count of each nonempty bucket, in ascending order, for writers of
// HdrHistogram's formats: index 0 is value 0.
func (c *Counts) Range() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for b := c.used.next(0); b >= 0; b = c.used.next(b + blockLen) {
			for i, n := range c.block(b) {
				if n != 0 && !yield(b+i, n) {
					return
				}
			}
		}
	}
}

// Mean returns the mean in nanoseconds, taking each value as the middle of its bucket within the
// extremes: at most 0.05 % off. It is 0 if c is empty.
func (c *Counts) Mean() float64 {
	if c.total == 0 {
		return 0
	}
	var sum float64
	for i, n := range c.n {
		if n != 0 {
			sum += float64(n) * c.middle(i)
		}
	}
	return sum / float64(c.total)
}

// StdDev returns the population standard deviation of the counted values, taking values as in Mean.
// It is 0 if c is empty.
func (c *Counts) StdDev() float64 {
	if c.total == 0 {
		return 0
	}
	mean := c.Mean()
	var sum float64
	for i, n := range c.n {
		if n != 0 {
			d := c.middle(i) - mean
			sum += float64(n) * d * d
		}
	}
	return math.Sqrt(sum / float64(c.total))
}

// middle returns what represents the values of n[i]: HdrHistogram's median equivalent value,
// clamped to the extremes.
func (c *Counts) middle(i int) float64 {
	low, high := BucketLowest(c.lo+i), highestOf(c.lo+i)
	return float64(max(min(low+(high-low+1)/2, c.max), c.min))
}

// Percentile returns the value of percentile p, in percent: At its Rank. It is 0 if c is empty.
func (c *Counts) Percentile(p float64) int64 { return c.At(Rank(p, c.total)) }

// Rank returns the rank of percentile p, in percent, among n values: max(1, ceil(p/100 n)), at most
// n. It is exact for a p with up to six decimals.
func Rank(p float64, n uint64) uint64 {
	if n == 0 || p <= 0 {
		return min(n, 1)
	}
	if p >= 100 {
		return n
	}
	// p/100*n in floats may come out slightly above a whole number; in integer units of 1e-8 it
	// cannot.
	hi, lo := bits.Mul64(uint64(math.Round(p*1e6)), n)
	q, r := bits.Div64(hi, lo, 1e8)
	if r != 0 {
		q++
	}
	return max(q, 1)
}
