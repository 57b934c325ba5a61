package selftest

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/stats"
)

// Runs simulated systems with known percentiles, and counts how often the interval contains the truth, and
// how often an objective whose limit is the truth is decided. If slow episodes are rarer than the rarest
// stall that a run would have seen, a run without any cannot know of them: then only runs that met one
// count.
//
// WEIR_COVERAGE=2000 does that many runs of every length, which takes minutes, and prints the table of
// docs/method/intervals.md.
func TestIntervalsCover(t *testing.T) {
	needs.NoRace(t)
	lengths, runs := []int{2, 10, 30}, func(seconds int) int { return 10 + 400/(seconds+3) }
	if needs.Less() {
		lengths = lengths[:1] // under the race detector a simulated second takes many times as long
	}
	if s := os.Getenv("WEIR_COVERAGE"); s != "" {
		n := must.Get(strconv.Atoi(s))(t)
		lengths, runs = []int{2, 5, 10, 30, 60, 300}, func(int) int { return n }
	}
	ps := []float64{50, 90, 99, 99.9, 97}
	// Of how many runs both ends are known, in percent, at least.
	known := map[string]map[int][]int{
		"independent":      {2: {90, 90, 80}, 10: {90, 90, 90}, 30: {90, 90, 85, 75}},
		"M/M/1 60 %":       {2: {90, 75}, 10: {90, 90, 55}, 30: {90, 90, 80}},
		"M/M/1 90 %":       {10: {75, 30}, 30: {85, 55}},
		"slow every 1.3 s": {10: {95, 95, 95}, 30: {95, 95, 95}},
	}
	for _, s := range drawns() {
		lengths := lengths
		if s.varies && os.Getenv("WEIR_COVERAGE") == "" {
			if lengths = []int{300}; needs.Less() {
				continue // 300 s of messages take too long under the race detector
			}
		}
		for _, seconds := range lengths {
			runs, beyond := runs(seconds), s.beyond(seconds)
			line := fmt.Sprintf("%-21s %3d s", s.name, seconds)
			cells := must.Get(coverage(t.Context(), s, seconds, runs, ps))(t)
			for i, c := range cells {
				percent := func(n int) float64 { return 100 * float64(n) / float64(runs) }
				slices.Sort(c.width)
				width := math.NaN()
				if len(c.width) > 0 {
					width = 100 * c.width[len(c.width)/2]
				}
				line += fmt.Sprintf(" | %5.1f %5.1f %5.1f %4.0f", 100-percent(c.missed), percent(c.both), percent(c.neither), width)
				at := fmt.Sprintf("%s, %d s, p%v", s.name, seconds, ps[i])
				switch {
				case beyond && !s.varies && c.metMissed > most(c.met, 0.07) && stats.Supported(uint64(seconds*simRate), ps[i]):
					t.Errorf("%s: of %d runs that met a slow episode %d miss the truth", at, c.met, c.metMissed)
				case beyond:
				case c.missed > most(runs, 0.07) || c.decided > most(runs, 0.05):
					t.Errorf("%s: of %d runs %d miss the truth, and %d decide an objective that is the truth", at, runs, c.missed, c.decided)
				}
				if least := known[s.name][seconds]; i < len(least) && c.both*100 < least[i]*runs {
					t.Errorf("%s: of %d runs %d have an interval with both ends; want %d %%", at, runs, c.both, least[i])
				}
			}
			if beyond {
				line += "  beyond the horizon"
			}
			t.Log(line)
		}
	}
}
