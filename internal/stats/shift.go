package stats

import (
	"math"
	"slices"
)

// Median returns the median of the values, the mean of the two middle ones for an even number; NaN
// if empty. It does not modify x.
func Median(x []float64) float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	return middle(sorted)
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	case sorted[n/2-1] == sorted[n/2]: // also if both are infinite
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

// A Shift is how far one sample lies above another.
type Shift struct {
	Estimate float64
	Lo, Hi   *float64 // of its interval; nil if the samples are too small for one, or it is unbounded
}

// HodgesLehmann estimates how far b lies above a: the median of all differences of a value of b and
// one of a. The interval covers the true shift with at least the given confidence (0.95, say),
// whatever the distribution, if both have the same shape: its ends are the k-th smallest and the
// k-th largest difference, k the largest with P(U <= k-1) <= (1-conf)/2 for U of MannWhitney; for
// 95 % both samples need 4 values. Ties make the interval wider than necessary, never narrower.
// Values may be infinite on one side, not on both.
//
// Source: J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math.
// Statist. 34 (1963); the interval of P. K. Moses as in Hollander and Wolfe, 2nd ed., section 4.3;
// that it holds with ties: G. E. Noether, "Wilcoxon confidence intervals for location parameters in
// the discrete case", J. Amer. Statist. Assoc. 62 (1967). Samples too large for the exact
// distribution get k of the normal one, (4.41) there.
func HodgesLehmann(a, b []float64, conf float64) Shift {
	d := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			d = append(d, y-x)
		}
	}
	n := len(d)
	s := Shift{Estimate: math.NaN()}
	if n == 0 {
		return s
	}
	upper := smallest(d, n/2)
	s.Estimate = upper
	if n%2 == 0 {
		s.Estimate = middle([]float64{slices.Max(d[:n/2]), upper})
	}
	k := shiftRank(len(a), len(b), (1-conf)/2)
	if k == 0 {
		return s
	}
	// Each end lies on its side of the middle.
	if lo := smallest(d[:n/2+1], k-1); !math.IsInf(lo, 0) {
		s.Lo = &lo
	}
	if hi := smallest(d[n/2:], n-k-n/2); !math.IsInf(hi, 0) {
		s.Hi = &hi
	}
	return s
}

// smallest returns the value at index k of the sorted x, and reorders x: none before k is larger, none after it is
// smaller. It takes a time that grows with len(x), where sorting takes several times that. Values must not be NaN.
//
// Source: C. A. R. Hoare, "Algorithm 65: Find", Comm. ACM 4 (1961).
func smallest(x []float64, k int) float64 {
	for from, to := 0, len(x)-1; from < to; {
		a, b, c := x[from], x[(from+to)/2], x[to]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := from, to
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			to = j
		case k >= i:
			from = i
		default:
			return x[k]
		}
	}
	return x[k]
}

// HodgesLehmannRatio estimates by which factor b lies above a: HodgesLehmann of the logarithms,
// transformed back. ok is false if a value is not above 0.
func HodgesLehmannRatio(a, b []float64, conf float64) (ratio Shift, ok bool) {
	la, ok := logs(a)
	lb, also := logs(b)
	if !ok || !also {
		return Shift{}, false
	}
	s := HodgesLehmann(la, lb, conf)
	s.Estimate = math.Exp(s.Estimate)
	for _, end := range []*float64{s.Lo, s.Hi} {
		if end != nil {
			*end = math.Exp(*end)
		}
	}
	return s, true
}

func logs(x []float64) ([]float64, bool) {
	out := make([]float64, len(x))
	for i, v := range x {
		if !(v > 0) {
			return nil, false
		}
		out[i] = math.Log(v)
	}
	return out, true
}

// shiftRank returns k of HodgesLehmann, 0 if there is none.
func shiftRank(m, n int, tail float64) int {
	if m == 0 || n == 0 {
		return 0
	}
	if !affordable(m, n) {
		mn := float64(m) * float64(n)
		k := math.Floor(mn/2 - normalQuantile(tail)*math.Sqrt(mn*float64(m+n+1)/12))
		return int(max(k, 0))
	}
	ones := make([]int, m+n)
	for i := range ones {
		ones[i] = 1
	}
	smaller := min(m, n)
	ways := rankSums(ones, smaller)[smaller*(smaller+1):] // from U = 0 on, twice U
	var all, below float64
	for _, w := range ways {
		all += w
	}
	k := 0
	for ; 2*k < len(ways); k++ {
		below += ways[2*k]
		if below/all > tail*(1+1e-12) { // exactly the tail counts too
			break
		}
	}
	return k
}
