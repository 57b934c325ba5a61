package wire

import (
	"fmt"
	"testing"
	"time"
)

// TestRecordingKeepsItsShare simulates runs: what a message costs to record, how many come, and how much of
// the processor the process uses beside that.
func TestRecordingKeepsItsShare(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name    string
		perS    float64       // messages
		costs   int64         // ns, of one
		segment int           // bytes of the ring buffer, of one
		slow    time.Duration // until a message is complete
		cores   float64       // that the process uses
		run     time.Duration
		windows int // at least
	}{
		{"1 KiB at 1,000/s", 1000, 4000, 4 << 11, time.Millisecond, 0.1, 10 * time.Second, 16},
		{"100 KB at 20/s", 20, 400_000, 6 * 132 << 10, time.Millisecond, 0.03, 12 * time.Second, 3},
		{"100 KB at 20/s, slow", 20, 400_000, 6 * 132 << 10, time.Second, 0.03, 60 * time.Second, 10},
		{"1 MiB at 200/s", 200, 4_000_000, 20 * 132 << 10, 5 * time.Millisecond, 0.5, 10 * time.Second, 3},
		{"one a second", 1, 4000, 4 << 11, time.Millisecond, 0.005, 60 * time.Second, 1},
		{"a million a second", 1e6, 2000, 4 << 8, time.Millisecond, 2, 10 * time.Second, 16},
		{"a system that stands still", 1000, 4000, 4 << 11, 10 * time.Second, 0.1, 20 * time.Second, 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			b := newBudget(Share)
			now, windows := time.Duration(0), 0
			cpu := func() int64 { return int64(x.cores*float64(now)) + b.cost }
			for least := longest / 100; now < x.run; {
				now += max(least, b.pause(now, cpu())*3/2)
				if b.lacks(cpu()) > 0 {
					continue
				}
				number := func(of time.Duration) int { return int(x.perS * of.Seconds()) }
				cost := func(of time.Duration) int64 { return costWindow + int64(number(of))*x.costs }
				began, sampled := now, b.length
				now += sampled
				for now < began+sampled+min(x.slow, slowest) && number(sampled) > 0 && cost(now-began) < b.left(cpu()) {
					now += time.Millisecond
				}
				windows++
				b.spend(load{4 * number(sampled), number(sampled) * x.segment}, cost(now-began))
			}
			share := float64(b.cost) / float64(cpu())
			if says := fmt.Sprintf("%d windows took %.2f %%", windows, 100*share); share > 0.03 || windows < x.windows {
				t.Errorf("%s; want at most 3 %%, in %d or more", says, x.windows)
			}
		})
	}
}

// A forecast needs something to go by.
func TestPauseBeforeTheFirstWindow(t *testing.T) {
	t.Parallel()
	b := newBudget(Share)
	for name, x := range map[string]struct {
		passed time.Duration
		busy   int64
		want   time.Duration
	}{
		"nothing was used yet":        {0, 0, longest / 50},
		"a moment says little":        {time.Millisecond, 1000, longest / 5},
		"a tenth of a core":           {time.Second, 100_000_000, longest / 50},
		"a hundredth of a core":       {time.Second, 10_000_000, time.Second},
		"for long next to nothing":    {time.Minute, 1_000_000, 20 * longest},
		"a twentieth, for half of it": {500 * time.Millisecond, 25_000_000, 500 * time.Millisecond},
	} {
		if got := b.pause(x.passed, x.busy); got != x.want {
			t.Errorf("%s: %v; want %v", name, got, x.want)
		}
	}
}
