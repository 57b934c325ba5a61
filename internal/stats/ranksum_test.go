package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Permeability of the human chorioamnion, Hollander and Wolfe, example 4.1.
var (
	atTerm  = []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	earlier = []float64{1.15, 0.88, 0.90, 0.74, 1.21}
)

// Exact values by enumerating all assignments of the midranks, in Python with fractions; those
// without ties are also scipy 1.17.1's mannwhitneyu(b, a, method="exact"). The first is published:
// one-sided 0.1272 (Hollander and Wolfe; also the example of R's wilcox.test).
func TestMannWhitneyExactly(t *testing.T) {
	for _, tt := range []struct {
		a, b []float64
		u, p float64
	}{
		{atTerm, earlier, 15, 0.2544122544122544},
		{[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 16, 0.02857142857142857},
		{[]float64{5, 6, 7, 8}, []float64{1, 2, 3, 4}, 0, 0.02857142857142857},
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 25, 0.007936507936507936},
		{[]float64{1, 2, 2, 3, 5}, []float64{2, 3, 3, 4, 6, 7}, 23, 0.170995670995671},
		{[]float64{1, 1, 1, 2}, []float64{1, 2, 2, 2, 3}, 16, 0.1746031746031746},
		{[]float64{10, 12, 11, 13, 9, 14}, []float64{15, 13, 16, 17, 12, 18, 11}, 34.5, 0.055944055944055944},
		{[]float64{0, 0, 0, 0, 0, 9}, []float64{0, 0, 0}, 7.5, 1},
		{[]float64{7, 7, 7, 7}, []float64{7, 7, 7, 7}, 8, 1},
		{[]float64{1, 2, 3, math.Inf(1)}, []float64{math.Inf(-1), 0, math.Inf(-1), 0.5}, 0, 0.02857142857142857},
		{steps(6, 0, 1), steps(6, 0.3*6+0.5, 1), 30, 0.06493506493506493},
		{steps(8, 0, 1), steps(5, 0.3*8+0.5, 1), 25, 0.5236985236985237},
		{steps(20, 0, 1), steps(20, 6.5, 1), 309, 0.0026426305915593523},
		{steps(27, 0, 1), steps(27, 8.6, 1), 558, 0.0006134199678279333},
	} {
		got := MannWhitney(tt.a, tt.b)
		if got.U != tt.u || !near(got.P, tt.p, 1e-12) || !got.Exact {
			t.Errorf("MannWhitney(%v, %v) = %+v; want U %v, P %v, exact", tt.a, tt.b, got, tt.u, tt.p)
		}
	}
	if got := MannWhitney(nil, []float64{1}); got.P != 1 {
		t.Errorf("of nothing: %+v", got)
	}
}

func steps(n int, from, by float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = from + by*float64(i)
	}
	return out
}

// near reports whether got is want up to a relative error.
func near(got, want, part float64) bool {
	return got == want || math.Abs(got-want) <= part*math.Abs(want)
}

// Enumerates all assignments of small samples with many ties, as the distribution is defined.
func TestMannWhitneyAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		a, b := make([]float64, 1+rng.IntN(5)), make([]float64, 1+rng.IntN(6))
		for _, x := range [][]float64{a, b} {
			for i := range x {
				x[i] = float64(rng.IntN(5))
			}
		}
		if got, want := MannWhitney(a, b).P, enumerated(a, b); !near(got, want, 1e-12) {
			t.Fatalf("MannWhitney(%v, %v).P = %v; enumerated %v", a, b, got, want)
		}
	}
}

func enumerated(a, b []float64) float64 {
	all := append(slices.Clone(a), b...)
	n := len(all)
	pairs := func(mine func(i int) bool) int { // twice U, for those that are not mine
		u := 0
		for i := range n {
			for j := range n {
				if mine(i) && !mine(j) {
					switch {
					case all[j] > all[i]:
						u += 2
					case all[j] == all[i]:
						u++
					}
				}
			}
		}
		return u
	}
	mean := len(a) * len(b)
	dist := func(u int) int { return max(u-mean, mean-u) }
	seen := dist(pairs(func(i int) bool { return i < len(a) }))
	var hands, far float64
	for hand := range 1 << n {
		ones := 0
		for i := range n {
			ones += hand >> i & 1
		}
		if ones != len(a) {
			continue
		}
		hands++
		if dist(pairs(func(i int) bool { return hand>>i&1 == 1 })) >= seen {
			far++
		}
	}
	return far / hands
}

// The values are drawn by numpy; U and P are scipy 1.17.1's mannwhitneyu(b, a,
// method="asymptotic", use_continuity=True), the interval's rank and ends those
// of the formula in numpy.
var (
	sixty = []float64{
		10.0, 10.6, 9.5, 8.2, 9.1, 8.0, 10.1, 12.7, 9.0, 8.8, 11.0, 10.7, 10.2, 8.1, 9.9, 11.4, 7.3, 9.1, 6.2, 7.4, 6.3, 9.5, 7.5, 10.5, 10.3, 9.6, 5.0, 8.9, 9.9, 10.2,
		6.9, 9.0, 8.0, 8.4, 12.1, 8.4, 9.9, 11.8, 8.8, 9.8, 10.2, 10.1, 7.5, 10.2, 12.7, 6.9, 11.7, 10.2, 8.7, 14.0, 11.5, 7.6, 10.1, 11.2, 9.6, 11.4, 9.9, 11.3, 12.9, 8.6,
	}
	fiftyFive = []float64{
		11.2, 9.9, 11.1, 8.4, 9.6, 10.4, 12.6, 13.1, 8.2, 9.2, 12.1, 6.8, 9.9, 10.6, 13.3, 12.2, 10.1, 10.1, 10.3, 13.8, 9.9, 10.2, 11.5, 10.6, 10.4, 8.6, 10.8, 9.9,
		13.1, 12.1, 10.8, 12.1, 10.1, 12.9, 10.8, 12.0, 8.2, 11.5, 7.4, 6.7, 10.2, 9.0, 11.1, 15.3, 9.1, 9.6, 11.2, 11.8, 10.4, 10.4, 12.2, 11.8, 8.7, 10.6, 10.9,
	}
)

func TestMannWhitneyOfLargeSamples(t *testing.T) {
	got := MannWhitney(sixty, fiftyFive)
	if got.U != 2229 || !near(got.P, 0.0011925603330897345, 1e-12) || got.Exact {
		t.Errorf("got %+v", got)
	}
	same := make([]float64, 100)
	if got := MannWhitney(same, same); got.P != 1 || got.Exact {
		t.Errorf("of equal values: %+v", got)
	}
}

// Compares the two at the smallest equal samples that use the normal distribution.
func TestTheNormalDistributionMeetsTheExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		a, b := make([]float64, 28), make([]float64, 28)
		for i := range a {
			a[i] = math.Round(rng.NormFloat64()*5) / 5
			b[i] = math.Round(rng.NormFloat64()*5)/5 + 0.2
		}
		normal := MannWhitney(a, b)
		if normal.Exact {
			t.Fatal("the samples are too small")
		}
		ties := tied(slices.Sorted(slices.Values(append(slices.Clone(a), b...))))
		if got := farther(ties, 28, int(2*normal.U)+28*29); math.Abs(got-normal.P) > 0.005 {
			t.Errorf("exact %v, normal %v", got, normal.P)
		}
	}
}

func TestTheLeastRunsForALevel(t *testing.T) {
	for _, tt := range []struct {
		m, n  int
		alpha float64
		tests int
		more  int
	}{
		{0, 0, 0.05, 1, 4}, // as in benchmath: 4 for 0.05, 5 for 0.01
		{0, 0, 0.01, 1, 5},
		{3, 3, 0.05, 1, 1},
		{4, 4, 0.05, 1, 0},
		{3, 10, 0.05, 1, 0},
		{4, 4, 0.05, 6, 1}, // 6 * 2/252 = 0.0476
		{4, 4, 0.05, 7, 2}, // 7 * 2/252 = 0.0556
		{0, 0, 1e-9, 1, 17},
		{0, 0, 0.999, 0, 2}, // 2 of 2 ways is not evidence, 2 of 6 is
	} {
		if got := MoreRuns(tt.m, tt.n, tt.alpha, tt.tests); got != tt.more {
			t.Errorf("MoreRuns(%d, %d, %v, %d) = %d; want %d", tt.m, tt.n, tt.alpha, tt.tests, got, tt.more)
		}
	}
	for m := range 8 {
		for n := range 8 {
			if m*n == 0 {
				continue
			}
			if got, want := LeastP(m, n), MannWhitney(steps(m, 0, 1), steps(n, 100, 1)).P; !near(got, want, 1e-12) {
				t.Errorf("LeastP(%d, %d) = %v; the test finds %v", m, n, got, want)
			}
		}
	}
}

// Draws from one population, with and without ties.
func TestMannWhitneyKeepsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const rounds = 4000
	for _, grain := range []float64{0, 1} {
		wrong := 0
		for range rounds {
			a, b := make([]float64, 7), make([]float64, 6)
			for _, x := range [][]float64{a, b} {
				for i := range x {
					if x[i] = rng.ExpFloat64(); grain > 0 {
						x[i] = math.Round(x[i])
					}
				}
			}
			if MannWhitney(a, b).P <= 0.05 {
				wrong++
			}
		}
		// The exact level of 7 and 6 is at most 0.05; 0.011 is three standard errors.
		if share := float64(wrong) / rounds; share > 0.05+0.011 || share < 0.01 {
			t.Errorf("with grain %v, %.3f of the tests were wrong", grain, share)
		}
	}
}

func BenchmarkMannWhitney(b *testing.B) {
	x, y := steps(27, 0, 1), steps(27, 5.5, 1)
	for b.Loop() {
		MannWhitney(x, y)
	}
}
