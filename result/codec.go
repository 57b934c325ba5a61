package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/weirmq/weir/measure"
)

// HdrHistogram's V2 encoding, from AbstractHistogram.encodeIntoByteBuffer and
// ZigZagLEB128.putLong (github.com/HdrHistogram/HdrHistogram): everything is
// big-endian; the low byte's 0x10 in a cookie says "counts as LEB128".
const (
	cookieV2           = 0x1c849303 | 0x10
	cookieV2Compressed = 0x1c849304 | 0x10
	headerBytes        = 40
	maxCountBytes      = 9 // of one ZigZag LEB128 number of 64 bits, as HdrHistogram writes it
	maxPayloadBytes    = headerBytes + maxCountBytes*(measure.LastBucket+1)
)

// An encoder encodes counts as the base64 text of a log line, reusing its memory.
type encoder struct {
	plain  []byte
	packed bytes.Buffer
	zip    *zlib.Writer
	text   []byte
}

// encode returns the text, which the next call overwrites.
func (e *encoder) encode(c *measure.Counts) ([]byte, error) {
	p := append(e.plain[:0], make([]byte, headerBytes)...)
	next := 0
	for i, n := range c.Range() {
		if n > math.MaxInt64 {
			return nil, fmt.Errorf("encode histogram: count %d does not fit 63 bits", n)
		}
		if gap := i - next; gap > 0 {
			p = appendZigZag(p, -int64(gap)) // a run of empty buckets
		}
		p = appendZigZag(p, int64(n))
		next = i + 1
	}
	e.plain = p
	binary.BigEndian.PutUint32(p[0:], cookieV2)
	binary.BigEndian.PutUint32(p[4:], uint32(len(p)-headerBytes))
	binary.BigEndian.PutUint32(p[8:], 0) // normalizing index offset
	binary.BigEndian.PutUint32(p[12:], measure.Digits)
	binary.BigEndian.PutUint64(p[16:], measure.Lowest)
	binary.BigEndian.PutUint64(p[24:], measure.Highest)
	binary.BigEndian.PutUint64(p[32:], math.Float64bits(1)) // integer to double conversion ratio

	e.packed.Reset()
	e.packed.Write(make([]byte, 8))
	if e.zip == nil {
		// Fastest compression: this runs beside the measurement, once a second for each
		// distribution, and a log is small.
		e.zip, _ = zlib.NewWriterLevel(&e.packed, zlib.BestSpeed) // fails for unknown levels only
	} else {
		e.zip.Reset(&e.packed)
	}
	if _, err := e.zip.Write(p); err != nil {
		return nil, fmt.Errorf("compress histogram: %w", err)
	}
	if err := e.zip.Close(); err != nil {
		return nil, fmt.Errorf("compress histogram: %w", err)
	}
	b := e.packed.Bytes()
	binary.BigEndian.PutUint32(b[0:], cookieV2Compressed)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-8))
	e.text = base64.StdEncoding.AppendEncode(e.text[:0], b)
	return e.text, nil
}

// appendZigZag appends v as HdrHistogram's ZigZag LEB128 number, which has at
// most nine bytes, the ninth using all its bits.
func appendZigZag(b []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for range maxCountBytes - 1 {
		if u < 0x80 {
			return append(b, byte(u))
		}
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}

// zigZag reads what appendZigZag wrote and returns its length, 0 if b ends within it.
func zigZag(b []byte) (v int64, n int) {
	var u uint64
	for i, c := range b {
		if i == maxCountBytes-1 {
			u |= uint64(c) << 56
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}

// decode decodes the base64 text of a log line. It accepts only this package's geometry, and uses
// no more memory than that needs, whatever the text says.
func decode(text []byte) (*measure.Counts, error) {
	b := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(b, text)
	if err != nil {
		return nil, fmt.Errorf("%w: histogram: base64: %w", ErrMalformed, err)
	}
	if b = b[:n]; len(b) < 8 {
		return nil, fmt.Errorf("%w: histogram of %d bytes", ErrMalformed, len(b))
	}
	if c := binary.BigEndian.Uint32(b); c != cookieV2Compressed {
		return nil, fmt.Errorf("%w: histogram: cookie %#x is not that of compressed V2", ErrMalformed, c)
	}
	if l := binary.BigEndian.Uint32(b[4:]); uint64(l) != uint64(len(b)-8) {
		return nil, fmt.Errorf("%w: histogram: says %d compressed bytes, has %d", ErrMalformed, l, len(b)-8)
	}
	zip, err := zlib.NewReader(bytes.NewReader(b[8:]))
	if err != nil {
		return nil, fmt.Errorf("%w: histogram: zlib: %w", ErrMalformed, err)
	}
	p, err := io.ReadAll(io.LimitReader(zip, maxPayloadBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: histogram: zlib: %w", ErrMalformed, err)
	}
	if len(p) < headerBytes || len(p) > maxPayloadBytes {
		return nil, fmt.Errorf("%w: histogram of %d bytes", ErrMalformed, len(p))
	}
	be := binary.BigEndian
	if c := be.Uint32(p); c != cookieV2 {
		return nil, fmt.Errorf("%w: histogram: cookie %#x is not that of V2", ErrMalformed, c)
	}
	if l := be.Uint32(p[4:]); uint64(l) != uint64(len(p)-headerBytes) {
		return nil, fmt.Errorf("%w: histogram: says %d bytes, has %d", ErrMalformed, l, len(p)-headerBytes)
	}
	if be.Uint32(p[8:]) != 0 || be.Uint32(p[12:]) != measure.Digits || be.Uint64(p[16:]) != measure.Lowest ||
		be.Uint64(p[24:]) != measure.Highest || be.Uint64(p[32:]) != math.Float64bits(1) {
		return nil, fmt.Errorf("%w: histogram: not 1 ns to 1 h with 3 digits", ErrMalformed)
	}
	return decodeCounts(p[headerBytes:])
}

func decodeCounts(p []byte) (*measure.Counts, error) {
	type bucket struct {
		index int
		n     uint64
	}
	var buckets []bucket
	var total uint64
	for i := 0; len(p) > 0; {
		v, used := zigZag(p)
		switch p = p[used:]; {
		case used == 0:
			return nil, fmt.Errorf("%w: histogram: ends within a count", ErrMalformed)
		case v <= 0: // a run of empty buckets; 0 is one
			gap := max(1, uint64(-v))
			if gap > uint64(measure.LastBucket+1-i) {
				return nil, fmt.Errorf("%w: histogram: more buckets than 1 h has", ErrMalformed)
			}
			i += int(gap)
		case i > measure.LastBucket:
			return nil, fmt.Errorf("%w: histogram: more buckets than 1 h has", ErrMalformed)
		default:
			if total += uint64(v); total > math.MaxInt64 {
				return nil, fmt.Errorf("%w: histogram: counts exceed 63 bits", ErrMalformed)
			}
			buckets = append(buckets, bucket{i, uint64(v)})
			i++
		}
	}
	return measure.FromBuckets(func(yield func(int64, uint64) bool) {
		for _, b := range buckets {
			if !yield(measure.BucketLowest(b.index), b.n) {
				return
			}
		}
	}), nil
}
