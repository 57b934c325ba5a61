// Package varint reads numbers written as encoding/binary varints in their shortest form, so that
// every accepted input has a unique encoding. Writers append with encoding/binary itself.
package varint

import (
	"encoding/binary"
	"fmt"
)

// A Reader reads from the front of a byte slice. It keeps nothing but the slice. After the first error
// it reads nothing more and returns zeros, so that callers check Err once, at the end or before they
// use much memory. It is not safe for concurrent use.
type Reader struct {
	b   []byte // after an error it ends at position at
	at  int
	err error
}

// NewReader returns a Reader of b, which must not change while it is used.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error, or nil.
func (r *Reader) Err() error { return r.err }

// At returns how many bytes were read.
func (r *Reader) At() int { return r.at }

// Left returns how many bytes are left to read, which is 0 after an error.
func (r *Reader) Left() int { return len(r.b) - r.at }

// Rest returns the unread bytes, a part of NewReader's slice; none after an error.
func (r *Reader) Rest() []byte { return r.b[r.at:] }

// Fail sets the error, formatted like fmt.Errorf, unless there is one already.
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
	if r.at < len(r.b) && r.b[r.at] < 0x80 { // the common case
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

// UpTo reads an unsigned varint of at most most, which what names in the error.
func (r *Reader) UpTo(what string, most uint64) uint64 {
	v := r.Uint()
	if v > most {
		r.Fail("%s: %d is more than %d", what, v, most)
		return 0
	}
	return v
}
