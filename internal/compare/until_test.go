package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/stats"
)

// drawn are runs of sides that differ by a factor from the base: a figure of each varies
// as those of runs do, by a part of itself, and now and then one is twice off.
func drawn(rnd *rand.Rand, n int, spread float64, factors ...float64) [][]float64 {
	sides := make([][]float64, len(factors))
	for i, f := range factors {
		for range n {
			v := f * math.Exp(spread*rnd.NormFloat64())
			if rnd.IntN(20) == 0 {
				v *= 2
			}
			sides[i] = append(sides[i], math.Round(v*1e4)/1e4) // in steps, as the buckets of a histogram are
		}
	}
	return sides
}

// until adds runs to sides in turns until the goal is reached, or up to most runs, and
// returns the first look at which it is, or the last.
func until(sides [][]float64, g Goal) Look {
	last := Look{Next: 1}
	for last.Next <= len(sides[0]) && !last.Enough { // between two looks nothing changes
		some := make([][]float64, len(sides))
		for i := range sides {
			some[i] = sides[i][:last.Next]
		}
		last = LookAt(some, g)
	}
	return last
}

// Stopping once the interval is narrow keeps its error probability. Stopping once a difference is
// significant exceeds it by far.
func TestIntervalsCoverAfterEarlyStop(t *testing.T) {
	needs.NoRace(t)
	const alpha, most, times = 0.05, 24, 200
	for _, c := range []struct {
		name    string
		spread  float64
		share   float64
		factors []float64
	}{
		{"alike, and soon narrow", 0.02, 0.05, []float64{1, 1}},
		{"alike, and narrow by chance", 0.08, 0.08, []float64{1, 1}},
		{"apart", 0.08, 0.2, []float64{1, 1.3}},
		{"never narrow", 0.5, 0.05, []float64{1, 1}},
		{"three sides", 0.05, 0.08, []float64{1, 1, 0.9}},
		{"one side", 0.05, 0.05, []float64{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(7, uint64(len(c.name))))
			missed, stopped := 0, 0
			for range times {
				l := until(drawn(rnd, most, c.spread, c.factors...), Goal{c.share, alpha})
				if l.Enough {
					stopped++
				}
				for i, s := range l.Spans {
					truth := c.factors[0] // of a lone side: its median is a little above, by those that are twice off
					if len(c.factors) > 1 {
						truth = c.factors[i+1] / c.factors[0]
					} else {
						truth *= math.Exp(c.spread * 0.0660) // the 0.5/0.95 quantile of the normal
					}
					if truth < s.Lo-1e-4 || truth > s.Hi+1e-4 {
						missed++
						break
					}
				}
			}
			// Four standard errors above what is allowed.
			if limit := alpha*float64(times) + 4*math.Sqrt(alpha*(1-alpha)*float64(times)); float64(missed) > limit {
				t.Errorf("%d of %d intervals miss; want at most %.0f", missed, times, limit)
			}
			t.Logf("%d of %d reached the goal, %d missed", stopped, times, missed)
			if never := c.spread > 0.3; never != (stopped == 0) {
				t.Errorf("%d of %d reached the goal", stopped, times)
			}
		})
	}
	t.Run("what this is held against", func(t *testing.T) {
		t.Parallel()
		rnd := rand.New(rand.NewPCG(7, 8))
		wrong := 0
		for range times {
			s := drawn(rnd, 32, 0.08, 1, 1)
			for n := 4; n <= 16; n++ {
				if stats.MannWhitney(s[0][:n], s[1][:n]).P < alpha {
					wrong++
					break
				}
			}
		}
		if float64(wrong) < 2*alpha*float64(times) {
			t.Errorf("stopping at significance claims a difference in %d of %d cases without one: the runs here do not show the problem", wrong, times)
		}
	})
}

func TestLooksHappenAtPlannedRunCounts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := drawn(rnd, 40, 0.01, 1, 1.2)
	g := Goal{0.05, 0.05}
	var at []int
	for n := range 40 {
		l := LookAt([][]float64{s[0], s[1][:n+1]}, g)
		if !slices.Contains(at, l.Runs) {
			at = append(at, l.Runs)
		}
		// What came since the last look changes nothing.
		if l.Runs > 0 && fmt.Sprint(l) != fmt.Sprint(LookAt([][]float64{s[0][:l.Runs], s[1][:l.Runs]}, g)) {
			t.Errorf("with %d runs it is another look than with %d", n+1, l.Runs)
		}
		if l.Next <= n+1 {
			t.Errorf("with %d runs the next look is at %d", n+1, l.Next)
		}
	}
	if want := []int{0, 6, 8, 12, 16, 24, 32}; !slices.Equal(at, want) {
		t.Errorf("looks at %v runs; want %v", at, want)
	}
	for _, c := range []struct {
		name   string
		sides  [][]float64
		spans  int
		enough bool
	}{
		{"runs that are all the same", [][]float64{slices.Repeat([]float64{5}, 6), slices.Repeat([]float64{5}, 6)}, 1, true},
		{"a base of 0, which nothing is a part of", [][]float64{make([]float64, 8), slices.Repeat([]float64{5}, 8)}, 0, false},
		{"six runs of one side, too few for an interval", [][]float64{slices.Repeat([]float64{5}, 6)}, 0, false},
		{"eight runs of one side", [][]float64{slices.Repeat([]float64{5}, 8)}, 1, true},
		{"a side with fewer runs than the other", [][]float64{slices.Repeat([]float64{5}, 20), slices.Repeat([]float64{5}, 5)}, 0, false},
	} {
		if l := LookAt(c.sides, g); len(l.Spans) != c.spans || l.Enough != c.enough {
			t.Errorf("%s: %+v", c.name, l)
		}
	}
}
