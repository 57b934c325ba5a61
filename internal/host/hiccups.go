package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// HiccupPeriod is the probe's default period, that of jHiccup: short enough to detect a stall of a few
// milliseconds, at less than a hundredth of a core.
const HiccupPeriod = time.Millisecond

// shortestPeriod keeps the probe from becoming a load itself.
const shortestPeriod = 100 * time.Microsecond

// StartHiccups starts the probe for scheduling stalls: a thread that only wakes, at the instants that lie
// a multiple of the period (at least 0.1 ms) from an instant of c, and passes each wake-up delay to record.
// The first is at least a period after now. Whatever delays
// this thread delays any other thread on the host: a hypervisor, a busy core, an interrupt, Go's own
// stops of the world.
//
// record receives the wake-up instant and the overshoot, both in ns of c; the overshoot is never
// negative. It includes the usual overshoot of a sleep on this host (pace.Calibration), since the
// probe does not spin. Instants missed during a stall are recorded too, each with its own overshoot,
// as a message due then would have met it: the counts are those of a schedule, not of wake-ups
// (jHiccup corrects its histogram for the same reason).
//
// record is called on the probe's own goroutine, one call at a time, and must be quick. stop ends the
// probe and returns once record will not be called again, which takes at most a period on a healthy
// host; it may be called again, but not from record.
func StartHiccups(c *pace.Clock, from int64, period time.Duration, record func(at, overshoot int64)) (stop func()) {
	var ended atomic.Bool
	var probe sync.WaitGroup
	start := c.Now()
	probe.Go(func() {
		w := pace.NewWaiter(c, pace.Calibration{}) // sleeps to the instant; does not spin
		defer w.Lock()()
		step := int64(max(period, shortestPeriod))
		after := (from - start) % step
		if after < 0 {
			after += step
		}
		for due := start + step + after; ; due += step {
			at := w.Until(due)
			if ended.Load() {
				return
			}
			record(at, at-due)
		}
	})
	return func() {
		ended.Store(true)
		probe.Wait()
	}
}
