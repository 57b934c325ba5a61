// Package standstill finds out why a system takes no messages. Use a Watch for a producer of
// a client library that waits, or tries again, without a word. Where the server or the
// library says so itself, report that by driver.Run.Blocked.
package standstill

import (
	"context"
	"time"

	"github.com/weirmq/weir/driver"
)

const (
	interval = time.Second     // between two looks; a standstill lasts at least as long
	limit    = 4 * time.Second // of a question
)

// A Watch looks at one producer.
type Watch struct {
	Run driver.Run
	Who string // in driver.Run.Blocked: "producer 3"

	// Look returns how many messages the system has taken so far, and whether one waits.
	Look func() (taken uint64, waits bool)
	// Why asks the system for the reason, within ctx. "": it does not answer, or has none.
	Why func(ctx context.Context) string
}

// Keep looks until ctx ends. It reports a block when the system, asked after a standstill,
// gives a reason, and the block's end when a message is taken or there is no reason any more.
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
			if now, _ := w.Look(); now != taken {
				why = ""
			}
		}
		last, waited = taken, waits
		w.Run.Blocked(w.Who, why)
	}
}
