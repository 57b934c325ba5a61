package schedule

import "math/bits"

// A u128 is an unsigned integer of 128 bits.
type u128 struct{ hi, lo uint64 }

// product returns a*b.
func product(a, b uint64) u128 {
	hi, lo := bits.Mul64(a, b)
	return u128{hi, lo}
}

func (a u128) plus(b u128) u128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return u128{hi, lo}
}

func (a u128) minus(b u128) u128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return u128{hi, lo}
}

func (a u128) below(b u128) bool {
	return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo
}

// over returns a/d, rounded down, and the remainder. The quotient must fit in
// 64 bits.
func (a u128) over(d uint64) (q, rem uint64) { return bits.Div64(a.hi, a.lo, d) }

// overUp returns a/d, rounded up.
func (a u128) overUp(d uint64) uint64 {
	q, rem := a.over(d)
	if rem != 0 {
		q++
	}
	return q
}

// A u192 is an unsigned integer of 192 bits.
type u192 struct{ hi, mid, lo uint64 }

// times returns a*b.
func (a u128) times(b uint64) u192 {
	h1, lo := bits.Mul64(a.lo, b)
	h2, l2 := bits.Mul64(a.hi, b)
	mid, carry := bits.Add64(h1, l2, 0)
	return u192{h2 + carry, mid, lo}
}

// atMost reports whether a <= b.
func (a u192) atMost(b u192) bool {
	if a.hi != b.hi {
		return a.hi < b.hi
	}
	if a.mid != b.mid {
		return a.mid < b.mid
	}
	return a.lo <= b.lo
}

// A divisor divides by the same number again and again, by multiplication with
// its reciprocal: Möller and Granlund, "Improved division by invariant integers",
// IEEE Trans. Comp. 60 (2011), algorithm 4. A 128-bit division instruction costs
// up to 40 ns, this some 5.
type divisor struct {
	d, reciprocal uint64 // d shifted so that its top bit is set
	shift         int
}

func newDivisor(d uint64) divisor {
	v := divisor{shift: bits.LeadingZeros64(d)}
	v.d = d << v.shift
	v.reciprocal, _ = bits.Div64(^v.d, ^uint64(0), v.d)
	return v
}

// divide returns a/d, rounded down, which must fit in 64 bits.
func (v *divisor) divide(a u128) uint64 {
	hi, lo := a.hi<<v.shift|a.lo>>1>>(63-v.shift), a.lo<<v.shift
	q1, q0 := bits.Mul64(v.reciprocal, hi)
	q0, carry := bits.Add64(q0, lo, 0)
	q1, _ = bits.Add64(q1, hi, carry)
	q1++
	r := lo - q1*v.d
	if r > q0 {
		q1--
		r += v.d
	}
	if r >= v.d {
		q1++
	}
	return q1
}
