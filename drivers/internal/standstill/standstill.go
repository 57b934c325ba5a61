// Package standstill finds out why a system accepts no messages. Use a Watch for a producer whose
// client library silently waits or retries. If the server or the library reports a block itself,
// pass that to driver.Run.Blocked.
package standstill

import (
	"context"
	"time"

	"github.com/weirmq/weir/driver"
)

const (
	interval = time.Second     // between two checks; the minimum duration of a standstill
	limit    = 4 * time.Second // for a request
)

// A Watch monitors one producer.
type Watch struct {
	Run driver.Run
	Who string // for driver.Run.Blocked: "producer 3"

	// Look returns how many messages the system has taken so far, and whether one is waiting. For a
	// producer whose messages take several ways, the former is 0, and the latter the result of
	// Open.Wait.
	Look func() (taken uint64, waits bool)
	// Why asks the system for the reason, within ctx. "": it does not answer, or has none.
	Why func(ctx context.Context) string
}

// Keep checks until ctx ends. It reports a block when, after a standstill, the system gives a
// reason, and its end when a message is taken or the reason is gone.
func (w *Watch) Keep(ctx context.Context) {
	defer w.Run.Unblocked(w.Who)
	last, waited := uint64(0), false
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		taken, waits := w.Look()
		why := ""
		if waits && waited && taken == last {
			asking, cancel := context.WithTimeout(ctx, limit)
			why = w.Why(asking)
			cancel()
			if now, still := w.Look(); now != taken || !still {
				why = ""
			}
		}
		last, waited = taken, waits
		w.Run.Blocked(w.Who, why)
	}
}
