package fleet

import (
	"testing"
	"time"

	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/placement"
)

// talk gives an agent's track an exchange every 100 ms of some seconds from an
// instant of its own clock on, its answers 20 µs away, of a clock to which behind is to be added.
func talk(c *clocks, i int, from int64, seconds int, behind func(t int64) int64) {
	for k := range 10 * seconds {
		t := from + int64(k)*int64(100*time.Millisecond)
		c.add(i, []offset.Exchange{{T1: t, T2: t + 20_000 + behind(t), T3: t + 21_000 + behind(t), T4: t + 41_000}})
	}
}

// The uncertainty of the coordinator's clock does not affect messages between agents on one host.
func TestSameClockPairsHaveOnlyReadingError(t *testing.T) {
	base := pace.NewClock()
	c := newClocks(base, []protocol.About{{Name: "a", Clock: "there"}, {Name: "b", Clock: "there"}, {Name: "c", Clock: "elsewhere"}, {Name: "d"}}, 9)
	now := base.Monotonic()
	talk(c, 0, now-10e9, 10, func(int64) int64 { return 0 })
	talk(c, 2, now-10e9, 10, func(int64) int64 { return 7e9 })
	reading := 2 * max(0, base.Epoch().ErrorNS)
	for name, tt := range map[string]struct {
		pairs       []placement.Flow
		same, known bool
		least, most int64
	}{
		"none":               {nil, false, true, 0, 0},
		"one clock":          {[]placement.Flow{{From: 0, To: 1}, {From: 1, To: 0}}, true, true, reading, reading},
		"two clocks":         {[]placement.Flow{{From: 0, To: 2}}, false, true, 40_000, 200_000},
		"both":               {[]placement.Flow{{From: 0, To: 1}, {From: 2, To: 1}}, false, true, 40_000, 200_000},
		"one of them unsaid": {[]placement.Flow{{From: 0, To: 3}}, false, false, 0, 0},
	} {
		k := c.bound(tt.pairs)
		if k.Crosses != (len(tt.pairs) > 0) || k.Same != tt.same || k.Known != tt.known || k.BoundNS < tt.least || k.BoundNS > tt.most {
			t.Errorf("%s: %+v; want %+v", name, k, tt)
		}
	}
}

// TestClockStepIsDatedByRunClock: a clock is set back by 3 ms in the fifth second
// after the epoch.
func TestClockStepIsDatedByRunClock(t *testing.T) {
	base := pace.NewClock()
	c := newClocks(base, []protocol.About{{Name: "a", Clock: "there"}}, 9)
	now := base.Monotonic()
	talk(c, 0, now-5e9, 5, func(int64) int64 { return 0 })
	epoch := c.translate(0, now)
	talk(c, 0, now, 10, func(t int64) int64 {
		if t >= epoch+5e9 {
			return 3e6
		}
		return 0
	})
	w := c.watch(0)
	if len(w.Steps) != 1 {
		t.Fatalf("%+v", w)
	}
	s := w.Steps[0]
	if late := s.At - 5e9; max(late, -late) > s.Uncertain || s.Uncertain > 1e9 || s.By < 2.9e6 || s.By > 3.1e6 {
		t.Errorf("%+v; want 3 ms at 5 s", s)
	}
}
