package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stepped returns n values of noise around 1, multiplied by step from at on.
func stepped(rng *rand.Rand, n, at int, step, noise float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Log(1) + noise*rng.NormFloat64()
		if i >= at {
			x[i] += math.Log(step)
		}
	}
	return x
}

func TestPlantedStepIsLocated(t *testing.T) {
	exact, near := 0, 0
	const series = 40
	for seed := range uint64(series) {
		rng := rand.New(rand.NewPCG(seed, 1))
		found := ChangePoints(stepped(rng, 60, 40, 1.05, 0.01), 0.05, 1)
		for _, c := range found {
			if c.At == 40 {
				exact++
			}
			if c.At >= 39 && c.At <= 41 {
				near++
			}
		}
	}
	if exact < series*9/10 || near < series {
		t.Errorf("a step of 5 %% in noise of 1 %% is found at its value in %d and within one value in %d of %d series; want at least nine of ten, and all", exact, near, series)
	}
}

// Without a change the probability of any claim is alpha: of 200 series 5 % are 10, and more than
// 20 have a probability of 0.001.
func TestUnchangedSeriesRarelyShowsChange(t *testing.T) {
	wrong := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		if len(ChangePoints(stepped(rng, 60, 60, 1, 0.02), 0.05, 1)) > 0 {
			wrong++
		}
	}
	if wrong > 20 {
		t.Errorf("%d of 200 series without a change give one; at a level of 5 %% at most 20 are left to chance", wrong)
	}
}

func TestSeveralChangesAreFoundInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	x := stepped(rng, 90, 30, 1.2, 0.01)
	for i := 70; i < 90; i++ {
		x[i] -= math.Log(1.1)
	}
	var at []int
	for _, c := range ChangePoints(x, 0.01, 1) {
		at = append(at, c.At)
	}
	if diff := cmp.Diff([]int{30, 70}, at); diff != "" {
		t.Errorf("changes (-planted +found):\n%s", diff)
	}
}

// The energy of a split by its definition, from all pairs.
func TestSplitEnergyMatchesDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	x := stepped(rng, 20, 8, 3, 0.5)
	mean := func(a, b []float64) (sum float64) {
		for _, v := range a {
			for _, w := range b {
				sum += math.Abs(v - w)
			}
		}
		return sum
	}
	want, at := math.Inf(-1), 0
	for cut := LeastSegment; cut <= len(x)-LeastSegment; cut++ {
		a, b := x[:cut], x[cut:]
		m, n := float64(len(a)), float64(len(b))
		e := m * n / (m + n) * (2*mean(a, b)/(m*n) - mean(a, a)/(m*(m-1)) - mean(b, b)/(n*(n-1)))
		if e > want {
			want, at = e, cut
		}
	}
	gotAt, got := newDivision(x).best()
	if gotAt != at || math.Abs(got-want) > 1e-9*want {
		t.Errorf("best split at %d with %v; by its definition at %d with %v", gotAt, got, at, want)
	}
}

func TestNoChangePointInUnusableSeries(t *testing.T) {
	for _, n := range []int{0, 1, 2*LeastSegment - 1, MostForChanges + 1} {
		x := make([]float64, n)
		for i := n / 2; i < n; i++ {
			x[i] = 1
		}
		if found := ChangePoints(x, 0.05, 1); found != nil {
			t.Errorf("%d values: %v, want nothing", n, found)
		}
	}
	if found := ChangePoints(make([]float64, 50), 0.05, 1); found != nil {
		t.Errorf("50 equal values: %v, want nothing", found)
	}
}
