package schedule

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
)

func TestDestinationsAreSpreadOverProducers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                    string
		producers, destinations int
		of                      [][]int
		sends                   [][]int // of the first four batches
	}{
		{"one each", 2, 2, [][]int{{0}, {1}}, [][]int{{0, 0, 0, 0}, {1, 1, 1, 1}}},
		{"more producers", 5, 2, [][]int{{0}, {1}, {0}, {1}, {0}}, [][]int{{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 0}}},
		{"more destinations", 2, 5, [][]int{{0, 2, 4}, {1, 3}}, [][]int{{0, 2, 4, 0}, {1, 3, 1, 3}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec := plain(Arrival{})
			spec.Producers, spec.Destinations = tc.producers, tc.destinations
			s := mustNew(t, spec)
			var of, sends [][]int
			streams := map[uint32]bool{}
			for p := range tc.producers {
				of = append(of, s.DestinationsOf(p))
				var batches []int
				for n := range uint64(4) {
					batches = append(batches, s.Destination(p, n))
				}
				sends = append(sends, batches)
				for _, d := range s.DestinationsOf(p) {
					n := s.Stream(p, d)
					if streams[n] || int(n) >= s.Streams() {
						t.Errorf("Stream(%d, %d) = %d, which is taken or not below %d", p, d, n, s.Streams())
					}
					streams[n] = true
				}
			}
			golden.Equal(t, tc.of, of, "DestinationsOf")
			golden.Equal(t, tc.sends, sends, "Destination")
			if len(streams) != s.Streams() {
				t.Errorf("Streams() = %d; want %d", s.Streams(), len(streams))
			}
		})
	}
}

// shares draws n times and compares the frequency of each value with its probability, within five
// standard deviations.
func shares(t *testing.T, what string, n int, p []float64, draw func(i uint64) int) {
	t.Helper()
	counts := make([]float64, len(p))
	for i := range n {
		counts[draw(uint64(i))]++
	}
	for v, p := range p {
		if want := p * float64(n); math.Abs(counts[v]-want) > 5*math.Sqrt(want*(1-p))+3 { // 3: for the rarest, of which a few may come
			t.Errorf("%s: %d drawn %v times of %d; want about %.0f", what, v, counts[v], n, want)
		}
	}
}

func TestDrawsHaveTheirProbabilities(t *testing.T) {
	t.Parallel()
	const n = 200_000
	even := func(n int) []float64 {
		p := make([]float64, n)
		for i := range p {
			p[i] = 1 / float64(n)
		}
		return p
	}
	spec := plain(Arrival{Kind: Poisson}, step(PerSecond(1), time.Second))
	spec.Producers, spec.BatchMin, spec.BatchMax = 25, 3, 12
	spec.Sizes = []WeightedSize{{1, 3}, {2, 1}, {7, 4}, {3, 2}}
	spec.Keys = Keys{Kind: UniformKeys, N: 100}
	s := mustNew(t, spec)
	shares(t, "producers", n, even(25), s.Producer)
	shares(t, "batch sizes of one producer", n, even(10), func(i uint64) int { return s.BatchSize(7, i) - 3 })
	shares(t, "first batch sizes of many producers", n, even(10), func(i uint64) int { return s.BatchSize(int(i), 0) - 3 })
	shares(t, "sizes", n, []float64{0, 0.3, 0.1, 0.2, 0, 0, 0, 0.4}, s.Size)
	shares(t, "uniform keys", n, even(100), func(i uint64) int { k, _ := s.Key(i); return int(k) })
	if s.MaxSize() != 7 {
		t.Errorf("MaxSize() = %d; want 7", s.MaxSize())
	}
	for _, z := range []struct {
		n uint64
		s float64
	}{{1, 1}, {2, 0.5}, {100, 1.1}, {300, 3}, {70_000, 0.99}, {5, 10}} {
		spec.Keys = Keys{Kind: ZipfKeys, N: z.n, S: z.s}
		s := mustNew(t, spec)
		p, sum := make([]float64, z.n), 0.0
		for k := range p {
			p[k] = math.Pow(float64(k+1), -z.s)
			sum += p[k]
		}
		for k := range p {
			p[k] /= sum
		}
		// The frequent ones individually, the rest together.
		if rest := len(p) - 60; rest > 0 {
			last := 1.0
			for _, p := range p[:59] {
				last -= p
			}
			p = append(p[:59], last)
		}
		shares(t, "zipf keys", n, p, func(i uint64) int { k, _ := s.Key(i); return min(int(k), len(p)-1) })
	}
	spec.Keys = Keys{Kind: RoundRobinKeys, N: 3}
	if k, ok := mustNew(t, spec).Key(7); k != 1 || !ok {
		t.Errorf("round robin: Key(7) = %d, %v; want 1, true", k, ok)
	}
	spec.Keys = Keys{}
	if k, ok := mustNew(t, spec).Key(7); k != 0 || ok {
		t.Errorf("no keys: Key(7) = %d, %v; want 0, false", k, ok)
	}
}

func TestZipfKeyMatchesItsTable(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 17, 1000, 100_000} {
		z := newZipf(n, 1.3)
		r := stream(5)
		for i := range uint64(2000) {
			u := r.at(i)
			if i < 64 {
				u = ^uint64(0) >> i // and the ends
			}
			k := z.key(u)
			if z.upTo[k] <= u>>1 || k > 0 && z.upTo[k-1] > u>>1 {
				t.Fatalf("%d keys: key of %#x = %d, which ends at %#x", n, u, k, z.upTo[k])
			}
		}
	}
}

func TestAnotherSeedIsAnotherRun(t *testing.T) {
	t.Parallel()
	spec := profile(Arrival{Kind: Poisson}, 10)
	spec.Keys = Keys{Kind: UniformKeys, N: 1 << 40}
	a := mustNew(t, spec)
	spec.Seed++
	b := mustNew(t, spec)
	if cmp.Equal(take(a.Due(Part{0, 1}), 5), take(b.Due(Part{0, 1}), 5)) {
		t.Error("seeds 1 and 2 give the same due instants")
	}
	ka, _ := a.Key(0)
	if kb, _ := b.Key(0); ka == kb {
		t.Error("seeds 1 and 2 give the same key")
	}
}
