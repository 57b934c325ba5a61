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

// Compares the expansion with printed tables of the distribution.
func TestStudentQuantile(t *testing.T) {
	for _, tt := range []struct{ tail, degrees, want, off float64 }{
		{0.025, 2, 4.303, 0.04},
		{0.025, 4, 2.776, 0.002},
		{0.025, 5, 2.571, 0.001},
		{0.025, 15, 2.131, 0.001},
		{0.025, 1e9, 1.960, 0.001},
		{0.0125, 10, 2.634, 0.001},
		{0.005, 7, 3.499, 0.002},
	} {
		if got := studentQuantile(tt.tail, tt.degrees); !near(got, tt.want, tt.off) {
			t.Errorf("beyond %v with %v degrees: %.4f; want %.3f", tt.tail, tt.degrees, got, tt.want)
		}
	}
}

// 16 blocks of 1,000 samples, one of which has all hundred slow ones. Every other has 6.25 less
// than its share, so that the formulas can be followed on paper.
func TestEffectiveSizeOfBlocksByHand(t *testing.T) {
	beyond := make([]uint64, 16)
	beyond[5] = 100
	e := EffectiveSize(same(16, 1000), beyond, 0.95)
	share := 100.0 / 16000
	squares := 93.75*93.75 + 15*6.25*6.25
	products := 13*6.25*6.25 - 2*93.75*6.25
	r := products / squares
	r = max(r+(1+4*r)/16, 0)
	independent := 16 * (1 - r) / (1 + r)
	t5 := studentQuantile(0.025, independent-1) / normalQuantile(0.025)
	want := squares / (16000 * share * (1 - share)) * 16 / 15 * (1 + r) / (1 - r) * t5 * t5
	if !near(e.Deff, want, 1e-9) || !near(e.Independent, independent, 1e-9) || e.Episodes != 1 {
		t.Errorf("got %+v; want a design effect of %.2f, %.2f blocks and one episode", e, want, independent)
	}
}

func TestEffectiveSizeAtItsBounds(t *testing.T) {
	for name, tt := range map[string]struct {
		samples, beyond []uint64
		known           bool
	}{
		"too few blocks":   {same(FewestBlocks-1, 1000), same(FewestBlocks-1, 10), false},
		"nothing beyond":   {same(20, 1000), same(20, 0), true},
		"all beyond":       {same(20, 1000), same(20, 1000), true},
		"always as many":   {same(20, 1000), same(20, 10), true},
		"nothing at all":   {nil, nil, false},
		"empty blocks too": {same(20, 0), same(20, 0), true},
	} {
		if e := EffectiveSize(tt.samples, tt.beyond, 0.95); e.Deff != 1 || e.Known() != tt.known {
			t.Errorf("%s: %+v, known %v; want a design effect of 1, known %v", name, e, e.Known(), tt.known)
		}
	}
}

// For samples that are 0 or 1 the mean is the proportion of ones.
func TestEffectiveMean(t *testing.T) {
	samples := []uint64{900, 1100, 1000, 950, 1050, 1000, 1000, 980, 1020, 1000, 500, 1500, 1000, 900, 1100, 1000, 1000}
	beyond := []uint64{9, 12, 8, 11, 10, 30, 9, 10, 8, 11, 4, 16, 8, 9, 11, 10, 12}
	var n, x float64
	sums := make([]float64, len(beyond))
	for i, b := range beyond {
		sums[i] = float64(b)
		n, x = n+float64(samples[i]), x+sums[i]
	}
	p := x / n
	got, want := EffectiveMean(samples, sums, p*(1-p), 0.95), EffectiveSize(samples, beyond, 0.95)
	if !near(got.Deff, want.Deff, 1e-12) || !near(got.Independent, want.Independent, 1e-12) || got.Episodes != want.Episodes {
		t.Errorf("of ones and zeros: %+v; want %+v", got, want)
	}
}

// Independent blocks, and blocks of which 8 neighbours share their level. With these a run of 64 is
// worth 8, and cannot be distinguished from a drift.
func TestDependenceIsSeen(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	const blocks, rounds = 256, 40
	mean := func(shared int) (deff, independent float64) {
		for range rounds {
			beyond := make([]uint64, blocks)
			level := 0.0
			for i := range beyond {
				if i%shared == 0 {
					level = 100 + 40*dice.NormFloat64()
				}
				beyond[i] = uint64(max(0, math.Round(level)))
			}
			e := EffectiveSize(same(blocks, 1000), beyond, 0.95)
			deff, independent = deff+e.Deff/rounds, independent+e.Independent/rounds
		}
		return deff, independent
	}
	alone, many := mean(1)
	eight, few := mean(8)
	// A level with a deviation of 40, where chance has 9.5, has an effect of 17.8, and eight times
	// that if neighbours share it.
	if alone < 17 || alone > 40 || eight < 8*17 || eight > 8*60 {
		t.Errorf("design effects of %.0f and %.0f; want from 18, and from 142, to some more", alone, eight)
	}
	if many < 8 || few > 32 {
		t.Errorf("%d blocks are worth %.1f where each is alone, and %.1f where eight share a level", blocks, many, few)
	}
}

func TestRarestStallSeen(t *testing.T) {
	// An event that occurs every 10 s is missing from 2.5 % of runs of 36.9 s.
	if got := Horizon(36.8888, 0.95); !near(got, 10, 1e-4) {
		t.Errorf("a run of 36.9 s has met what comes every %.3f s; want 10", got)
	}
}
