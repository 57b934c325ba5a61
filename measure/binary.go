package measure

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/weirmq/weir/internal/varint"
)

// ErrFormat is wrapped by the errors of DecodeBinary: the input is not what AppendBinary writes.
var ErrFormat = errors.New("malformed")

// The binary form of Counts is exact and canonical. It begins with a byte that says which parts
// follow, in this order; a number is an unsigned varint of encoding/binary unless said otherwise.
const (
	partOverflow = 1 << iota // how many values overflowed
	partBuckets              // the index of the first bucket counted, how many come after it, min, max; then the buckets
)

// The buckets are signed varints, as in HdrHistogram's logs: a positive number is the count of the
// next bucket, a negative one stands for that many empty buckets. The last count is that of the
// last bucket.

// AppendBinary appends c's binary form to b: one byte if c is empty, else some 15 and one or two
// for each nonempty bucket. The form is for transport, not for storage: it has no version, so its
// carrier must have one. It fails if c counts 2^63 values or more, and then returns b unchanged.
func (c *Counts) AppendBinary(b []byte) ([]byte, error) {
	var parts byte
	if c.over > 0 {
		parts |= partOverflow
	}
	if c.total > 0 {
		parts |= partBuckets
	}
	out := append(b, parts)
	if c.over > 0 {
		out = binary.AppendUvarint(out, c.over)
	}
	if c.total == 0 {
		return out, nil
	}
	first, last := c.span()
	out = binary.AppendUvarint(out, uint64(first))
	out = binary.AppendUvarint(out, uint64(last-first))
	out = binary.AppendUvarint(out, uint64(c.min))
	out = binary.AppendUvarint(out, uint64(c.max))
	var sum uint64
	next := first
	for i, n := range c.Range() {
		if n > math.MaxInt64 || sum+n > math.MaxInt64 {
			return b, errors.New("encode counts: they do not fit 63 bits")
		}
		sum += n
		if i > next {
			out = binary.AppendVarint(out, int64(next-i))
		}
		out = binary.AppendVarint(out, int64(n))
		next = i + 1
	}
	return out, nil
}

// span returns the first and the last nonempty bucket; there must be one.
func (c *Counts) span() (first, last int) {
	first = -1
	for i := range c.Range() {
		if first < 0 {
			first = i
		}
		last = i
	}
	return first, last
}

// MarshalText is AppendBinary as text, for JSON.
func (c Counts) MarshalText() ([]byte, error) {
	b, err := c.AppendBinary(nil)
	return base64.StdEncoding.AppendEncode(nil, b), err
}

// UnmarshalText sets c to what MarshalText wrote. Its errors are those of DecodeBinary.
func (c *Counts) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	rest, err := c.DecodeBinary(b)
	if len(rest) > 0 {
		c.Reset()
		return fmt.Errorf("%w: %d bytes after the end", ErrFormat, len(rest))
	}
	return err
}

// DecodeBinary sets c to what AppendBinary wrote at the start of b, reusing c's memory, and returns
// what follows it. Whatever the input, c takes no more memory than any Counts. An error wraps
// ErrFormat and leaves c empty.
func (c *Counts) DecodeBinary(b []byte) (rest []byte, err error) {
	d := decoder{varint.NewReader(b)}
	d.counts(c)
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return d.Rest(), nil
}

// A decoder reads binary forms from the front of bytes.
type decoder struct{ varint.Reader }

// natural reads a number from 0 to most.
func (d *decoder) natural(what string, most int64) int64 { return int64(d.UpTo(what, uint64(most))) }

// counts reads the binary form of Counts into c.
func (d *decoder) counts(c *Counts) {
	c.Reset()
	parts := d.Byte()
	if parts&^(partOverflow|partBuckets) != 0 {
		d.Fail("counts of unknown parts %#x", parts)
	}
	if parts&partOverflow != 0 {
		if c.over = d.Uint(); c.over == 0 {
			d.Fail("counts with an overflow of none")
		}
	}
	if parts&partBuckets != 0 {
		d.buckets(c)
	}
	if d.Err() != nil {
		c.Reset()
	}
}

func (d *decoder) buckets(c *Counts) {
	first := int(d.natural("first bucket", LastBucket))
	last := first + int(d.natural("number of further buckets", LastBucket-int64(first)))
	lo, hi := d.natural("minimum", math.MaxInt64), d.natural("maximum", math.MaxInt64)
	// Nothing stricter holds. The extremes are read before the counts (see Histogram), and may be
	// those of a value that only the next reading counts. Values above Highest count in its bucket.
	if first < LastBucket && lo > highestOf(first) || hi < BucketLowest(last) {
		d.Fail("extremes %d and %d of buckets from %d to %d", lo, hi, BucketLowest(first), highestOf(last))
	}
	if d.Err() != nil {
		return
	}
	c.cover(first, last)
	n := c.n[first-c.lo : last-c.lo+1]
	var sum uint64
	for i, wasGap := 0, true; i < len(n); { // true: it must begin with a count
		v := d.Int()
		switch {
		case d.Err() != nil:
			return
		case v == 0, v < 0 && wasGap:
			d.Fail("empty buckets where a count must be")
			return
		case v < 0:
			if uint64(-v) >= uint64(len(n)-i) { // the last is a count
				d.Fail("more empty buckets than there are buckets")
				return
			}
			i += int(-v)
			wasGap = true
		default:
			if sum += uint64(v); sum > math.MaxInt64 {
				d.Fail("counts that do not fit 63 bits")
				return
			}
			n[i] = uint64(v)
			c.used.mark(first + i)
			i++
			wasGap = false
		}
	}
	c.total, c.min, c.max = sum, lo, hi
}
