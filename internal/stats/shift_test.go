package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func ends(lo, hi float64) [2]*float64 { return [2]*float64{&lo, &hi} }

func sameEnd(got, want *float64) bool {
	return (got == nil) == (want == nil) && (got == nil || math.Abs(*got-*want) < 1e-9)
}

func shown(p *float64) any {
	if p == nil {
		return nil
	}
	return *p
}

// The first is published: Hollander and Wolfe, examples 4.3 and 4.4, estimate -0.305 and interval
// (-0.76, 0.15). All were computed in Python, from sorted differences and an enumerated
// distribution of U.
func TestHodgesLehmann(t *testing.T) {
	one, two := []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}
	for _, tt := range []struct {
		a, b     []float64
		conf     float64
		estimate float64
		ends     [2]*float64
	}{
		{atTerm, earlier, 0.96, -0.305, ends(-0.76, 0.15)},
		{atTerm, earlier, 0.99, -0.305, ends(-1.01, 0.35)},
		{one, two, 0.95, 4, ends(1, 7)},
		{one, two, 0.99, 4, [2]*float64{}},
		{one[:3], two[:3], 0.95, 4, [2]*float64{}},
		{one, two[:3], 0.90, 3.5, ends(1, 6)}, // P(U = 0) is 1/35
		{steps(5, 1, 1), steps(5, 6, 1), 0.95, 5, ends(2, 8)},
		{steps(5, 1, 1), steps(5, 6, 1), 0.99, 5, ends(1, 9)},
		{[]float64{1, 2, 2, 3, 5}, []float64{2, 3, 3, 4, 6, 7}, 0.95, 1, ends(-1, 5)},
		{[]float64{10, 12, 11, 13, 9, 14}, []float64{15, 13, 16, 17, 12, 18, 11}, 0.95, 3, ends(0, 6)},
		{sixty, fiftyFive, 0.95, 1, ends(0.4, 1.7)}, // by the normal distribution
		{one, []float64{5, 6, 7, math.Inf(1)}, 0.95, 4, [2]*float64{new(1.0), nil}},
	} {
		got := HodgesLehmann(tt.a, tt.b, tt.conf)
		if math.Abs(got.Estimate-tt.estimate) > 1e-9 || !sameEnd(got.Lo, tt.ends[0]) || !sameEnd(got.Hi, tt.ends[1]) {
			t.Errorf("HodgesLehmann(%v, %v, %v) = %v, %v to %v; want %v, %v to %v", tt.a, tt.b, tt.conf,
				got.Estimate, shown(got.Lo), shown(got.Hi), tt.estimate, shown(tt.ends[0]), shown(tt.ends[1]))
		}
	}
	if got := HodgesLehmann(nil, one, 0.95); !math.IsNaN(got.Estimate) || got.Lo != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestHodgesLehmannRatio(t *testing.T) {
	a := []float64{1, 2, 4, 8, 16}
	b := []float64{2, 4, 8, 16, 32}
	got, ok := HodgesLehmannRatio(a, b, 0.95)
	if !ok || !near(got.Estimate, 2, 1e-12) || !near(*got.Lo, 0.25, 1e-12) || !near(*got.Hi, 16, 1e-12) {
		t.Errorf("ok %v, got %v, %v to %v", ok, got.Estimate, shown(got.Lo), shown(got.Hi))
	}
	if _, ok := HodgesLehmannRatio([]float64{0, 1}, a, 0.95); ok {
		t.Error("nothing is a multiple of 0")
	}
}

// Draws from two populations with a known shift, smooth and with ties, and counts how often the
// interval contains it.
func TestHodgesLehmannCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const rounds = 3000
	for _, grain := range []float64{0, 0.5} {
		held := 0
		for range rounds {
			a, b := make([]float64, 6), make([]float64, 8)
			draw := func() float64 {
				v := rng.ExpFloat64()
				if grain > 0 {
					v = math.Round(v/grain) * grain
				}
				return v
			}
			for i := range a {
				a[i] = draw()
			}
			for i := range b {
				b[i] = draw() + 1
			}
			if s := HodgesLehmann(a, b, 0.95); s.Lo != nil && *s.Lo <= 1 && *s.Hi >= 1 {
				held++
			}
		}
		if share := float64(held) / rounds; share < 0.95-0.012 {
			t.Errorf("with grain %v the interval held the shift in %.3f of the rounds", grain, share)
		}
	}
}

// 0 lies outside exactly if the test without ties rejects.
func TestTheIntervalAndTheTestAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		a, b := make([]float64, 4+rng.IntN(4)), make([]float64, 4+rng.IntN(4))
		for i := range a {
			a[i] = rng.NormFloat64()
		}
		for i := range b {
			b[i] = rng.NormFloat64() + 1
		}
		s := HodgesLehmann(a, b, 0.95)
		outside := s.Lo != nil && (*s.Lo > 0 || *s.Hi < 0)
		if p := MannWhitney(a, b).P; outside != (p <= 0.05) {
			t.Fatalf("p %v, interval %v to %v of %v and %v", p, shown(s.Lo), shown(s.Hi), a, b)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{math.Inf(1), 1, math.Inf(1), 2}, math.Inf(1)},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
	} {
		if got := Median(tt.x); got != tt.want {
			t.Errorf("Median(%v) = %v; want %v", tt.x, got, tt.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

// With ties, and with bounds as infinite values.
func TestSmallestMatchesSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 60 {
		for k := range n {
			x := make([]float64, n)
			for i := range x {
				if x[i] = float64(rng.IntN(1 + n)); rng.IntN(9) == 0 {
					x[i] = math.Inf(1)
				}
			}
			sorted := slices.Sorted(slices.Values(x))
			if got := smallest(x, k); got != sorted[k] || slices.Max(x[:k+1]) != got || slices.Min(x[k:]) != got {
				t.Fatalf("smallest(%d) of %v = %v", k, sorted, got)
			}
		}
	}
}
