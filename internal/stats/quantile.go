// Package stats implements the statistics for judging a run. Each formula names its source. It is
// independent of what is measured.
package stats

import "math"

// MinBeyond is how many samples must be expected beyond a percentile for it to be reported as a
// number: five, the usual minimum expected count of a cell (Cochran, "The chi-squared test of
// goodness of fit", 1952), which for a percentile keeps the relative error of the tail's size near
// 45 % (1/sqrt(5)).
const MinBeyond = 5

// Supported reports whether n samples suffice for percentile p, given in percent: at least
// MinBeyond of them are expected beyond it.
func Supported(n uint64, p float64) bool { return n >= Needed(p) && p < 100 }

// Needed returns the smallest number of samples that supports percentile p: 500,000 for 99.999.
// Percentiles are taken to six decimals, so that what is written as 99.9999 is that and not the
// nearest binary fraction. No number supports 100.
func Needed(p float64) uint64 {
	beyond := uint64(math.Round((100 - min(p, 100)) * 1e6)) // in 1e-8
	if beyond == 0 {
		return math.MaxUint64
	}
	const cells = MinBeyond * 100_000_000
	return (cells + beyond - 1) / beyond
}

// QuantileRanks returns the ranks, 1 being the smallest of n samples, whose values enclose
// percentile p of the population with at least the given confidence (0.95, say), whatever its
// distribution, provided that the samples are independent. The lower end is the largest rank lo
// with P(B >= lo) >= 1 - (1-conf)/2 for B binomial with n and p; if there is none, lo is 1 and the
// lower end no bound. The upper end is the smallest rank hi with P(B <= hi-1) >= 1 - (1-conf)/2; if
// there is none, hiOK is false and hi is n.
//
// Source: W. J. Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2; G. J. Hahn and
// W. Q. Meeker, Statistical Intervals, section 5.2: each tail gets half of what may be missed,
// exactly, from the binomial distribution. Here its tail probabilities are the regularised
// incomplete beta function's, so n may be anything up to 1e12. Their error is below 1e-9 up to a
// million samples beyond the percentile and below 2e-7 from there on, where a rank more or less
// changes the coverage by more than that until the samples beyond are some 1e10 (then an end may be
// off by one rank).
func QuantileRanks(n uint64, p, conf float64) (lo, hi uint64, hiOK bool) {
	if n == 0 {
		return 0, 0, false
	}
	q := min(max(p/100, 0), 1)
	tail := (1 - min(max(conf, 0), 1)) / 2
	// lo: the largest r with P(B <= r-1) <= tail; P grows with r.
	r := search(n, q, func(r uint64) bool { return binomialCDF(r-1, n, q) <= tail })
	lo = max(r, 1)
	// hi: the smallest r with P(B >= r) <= tail, that is one above the largest
	// with P(B >= r) > tail.
	r = search(n, q, func(r uint64) bool { return binomialSurvival(r, n, q) > tail })
	if r >= n {
		return lo, n, false
	}
	return lo, r + 1, true
}

// search returns the largest r in 1 to n for which ok holds, or 0; ok must hold up to some r and
// not beyond. It starts near n*q, where the answer is.
func search(n uint64, q float64, ok func(r uint64) bool) uint64 {
	// ok holds at a (or a is 0) and fails from b on.
	mean := q * float64(n)
	width := 10*math.Sqrt(mean*(1-q)) + 10
	a := uint64(max(0, math.Floor(mean-width)))
	b := uint64(min(float64(n), math.Ceil(mean+width))) + 1
	a, b = min(a, n), min(b, n+1)
	if a > 0 && !ok(a) {
		a, b = 0, a
	}
	if b <= n && ok(b) {
		a, b = b, n+1
	}
	for a+1 < b {
		if m := a + (b-a)/2; ok(m) {
			a = m
		} else {
			b = m
		}
	}
	return a
}

// binomialCDF returns P(B <= k) for B binomial with n and q.
// Source: Abramowitz and Stegun 26.5.24: it is I_{1-q}(n-k, k+1).
func binomialCDF(k, n uint64, q float64) float64 {
	if k >= n {
		return 1
	}
	return incompleteBeta(float64(n-k), float64(k)+1, 1-q, q)
}

// binomialSurvival returns P(B >= k): I_q(k, n-k+1).
func binomialSurvival(k, n uint64, q float64) float64 {
	if k == 0 {
		return 1
	}
	if k > n {
		return 0
	}
	return incompleteBeta(float64(k), float64(n-k)+1, q, 1-q)
}

// incompleteBeta returns the regularised incomplete beta function I_x(a, b); y
// is 1-x, given so that neither loses digits.
//
// Source: the continued fraction of DLMF 8.17.22 by Lentz's method (Press et
// al., Numerical Recipes, section 6.4), which takes some sqrt(max(a, b)) steps
// near the mean. Where a and b are both large that is too many, and Temme's
// leading asymptotic term takes over: see largeBeta.
func incompleteBeta(a, b, x, y float64) float64 {
	if x <= 0 {
		return 0
	}
	if y <= 0 {
		return 1
	}
	if min(a, b) > largeParameter {
		return largeBeta(a, b, x, y)
	}
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBetaTail(b, a, y, x)
	}
	return incompleteBetaTail(a, b, x, y)
}

// incompleteBetaTail is incompleteBeta for x below the mean.
func incompleteBetaTail(a, b, x, y float64) float64 {
	front := betaFront(a, b, x, y)
	if front == 0 {
		return 0
	}
	return min(1, front*betaFraction(a, b, x)/a)
}

// betaFront returns x^a y^b / B(a, b). Written with Stirling's series and with
// the deviance of x from a/(a+b), large terms that would cancel never arise.
// Source: C. Loader, "Fast and accurate computation of binomial probabilities"
// (2000), for the same product.
func betaFront(a, b, x, y float64) float64 {
	n := a + b
	if min(a, b) < 16 {
		la, _ := math.Lgamma(a)
		lb, _ := math.Lgamma(b)
		if n < 1e6 {
			ln, _ := math.Lgamma(n)
			return math.Exp(ln - la - lb + a*math.Log(x) + b*log(y, x))
		}
		// Lgamma(n) - Lgamma(b) with b near n: the difference of two huge
		// numbers, by Stirling's series.
		small, big, ls := a, b, la
		sx, sy := x, y
		if b < a {
			small, big, ls = b, a, lb
			sx, sy = y, x
		}
		ratio := (big-0.5)*math.Log1p(small/big) + small*math.Log(n) - small + stirling(n) - stirling(big)
		return math.Exp(ratio - ls + small*math.Log(sx) + big*log(sy, sx))
	}
	// a ln(x n/a) + b ln(y n/b), each as a deviance.
	d := deviance(a, n*x) + deviance(b, n*y)
	s := stirling(n) - stirling(a) - stirling(b)
	return math.Exp(s-d) * math.Sqrt(a*b/(2*math.Pi*n))
}

// log returns ln(y) where y = 1-x.
func log(y, x float64) float64 {
	if x < 0.5 {
		return math.Log1p(-x)
	}
	return math.Log(y)
}

// deviance returns k ln(k/m) + m - k, without cancellation for k near m.
func deviance(k, m float64) float64 {
	v := (m - k) / k // k (v - ln(1+v))
	if math.Abs(v) < 0.1 {
		// v - ln(1+v) = v^2/2 - v^3/3 + ...
		sum, power := 0.0, v*v
		for i := 2.0; i < 30; i++ {
			term := power / i
			if sum+term == sum {
				break
			}
			sum += term
			power *= -v
		}
		return k * sum
	}
	return k * (v - math.Log1p(v))
}

// stirling returns ln(Gamma(x)) - ((x-1/2) ln x - x + ln(2 pi)/2) for x from 16
// on. Source: DLMF 5.11.1.
func stirling(x float64) float64 {
	r := 1 / (x * x)
	return (1.0/12 - r*(1.0/360-r*(1.0/1260-r*(1.0/1680-r/1188)))) / x
}

// betaFraction evaluates the continued fraction. It ends when a step changes
// nothing; the bound on the steps is ten times what largeParameter takes.
func betaFraction(a, b, x float64) float64 {
	const tiny, steps = 1e-300, 100_000
	guard := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/guard(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m < steps; m++ {
		num := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / guard(1+num*d)
		c = guard(1 + num/c)
		h *= d * c
		num = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / guard(1+num*d)
		c = guard(1 + num/c)
		step := d * c
		h *= step
		if math.Abs(step-1) < 1e-15 {
			break
		}
	}
	return h
}

// largeParameter is from where on both parameters count as large: the error of
// largeBeta is about 1e-7 there and falls with them.
const largeParameter = 1e6

// largeBeta is incompleteBeta for large a and b.
// Source: N. M. Temme, Special Functions (1996), section 11.3.3.2, as DLMF
// 8.18.9: I_x(a,b) is erfc(-eta sqrt(n/2))/2 plus the first correction term,
// with n = a+b, eta^2/2 = the deviance and eta's sign that of x - a/(a+b). The
// next term is smaller by a further factor of 1/min(a, b).
func largeBeta(a, b, x, y float64) float64 {
	n := a + b
	x0, y0 := a/n, b/n
	d := deviance(a, n*x) + deviance(b, n*y) // n eta^2 / 2
	root := math.Sqrt(d)
	if n*x < a {
		root = -root
	}
	eta := root * math.Sqrt(2/n)
	// The correction's factor: 1/eta - sqrt(x0 y0)/(x - x0), which at eta = 0
	// is (1 - 2 x0) / (3 sqrt(x0 y0)); near it the two terms cancel.
	c0 := (1 - 2*x0) / (3 * math.Sqrt(x0*y0))
	if math.Abs(eta) > 1e-3 {
		c0 = 1/eta - math.Sqrt(x0*y0)/(x-x0)
	}
	v := math.Erfc(-root)/2 + c0*math.Exp(-d)/math.Sqrt(2*math.Pi*n)
	return min(max(v, 0), 1)
}
