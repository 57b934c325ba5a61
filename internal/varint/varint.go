// Package varint reads numbers that were written as varints of encoding/binary in
// their shortest form. So what it accepts has one form only. Writers append with
// encoding/binary itself.
package varint

import (
	"encoding/binary"
	"fmt"
)

// A Reader reads from the front of some bytes, and keeps nothing of them but the slice.
// After the first error it reads nothing more and returns zeros, so that callers look at
// Err once, at the end or before they use much memory. Use one goroutine at a time.
type Reader struct {
	b   []byte // after an error it ends at at
	at  int
	err error
}

// NewReader returns a Reader of b, which must not change meanwhile.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error; nil where there is none.
func (r *Reader) Err() error { return r.err }

// At returns how many bytes were read.
func (r *Reader) At() int { return r.at }

// Left returns how many bytes there are still to read, which is 0 after an error.
func (r *Reader) Left() int { return len(r.b) - r.at }

// Rest returns the bytes that are still to read. They are those of NewReader, and none
// after an error.
func (r *Reader) Rest() []byte { return r.b[r.at:] }

// Fail sets the error as fmt.Errorf makes it, unless there is one.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.b = r.b[:r.at]
	}
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if r.at == len(r.b) {
		r.Fail("it ends too early")
		return 0
	}
	v := r.b[r.at]
	r.at++
	return v
}

// Uint reads an unsigned varint.
func (r *Reader) Uint() uint64 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 { // most are that short
		r.at++
		return uint64(r.b[r.at-1])
	}
	return r.long()
}

// long is Uint for two bytes or more.
func (r *Reader) long() uint64 {
	v, n := binary.Uvarint(r.b[r.at:])
	switch {
	case n == 0:
		r.Fail("it ends too early")
		return 0
	case n < 0 || r.b[r.at+n-1] == 0:
		r.Fail("a number of too many bytes")
		return 0
	}
	r.at += n
	return v
}

// Int reads a signed varint.
func (r *Reader) Int() int64 {
	u := r.Uint()
	return int64(u>>1) ^ -int64(u&1)
}

// UpTo reads an unsigned varint of at most most. what names it in the error.
func (r *Reader) UpTo(what string, most uint64) uint64 {
	v := r.Uint()
	if v > most {
		r.Fail("%s: %d is more than %d", what, v, most)
		return 0
	}
	return v
}
