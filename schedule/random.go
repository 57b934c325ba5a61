package schedule

import "math/bits"

// goldenRatio is 2^64 divided by the golden ratio, the increment of SplitMix64.
const goldenRatio = 0x9e3779b97f4a7c15

// A stream is a sequence of 64-bit random numbers with random access: the output of SplitMix64
// seeded with the stream's value (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014, with the constants of David Stafford's mix 13). It passes BigCrush.
type stream uint64

// at returns the n-th number.
func (s stream) at(n uint64) uint64 {
	z := uint64(s) + (n+1)*goldenRatio
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// draws returns the numbers of a stream one after another.
type draws struct {
	from stream
	n    uint64
}

func (d *draws) next() uint64 {
	d.n++
	return d.from.at(d.n - 1)
}

// split returns the n-th of a family of independent streams.
func (s stream) split(n uint64) stream { return stream(s.at(n)) }

// below maps a random number to [0, n): the high word of the product (Lemire 2019). Values differ
// in probability by at most n/2^64.
func below(random, n uint64) uint64 {
	hi, _ := bits.Mul64(random, n)
	return hi
}

// exponential returns a gap of mean perMessage, exponentially distributed, from
// one random number, by inversion: -ln(u), u an odd multiple of 2^-64. Integers
// only, so the same on every machine; the error of each gap is below 2^-56 of
// the mean, the greatest gap is 44 times the mean.
func exponential(random uint64) u128 {
	e := minusLn(random | 1) // 58 fractional bits
	p := product(e, perMessage)
	return u128{p.hi >> 58, p.hi<<6 | p.lo>>58}
}

// ln2 is the natural logarithm of 2 with 58 fractional bits (OEIS A002162).
const ln2 = 0x2c5c85fdf473de7

// minusLn returns -ln(u/2^64) with 58 fractional bits; u must not be 0.
func minusLn(u uint64) uint64 {
	zeros := bits.LeadingZeros64(u)
	return uint64(zeros+1)*ln2 - lnMantissa(u<<zeros)
}

// lnMantissa returns ln(m/2^63) with 58 fractional bits, m at least 2^63: the
// logarithm of the nearest 1+k/256 below, from a table, and the series of
// ln(1+r) for the rest, r < 1/256, to the sixth power (the seventh is below
// 2^-58).
func lnMantissa(m uint64) uint64 {
	k := m >> 55 & 0xff
	hi, lo := bits.Mul64(m, logTable.inverse[k]) // 126 fractional bits, in [1, 1+2^-8]
	r := hi<<2 | lo>>62                          // the 1 falls off at the top: 64 fractional bits
	const one = ^uint64(0)
	// r - r²(1/2 - r/3 + r²(1/4 - r/5 + r²/6)), in this order because the
	// products then wait for fewer others.
	rr := times(r, r)
	a, b := one/2-times(r, one/3), one/4-times(r, one/5)
	p := times(rr, a+times(rr, b+times(rr, one/6)))
	return logTable.ln[k] + (r-p)>>6
}

// times multiplies two fractions of 64 bits.
func times(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

// logTable holds, for c = 1+k/256, 1/c with 63 fractional bits, rounded up, and ln(c) with 58. It
// is immutable.
var logTable = newLogTable()

type logs struct{ inverse, ln [256]uint64 }

func newLogTable() *logs {
	t := new(logs)
	for k := range uint64(256) {
		// 2^63 * 256 / (256+k), rounded up.
		t.inverse[k] = u128{128, 0}.overUp(256 + k)
		// ln(c) = 2 artanh(y) = 2(y + y^3/3 + y^5/5 + ...), y = (c-1)/(c+1) < 1/3.
		y, _ := u128{k, 0}.over(512 + k)
		square, power, sum := times(y, y), y, uint64(0)
		for n := uint64(1); power != 0; n += 2 {
			sum += power / n
			power = times(power, square)
		}
		t.ln[k] = sum >> 5 // 2*sum, from 64 to 58 fractional bits
	}
	return t
}
