package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// HiccupPeriod is how often the probe wakes unless told otherwise: jHiccup's
// interval, short enough to meet a stall of some milliseconds, and less than
// a hundredth of a core.
const HiccupPeriod = time.Millisecond

// shortestPeriod keeps the probe from becoming a load of its own.
const shortestPeriod = 100 * time.Microsecond

// StartHiccups starts the probe for stalls: a thread that does nothing but
// wake at every multiple of the period after now (at least 0.1 ms), and tells
// record how late it woke. What delays this thread delays any other on the
// host: a hypervisor, a busy core, an interrupt, Go's own stops of the world.
//
// record gets the instant of waking and the overshoot, both in ns of c, the
// latter never negative. It includes what a sleep on this host overshoots by
// itself (pace.Calibration), as the probe does not spin. Instants that a stall
// has passed over are recorded too, each with its own overshoot, as a message
// due then would have met it: the counts are those of a schedule, not of the
// wakings (jHiccup corrects its histogram to the same end).
//
// record is called on the probe's own goroutine, one call at a time, and must
// be quick. stop ends the probe and returns when record will not be called
// again, a period later at most on a host that is well; it may be called
// again, by anybody but record.
func StartHiccups(c *pace.Clock, period time.Duration, record func(at, overshoot int64)) (stop func()) {
	var ended atomic.Bool
	var probe sync.WaitGroup
	start := c.Now()
	probe.Go(func() {
		w := pace.NewWaiter(c, pace.Calibration{}) // sleeps to the instant: does not spin
		defer w.Lock()()
		step := int64(max(period, shortestPeriod))
		for due := start + step; ; due += step {
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
