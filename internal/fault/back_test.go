package fault

import (
	"testing"

	"github.com/weirmq/weir/result"
)

// TestContinuingFailureIsNotRecovered: in each step one of two messages fails, and the others are as
// fast as before the fault.
func TestContinuingFailureIsNotRecovered(t *testing.T) {
	const step = int64(1e8)
	for lasts, want := range map[int]int64{5: 5 * step, 20: -1} {
		var c Course
		for i := range 40 {
			p := part{from: int64(i) * step, to: int64(i+1) * step, sent: 2, confirmed: 2, in: 2, n: 2, p99: 1e6, worst: 1e6, owed: true}
			if i >= 20 && i < 20+lasts {
				p.confirmed, p.in, p.failed = 1, 1, 1
			}
			c.parts = append(c.parts, p)
		}
		faults := []result.Fault{{Do: "kill", To: "1", Processes: []string{"server-1"}, BeganNS: 20 * step}}
		c.Effects(faults, 0, 40*step, 40*step, End{})
		back := int64(-1)
		if b := faults[0].Effect.BackNS; b != nil {
			back = *b
		}
		if back != want {
			t.Errorf("%d steps of failures: back after %d ns; want %d", lasts, back, want)
		}
	}
}
