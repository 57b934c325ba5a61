package stats

import (
	"math"
	"slices"
)

// A RankSum is the result of MannWhitney.
type RankSum struct {
	U     float64 // pairs of a value of a and one of b in which b's is larger, ties as halves; over len(a)*len(b) it estimates P(b > a)
	P     float64 // two-sided
	Exact bool    // P is that of the permutation distribution, not of the normal one
}

// MannWhitney tests whether two independent samples come from one population, against one of them
// lying above the other. Values may be infinite, not NaN. An empty sample gives P = 1.
//
// P is exact if that takes no more than some milliseconds (up to 27 values a side, or 5 against
// 295): the share of all assignments of the ranks, with midranks for ties, whose rank sum is at
// least as far from its expectation. That is conditional on the ties, and without ties the classic
// distribution. Beyond that it is the normal approximation with the variance corrected for ties and
// a continuity correction of one half.
//
// Source: H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is
// stochastically larger than the other", Ann. Math. Statist. 18 (1947); the distribution by the
// shift algorithm of B. Streitberg and J. Röhmel, "Exact distributions for permutation and rank
// tests", Statistical Software Newsletter 12 (1986); the normal one in M. Hollander and D. A.
// Wolfe, Nonparametric Statistical Methods, 2nd ed., section 4.1, (4.11) and (4.13).
func MannWhitney(a, b []float64) RankSum {
	m, n := len(a), len(b)
	if m == 0 || n == 0 {
		return RankSum{P: 1, Exact: true}
	}
	all := make([]float64, 0, m+n)
	all = append(append(all, a...), b...)
	slices.Sort(all)
	ties := tied(all)
	sum := 0 // of b's ranks, twice
	for _, v := range b {
		i, _ := slices.BinarySearch(all, v)
		j := i + 1
		for j < len(all) && all[j] == v {
			j++
		}
		sum += i + 1 + j
	}
	r := RankSum{U: float64(sum-n*(n+1)) / 2}
	if r.Exact = affordable(m, n); r.Exact {
		k, mine := n, sum
		if m < n { // use the ranks of the smaller one; those of both are fixed together
			k, mine = m, (m+n)*(m+n+1)-sum
		}
		r.P = farther(ties, k, mine)
		return r
	}
	var correction float64
	for _, t := range ties {
		t := float64(t)
		correction += t*t*t - t
	}
	mn, size := float64(m)*float64(n), float64(m+n)
	variance := mn / 12 * (size + 1 - correction/(size*(size-1)))
	r.P = 1
	if off := math.Abs(r.U-mn/2) - 0.5; variance > 0 && off > 0 {
		r.P = twoSided(off / math.Sqrt(variance))
	}
	return r
}

// tied returns the lengths of the runs of equal values in sorted, including those of 1.
func tied(sorted []float64) []int {
	var out []int
	for i, v := range sorted {
		if i > 0 && v == sorted[i-1] {
			out[len(out)-1]++
		} else {
			out = append(out, 1)
		}
	}
	return out
}

// affordable reports whether the exact distribution takes only some milliseconds: it takes twice
// the square of this product steps.
func affordable(m, n int) bool { return (m+n)*min(m, n) <= 1500 }

// rankSums returns in how many ways k of the ranks add up to each sum; index s is twice the sum.
// The values tie in groups of the given sizes, smallest first. Counts are exact up to 2^53, with a
// relative error of some 1e-15 above.
func rankSums(ties []int, k int) []float64 {
	n := 0
	for _, t := range ties {
		n += t
	}
	width := k*(2*n-k+1) + 1 // twice the sum of the k largest, and 0
	ways := make([][]float64, k+1)
	for i := range ways {
		ways[i] = make([]float64, width)
	}
	ways[0][0] = 1
	seen := 0
	for _, t := range ties {
		rank := 2*seen + t + 1 // twice the midrank of the group
		// Each of the group's t is taken at most once, which is cheaper than taking j of them at a
		// time: so iterate from many taken down to few.
		for range t {
			seen++
			for j := min(seen, k); j >= 1; j-- {
				to, from := ways[j], ways[j-1]
				for s := width - 1; s >= rank; s-- {
					to[s] += from[s-rank]
				}
			}
		}
	}
	return ways[k]
}

// farther returns the share of the ways to choose k of the ranks whose sum is at least as far from
// its expectation as mine; sums are doubled.
func farther(ties []int, k, mine int) float64 {
	n := 0
	for _, t := range ties {
		n += t
	}
	mean := k * (n + 1)
	off := max(mine-mean, mean-mine)
	var all, far float64
	for s, ways := range rankSums(ties, k) {
		all += ways
		if s-mean >= off || mean-s >= off {
			far += ways
		}
	}
	return far / all
}

// twoSided returns P(|Z| >= z) of the standard normal distribution.
func twoSided(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// normalQuantile returns the value that a standard normal variable exceeds with
// the given probability, 0.025 say.
func normalQuantile(tail float64) float64 { return math.Sqrt2 * math.Erfinv(1-2*tail) }

// LeastP returns the smallest P that MannWhitney can return for samples of these sizes and no ties:
// that of one sample lying entirely above the other, in two of all C(m+n, m) ways.
func LeastP(m, n int) float64 {
	if m <= 0 || n <= 0 {
		return 1
	}
	p := 2.0
	for i := 1; i <= min(m, n); i++ {
		p *= float64(i) / float64(max(m, n)+i)
	}
	return min(p, 1)
}

// MoreRuns returns how many more values each of two samples needs until a difference can be shown
// at level alpha at all, if the smallest of that many P values has to pass Holm's correction: the
// smallest d with tests * LeastP(m+d, n+d) <= alpha. From nothing, with one test, it is 4 for 0.05
// and 5 for 0.01. It panics unless 0 < alpha < 1.
func MoreRuns(m, n int, alpha float64, tests int) int {
	if !(alpha > 0 && alpha < 1) {
		panic("stats: MoreRuns of a level that is none")
	}
	d := 0
	for float64(max(tests, 1))*LeastP(m+d, n+d) > alpha {
		d++
	}
	return d
}
