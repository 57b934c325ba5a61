package varint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// FuzzReader: a reader never reads beyond its bytes, and accepts only what encoding/binary writes for
// the same values.
func FuzzReader(f *testing.F) {
	f.Add([]byte{}, uint8(3))
	f.Add(binary.AppendUvarint(nil, math.MaxUint64), uint8(0))
	f.Add([]byte{0x80, 0}, uint8(1))
	f.Add([]byte{2, 'a', 'b', 0x81, 1}, uint8(9))
	f.Fuzz(func(t *testing.T, b []byte, most uint8) {
		r := NewReader(b)
		u, i, n := r.Uint(), r.Int(), r.UpTo("n", uint64(most))
		if r.Err() != nil {
			if r.Left() != 0 || len(r.Rest()) != 0 || r.Uint() != 0 {
				t.Errorf("it reads on after %v", r.Err())
			}
			return
		}
		again := binary.AppendUvarint(binary.AppendVarint(binary.AppendUvarint(nil, u), i), n)
		if !bytes.Equal(again, b[:r.At()]) || !bytes.Equal(r.Rest(), b[r.At():]) || n > uint64(most) {
			t.Errorf("%x came back as %x and %x", b, again, r.Rest())
		}
	})
}

// TestTheFirstErrorStays: later failures change neither the error nor its position.
func TestTheFirstErrorStays(t *testing.T) {
	first := errors.New("first")
	r := NewReader([]byte{7, 8, 9})
	if r.Byte() != 7 || r.At() != 1 {
		t.Fatal("it does not read a byte")
	}
	r.Fail("%w", first)
	r.Fail("second")
	if r.Byte() != 0 || r.At() != 1 || !errors.Is(r.Err(), first) || strings.Contains(r.Err().Error(), "second") {
		t.Errorf("at %d: %v", r.At(), r.Err())
	}
}
