package stats

import (
	"math/rand/v2"
	"testing"
)

// The series is drawn by numpy; its cut follows the formula in the papers, over all truncations.
var warming = []float64{
	38.3, 36.8, 34.1, 30.2, 27.1, 26.1, 24.1, 23.9, 21.8, 19.9, 19.7, 17.4, 15.8, 16.5, 15.8, 14.4, 13.3, 13.8, 10.7, 13.5, 13.0, 10.5, 12.0, 10.7, 12.3, 9.3, 10.2, 11.7, 12.1, 8.6,
	10.2, 11.0, 9.9, 12.1, 9.2, 10.7, 9.3, 11.7, 10.2, 9.9, 8.5, 11.9, 10.9, 10.9, 11.3, 10.5, 9.5, 9.3, 9.3, 11.4, 8.6, 9.5, 9.7, 10.3, 10.6, 8.8, 8.3, 10.0, 11.2, 10.8,
	10.2, 9.7, 10.3, 9.8, 10.8, 9.2, 10.1, 9.9, 10.5, 10.2, 12.6, 11.5, 11.5, 8.0, 9.7, 9.4, 10.5, 7.7, 11.2, 11.1, 8.7, 9.0, 9.2, 10.0, 10.6, 12.0, 9.8, 10.8, 10.2, 11.8,
	10.7, 11.4, 8.9, 9.8, 9.2, 11.5, 10.7, 9.7, 9.5, 10.5, 9.3, 9.1, 10.5, 12.5, 9.8, 9.4, 8.8, 8.7, 10.5, 10.9, 10.0, 10.3, 10.1, 10.1, 8.5, 9.5, 10.1, 9.2, 9.5, 9.2,
}

func TestMSER(t *testing.T) {
	jump := append(steps(40, 100, 0), steps(80, 1, 0)...)
	for _, tt := range []struct {
		name  string
		x     []float64
		batch int
		cut   int
		ok    bool
	}{
		{"a decay, by numpy", warming, 5, 25, true},
		{"a ramp never ends", steps(120, 0, 0.5), 5, 0, false},
		{"a jump", jump, 5, 40, true},
		{"a jump late is not a warm-up", append(steps(80, 100, 0), steps(40, 1, 0)...), 5, 0, true},
		{"steady from the start", steps(50, 0.1, 0), 5, 0, true},
		{"too short", steps(49, 3, 0), 5, 0, false},
		{"batches of one", append(steps(10, 9, 0), steps(50, 1, 0)...), 1, 10, true},
		{"nothing", nil, 5, 0, false},
	} {
		if cut, ok := MSER(tt.x, tt.batch); cut != tt.cut || ok != tt.ok {
			t.Errorf("%s: MSER = %d, %v; want %d, %v", tt.name, cut, ok, tt.cut, tt.ok)
		}
	}
}

// Computes each truncation's error from its own mean.
func TestMSERAgainstTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range 200 {
		x := make([]float64, 50+rng.IntN(60))
		for i := range x {
			x[i] = rng.NormFloat64() + 5/(1+float64(i)*rng.Float64())
		}
		means := averaged(x, 5)
		best, least := 0, 0.0
		for d := 0; d <= len(means)/2; d++ {
			rest := means[d:]
			var mean, squares float64
			for _, v := range rest {
				mean += v / float64(len(rest))
			}
			for _, v := range rest {
				squares += (v - mean) * (v - mean)
			}
			if e := squares / float64(len(rest)*len(rest)); d == 0 || e < least {
				best, least = d, e
			}
		}
		cut, ok := MSER(x, 5)
		if want := best < len(means)/2; ok != want || ok && cut != 5*best {
			t.Fatalf("MSER = %d, %v; by the definition %d of %d batches", cut, ok, best, len(means))
		}
	}
}
