package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// By statsmodels 0.15.0, multipletests(p, method="holm"); the first is also
// worked by hand in many texts.
func TestHolm(t *testing.T) {
	for _, tt := range []struct{ p, want []float64 }{
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.5, 0.5, 0.001, 0.02, 0.02}, []float64{1, 1, 0.005, 0.08, 0.08}},
		{[]float64{0.0286, 0.0286}, []float64{0.0572, 0.0572}},
		{nil, nil},
	} {
		got := Holm(tt.p)
		for i := range got {
			if !near(got[i], tt.want[i], 1e-12) {
				t.Errorf("Holm(%v) = %v; want %v", tt.p, got, tt.want)
				break
			}
		}
	}
}

// Draws families of tests without any true effect, alike and unlike each other.
func TestHolmKeepsFamilywiseErrorRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const rounds, tests = 4000, 8
	for _, alike := range []float64{0, 0.9} {
		wrong := 0
		for range rounds {
			shared := rng.NormFloat64()
			p := make([]float64, tests)
			for i := range p {
				p[i] = twoSided(math.Sqrt(alike)*shared + math.Sqrt(1-alike)*rng.NormFloat64())
			}
			for _, v := range Holm(p) {
				if v <= 0.05 {
					wrong++
					break
				}
			}
		}
		if share := float64(wrong) / rounds; share > 0.05+0.011 {
			t.Errorf("with tests %v alike, %.3f of the families were wrong", alike, share)
		}
	}
}

func TestWithin(t *testing.T) {
	lo, hi := new(-2.0), new(3.0)
	for _, tt := range []struct {
		lo, hi    *float64
		low, high float64
		want      bool
	}{
		{lo, hi, -5, 5, true},
		{lo, hi, -2, 3, true},
		{lo, hi, -1, 5, false},
		{lo, hi, -5, 2, false},
		{nil, hi, -5, 5, false},
		{lo, nil, -5, 5, false},
	} {
		if got := Within(tt.lo, tt.hi, tt.low, tt.high); got != tt.want {
			t.Errorf("Within(%v, %v, %v, %v) = %v", shown(tt.lo), shown(tt.hi), tt.low, tt.high, got)
		}
	}
}
