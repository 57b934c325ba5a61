package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func same(n int, v uint64) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// The values of the first two are those of the formula written in numpy 2.4.6.
func TestEffectiveSize(t *testing.T) {
	bursts := []uint64{
		0, 1, 3, 2, 14, 19, 20, 16, 3, 0, 1, 2, 19, 21, 23, 28, 1, 2, 3, 1, 8, 29, 18, 18, 4, 2, 2, 3, 12, 22, 18, 14, 2, 4, 1, 2, 18, 23, 22, 17,
	}
	unequal := []uint64{900, 1100, 1000, 950, 1050, 1000, 1000, 980, 1020, 1000, 500, 1500}
	for _, tt := range []struct {
		name            string
		samples, beyond []uint64
		want            Effective
	}{
		{"bursts of four", same(40, 1000), bursts, Effective{2588.6907012747456, 15.451826662916066, 2}},
		{"unequal intervals", unequal, []uint64{9, 12, 8, 11, 10, 30, 9, 10, 8, 11, 4, 16}, Effective{3870.3010430168865, 3.100534006689578, 1}},
		{"less varied than chance", same(12, 1000), same(12, 10), Effective{12000, 1, 1}},
		{"too few intervals", same(9, 1000), []uint64{0, 0, 0, 0, 90, 0, 0, 0, 0}, Effective{9000, 1, 0}},
		{"nothing beyond", same(20, 1000), same(20, 0), Effective{20000, 1, 0}},
		{"all beyond", same(20, 1000), same(20, 1000), Effective{20000, 1, 0}},
		{"nothing at all", nil, nil, Effective{0, 1, 0}},
		{"one stall", same(10, 1000), []uint64{0, 0, 0, 0, 100, 0, 0, 0, 0, 0}, Effective{99, 10000.0 / 99, 1}},
	} {
		got := EffectiveSize(tt.samples, tt.beyond)
		if !near(got.Size, tt.want.Size, 1e-12) || !near(got.Deff, tt.want.Deff, 1e-12) || got.Length != tt.want.Length {
			t.Errorf("%s: got %+v; want %+v", tt.name, got, tt.want)
		}
	}
}

// TestEffectiveMean: of samples that are 0 or 1 the mean is the share of ones, and
// of samples that share a part of their value the effect is Kish's again.
func TestEffectiveMean(t *testing.T) {
	samples := []uint64{900, 1100, 1000, 950, 1050, 1000, 1000, 980, 1020, 1000, 500, 1500}
	beyond := []uint64{9, 12, 8, 11, 10, 30, 9, 10, 8, 11, 4, 16}
	sums := make([]float64, len(beyond))
	for i, b := range beyond {
		sums[i] = float64(b)
	}
	p := 138.0 / 12000
	got, want := EffectiveMean(samples, sums, p*(1-p)), EffectiveSize(samples, beyond)
	if !near(got.Deff, want.Deff, 1e-12) || !near(got.Size, want.Size, 1e-12) || got.Length != want.Length {
		t.Errorf("of ones and zeros: %+v; want %+v", got, want)
	}
	for name, e := range map[string]Effective{
		"too few intervals": EffectiveMean(samples[:9], sums[:9], 1),
		"nothing varies":    EffectiveMean(samples, sums, 0),
		"nothing at all":    EffectiveMean(nil, nil, 1),
	} {
		if e.Length != 0 || e.Deff != 1 {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// 1 + (n-1) rho for intervals of n samples that share a hundredth of their variance.
	rng := rand.New(rand.NewPCG(15, 16))
	const n, rho, intervals, rounds = 500, 0.01, 100, 60
	for _, tt := range []struct{ rho, low, high float64 }{{0, 1, 1.3}, {rho, 5.99, 5.99 * 1.35}} {
		var sum float64
		for range rounds {
			values := make([]float64, intervals)
			for i := range values {
				values[i] = n*(100+math.Sqrt(tt.rho)*rng.NormFloat64()) + math.Sqrt(n*(1-tt.rho))*rng.NormFloat64()
			}
			sum += EffectiveMean(same(intervals, n), values, 1).Deff
		}
		if mean := sum / rounds; mean < tt.low*0.97 || mean > tt.high {
			t.Errorf("rho %v: design effect %.2f on average; want %.2f to %.2f", tt.rho, mean, tt.low, tt.high)
		}
	}
}

// TestEffectiveSizeOfAKnownCorrelation draws intervals whose messages share a
// chance of being slow, with the correlation rho of any two: the design effect of
// intervals of n is 1 + (n-1) rho (Kish, Survey Sampling, section 5.4). Where
// four neighbours share it, it is that of four times n.
func TestEffectiveSizeOfAKnownCorrelation(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	const n, p, rho, intervals, rounds = 500, 0.05, 0.01, 100, 60
	// Two chances with equal probability have mean p and this correlation.
	spread := math.Sqrt(rho * p * (1 - p))
	for _, tt := range []struct {
		shared, length int
		independent    bool
		low, high      float64
	}{
		{shared: 1, independent: true, low: 1, high: 1.3},
		{shared: 1, low: 5.99, high: 5.99 * 1.35},
		{shared: 4, low: 20.99 * 0.8, high: 20.99 * 1.4},
	} {
		var sum float64
		for range rounds {
			beyond := make([]uint64, intervals)
			chance := p
			for i := range beyond {
				if i%tt.shared == 0 && !tt.independent {
					chance = p + spread*float64(2*rng.IntN(2)-1)
				}
				for range n {
					if rng.Float64() < chance {
						beyond[i]++
					}
				}
			}
			sum += EffectiveSize(same(intervals, n), beyond).Deff
		}
		if mean := sum / rounds; mean < tt.low*0.97 || mean > tt.high {
			t.Errorf("shared by %d, independent %v: design effect %.2f on average; want %.2f to %.2f", tt.shared, tt.independent, mean, tt.low, tt.high)
		}
	}
}
