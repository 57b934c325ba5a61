package schedule

import "math"

// Floating point here is bit-identical on every machine: Go may fuse x*y+z into one rounding, and
// does on arm64 and others, except where the product is explicitly converted (Go spec,
// "Floating-point operators"). So every product goes through mul, except those with a power of two,
// which are exact. Sums, quotients and math.Sqrt are rounded correctly everywhere; math.Log and
// math.Exp are not, and are not used.

func mul(a, b float64) float64 { return float64(a * b) }

// A gamma draws gaps of mean perMessage from the gamma distribution of a given
// coefficient of variation (Marsaglia and Tsang, "A simple method for generating
// gamma variables", ACM TOMS 26, 2000; section 6 for shapes below 1).
type gamma struct {
	d, c  float64 // Marsaglia and Tsang's
	scale float64 // 1/shape, which is cv squared: makes the mean 1
	boost bool    // shape below 1: draw for shape+1 and multiply by u^(1/shape)
}

func newGamma(cv float64) *gamma {
	g := &gamma{scale: mul(cv, cv), boost: cv > 1}
	shape := 1 / g.scale
	if g.boost {
		shape++
	}
	g.d = shape - 1.0/3
	g.c = 1 / math.Sqrt(mul(9, g.d))
	return g
}

// gap draws one gap, taking as many numbers from the stream as it needs.
func (g *gamma) gap(s stream) u128 {
	d := draws{from: s}
	x := 0.0
	for {
		z := normal(&d)
		t := 1 + mul(g.c, z)
		if t <= 0 {
			continue
		}
		v := mul(mul(t, t), t)
		zz := mul(z, z)
		r := d.next() | 1
		// u < 1 - 0.0331 z^4 implies the test below it, and spares it the logarithms.
		squeeze := float64(int64(r>>11))*0x1p-53 < 1-mul(0.0331, mul(zz, zz))
		// ln(u) < z*z/2 + d - d*v + d*ln(v)
		if squeeze || -float64(minusLn(r))*0x1p-58 < mul(0.5, zz)+mul(g.d, 1-v+ln(v)) {
			x = mul(mul(g.d, v), g.scale)
			break
		}
	}
	if g.boost {
		x = mul(x, expMinus(mul(float64(minusLn(d.next()|1))*0x1p-58, g.scale)))
	}
	whole := math.Floor(x)
	return product(uint64(int64(whole)), perMessage).plus(u128{0, uint64(int64(mul(x-whole, float64(perMessage))))})
}

// normal draws from the standard normal distribution (Marsaglia's polar method).
func normal(d *draws) float64 {
	for {
		// 53 bits and a sign: exact.
		a := float64(int64(d.next())>>10) * 0x1p-53
		b := float64(int64(d.next())>>10) * 0x1p-53
		s := mul(a, a) + mul(b, b)
		if s > 0 && s < 1 {
			return mul(a, math.Sqrt(mul(-2, ln(s))/s))
		}
	}
}

// ln returns the natural logarithm of a normal x between 2^-300 and 2^300, with
// an absolute error of 2^-53, 2^-54 for each power of two that x is from 1, and
// the rounding of the result.
func ln(x float64) float64 {
	b := math.Float64bits(x)
	exponent := int64(b>>52) - 1023
	// 54 fractional bits leave nine and the sign.
	return float64(exponent*(ln2>>4)+int64(lnMantissa(b<<11|1<<63)>>4)) * 0x1p-54
}

// expMinus returns e^-y for y >= 0, with a relative error below 1e-15 plus the effect of y's own
// rounding; 0 below 2^-1000.
func expMinus(y float64) float64 {
	if y > 693 {
		return 0
	}
	// y = n*ln(2) - r, |r| <= ln(2)/2; the high part of ln(2) (fdlibm's split)
	// ends in 21 zero bits, so that its product with n is exact.
	const ln2High, ln2Low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	n := math.Floor(mul(y, math.Log2E) + 0.5)
	r := mul(n, ln2High) - y + mul(n, ln2Low)
	// Taylor's series: the first term left out is below 1e-17.
	p := 1.0 / 6227020800
	p = mul(p, r) + 1.0/479001600
	p = mul(p, r) + 1.0/39916800
	p = mul(p, r) + 1.0/3628800
	p = mul(p, r) + 1.0/362880
	p = mul(p, r) + 1.0/40320
	p = mul(p, r) + 1.0/5040
	p = mul(p, r) + 1.0/720
	p = mul(p, r) + 1.0/120
	p = mul(p, r) + 1.0/24
	p = mul(p, r) + 1.0/6
	p = mul(p, r) + 0.5
	p = mul(p, r) + 1
	p = mul(p, r) + 1
	return mul(p, math.Float64frombits(uint64(1023-int64(n))<<52))
}
