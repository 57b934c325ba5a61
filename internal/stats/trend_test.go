package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/internal/needs"
)

// S, z and p are pymannkendall 1.4.3's original_test, slopes and intervals scipy
// 1.17.1's theilslopes(x, range(n), 0.95).
func TestMannKendallAndTheilSen(t *testing.T) {
	for _, tt := range []struct {
		name          string
		x             []float64
		s             int64
		z, p          float64
		slope, lo, hi float64
	}{
		{"up", []float64{1, 3, 2, 5, 4, 6, 8, 7, 9, 10, 12, 11}, 58, 3.9086352435453273, 9.281898133695066e-05, 1, 0.8, 1.1666666666666667},
		{"ties", []float64{3, 3, 2, 4, 4, 4, 5, 3, 6, 6, 7, 5, 5, 8}, 57, 3.122374544785981, 0.0017939854659838605, 1.0 / 3, 1.0 / 6, 0.5},
		{"down", []float64{9, 8.5, 8.7, 8, 7.9, 8.2, 7, 6.8, 7.1, 6, 5.9, 6.2, 5, 5.5}, -75, -4.051121870740056, 5.097264827158554e-05, -0.3, -1.0 / 3, -0.2375},
		{"level", steps(12, 2, 0), 0, 0, 1, 0, 0, 0},
		{"nothing to see", []float64{
			3.95, 5.26, 4.14, 5.97, 5.19, 5.09, 4.41, 4.88, 3.0, 3.87, 5.36, 2.87, 5.85, 3.25, 5.76, 4.15, 5.78, 5.13, 3.46, 6.25,
			6.44, 4.93, 4.73, 4.84, 4.02, 6.1, 4.46, 4.95, 4.21, 4.37, 3.72, 6.26, 4.85, 5.97, 5.01, 4.31, 4.67, 4.44, 5.01, 4.62,
		}, 22, 0.24470494589576555, 0.8066848981855734, 0.0035357142857142866, -0.022727272727272728, 0.03117647058823528},
	} {
		s, z, p := MannKendall(tt.x)
		if s != tt.s || !near(z, tt.z, 1e-12) || !near(p, tt.p, 1e-10) {
			t.Errorf("%s: MannKendall = %d, %v, %v; want %d, %v, %v", tt.name, s, z, p, tt.s, tt.z, tt.p)
		}
		got := TheilSen(tt.x, 0.95)
		if math.Abs(got.Estimate-tt.slope) > 1e-12 || !sameEnd(got.Lo, &tt.lo) || !sameEnd(got.Hi, &tt.hi) {
			t.Errorf("%s: TheilSen = %v, %v to %v; want %v, %v to %v", tt.name, got.Estimate, shown(got.Lo), shown(got.Hi), tt.slope, tt.lo, tt.hi)
		}
	}
	if s, z, p := MannKendall(nil); s != 0 || z != 0 || p != 1 {
		t.Errorf("of nothing: %d, %v, %v", s, z, p)
	}
	if got := TheilSen([]float64{1, 2, 3}, 0.95); got.Estimate != 1 || got.Lo != nil || got.Hi != nil {
		t.Errorf("of three: %v, %v to %v", got.Estimate, shown(got.Lo), shown(got.Hi))
	}
}

// A first-order autoregressive series drawn by numpy; the figures come from the formulas in numpy,
// with pymannkendall's S and its variance.
func TestFindTrendInflatesTheVariance(t *testing.T) {
	x := []float64{
		5.0, 4.92, 4.82, 6.11, 3.96, 4.66, 5.98, 4.9, 6.45, 6.58, 5.59, 5.66, 3.97, 3.76, 6.01, 4.87, 6.81, 6.24, 6.92, 6.45,
		3.84, 3.69, 4.35, 3.47, 2.66, 3.81, 3.6, 2.41, 2.59, 4.27, 4.11, 5.41, 6.92, 6.48, 5.02, 3.82, 4.26, 5.48, 5.73, 6.18,
		5.51, 5.79, 5.21, 4.96, 3.82, 2.74, 3.08, 2.7, 2.58, 4.13, 4.44, 7.68, 7.97, 6.61, 7.07, 6.98, 5.88, 6.9, 5.74, 2.64,
	}
	got := FindTrend(x, 0.95)
	if got.S != 39 || got.Step != 1 || !near(got.Slope.Estimate, 0.0023938572719060663, 1e-9) || !near(got.Lag1, 0.6352535048495708, 1e-9) ||
		!near(got.Inflation, 5.754004925502907, 1e-9) || !near(got.Z, 0.10104261979913151, 1e-9) || !near(got.P, 0.9195166275747337, 1e-9) ||
		!sameEnd(got.Slope.Lo, new(-0.065)) || !sameEnd(got.Slope.Hi, new(0.06807692307692306)) {
		t.Errorf("got %+v, %v to %v", got, shown(got.Slope.Lo), shown(got.Slope.Hi))
	}
}

func TestFindTrendOfFewAndManyValues(t *testing.T) {
	if got := FindTrend(steps(7, 0, 1), 0.95); got.Step != 0 || got.P != 1 || got.Slope.Estimate != 1 || got.Slope.Lo != nil {
		t.Errorf("of seven: %+v", got)
	}
	got := FindTrend(steps(86_400, 5, 0.001), 0.95) // a day of seconds
	if got.Step != 43 || got.P > 1e-9 || !near(got.Slope.Estimate, 0.001, 1e-9) || !near(*got.Slope.Lo, 0.001, 1e-6) {
		t.Errorf("of a day: %+v", got)
	}
}

// Draws series without a trend, independent and correlated, and with one.
func TestFindTrendKeepsItsLevel(t *testing.T) {
	needs.NoRace(t)
	rng := rand.New(rand.NewPCG(17, 18))
	const n, rounds = 60, 1000
	for _, tt := range []struct {
		phi, slope  float64
		least, most float64 // share of the series in which a trend is found
	}{
		{0, 0, 0, 0.07},
		{0.4, 0, 0, 0.09},
		{0.7, 0, 0, 0.12}, // the plain test finds one in more than a third of these
		{0, 0.03, 0.9, 1},
		{0.4, 0.06, 0.9, 1},
	} {
		found := 0
		for range rounds {
			x := make([]float64, n)
			state := rng.NormFloat64() / math.Sqrt(1-tt.phi*tt.phi)
			for i := range x {
				state = tt.phi*state + rng.NormFloat64()
				x[i] = state + tt.slope*float64(i)
			}
			if FindTrend(x, 0.95).P <= 0.05 {
				found++
			}
		}
		if share := float64(found) / rounds; share < tt.least || share > tt.most {
			t.Errorf("phi %v, slope %v: a trend found in %.3f of the series; want %v to %v", tt.phi, tt.slope, share, tt.least, tt.most)
		}
	}
}

func TestLag1(t *testing.T) {
	for _, tt := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, 0.25},
		{[]float64{1, -1, 1, -1}, -0.75},
		{steps(5, 3, 0), 0},
		{nil, 0},
	} {
		if got := Lag1(tt.x); !near(got, tt.want, 1e-12) {
			t.Errorf("Lag1(%v) = %v; want %v", tt.x, got, tt.want)
		}
	}
}
