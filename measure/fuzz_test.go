package measure

import (
	"bytes"
	"errors"
	"testing"
)

// What decodes is encoded again byte for byte: the form is canonical. Anything else is rejected
// with ErrFormat.

func FuzzDecodeCounts(f *testing.F) {
	var c Counts
	f.Add(encoded(f, &c))
	for v := int64(3); v < Highest; v *= 7 {
		c.Add(v, uint64(v))
	}
	f.Add(encoded(f, &c))
	c.Add(2*Highest, 5)
	f.Add(encoded(f, &c))
	var into Counts
	f.Fuzz(func(t *testing.T, b []byte) {
		rest, err := into.DecodeBinary(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) || into.total != 0 || rest != nil {
				t.Fatalf("%v, %d counted", err, into.total)
			}
			return
		}
		if got := append(encoded(t, &into), rest...); !bytes.Equal(got, b) {
			t.Fatalf("%x was read and is written as %x", b, got)
		}
		if len(into.n) > numCounts {
			t.Fatalf("room for %d buckets", len(into.n))
		}
		var sum uint64
		for v, n := range into.Buckets() {
			if sum += n; v > Highest {
				t.Fatalf("a bucket at %d ns", v)
			}
		}
		if sum != into.Total() {
			t.Fatalf("%d in buckets, %d in all", sum, into.Total())
		}
		if into.At(1) > into.At(sum) || into.Mean() < 0 {
			t.Fatalf("from %d to %d, mean %g", into.At(1), into.At(sum), into.Mean())
		}
	})
}
