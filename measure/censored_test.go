package measure

import (
	"math/rand/v2"
	"testing"
)

// Each is in a cell that contains its instant, however long the run becomes, and none is lost when
// cells become wider.
func TestCensoredSamplesKeepTheirInstants(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	const hour = int64(3600 * 1e9)
	for _, long := range []int64{1e6, 1e9, 60e9, 50 * hour} {
		var c Censored
		want := map[int64]uint64{}
		for range 500 {
			since, n := dice.Int64N(long), 1+dice.Uint64N(9)
			c.Add(since, long-since, n)
			want[since] += n
		}
		c.Add(long-1, 1, 1)
		want[long-1]++
		var sum, whole uint64
		last := int64(-1)
		for at, n := range c.Cells() {
			var in uint64
			for since, n := range want {
				if since >= at.From && since < at.To {
					in += n
				}
			}
			if at.From < last || at.To-at.From > max(1<<leastCell, long/2048) || in != n {
				t.Fatalf("of a run of %d ns a cell from %d to %d has %d samples; want %d, in the order of time", long, at.From, at.To, n, in)
			}
			last, sum = at.To, sum+n
		}
		for _, n := range want {
			whole += n
		}
		if sum != whole || c.Total() != whole || c.Ages.Min() != 1 || !c.Dated() {
			t.Errorf("of a run of %d ns the cells have %d samples, the ages %d from %d ns on; want %d", long, sum, c.Total(), c.Ages.Min(), whole)
		}
		if c.AddUndated(5, 2); c.Dated() || c.Total() != whole+2 {
			t.Errorf("with two undated ones: %d samples, dated: %v", c.Total(), c.Dated())
		}
	}
}
