package engine

import (
	"slices"

	"github.com/weirmq/weir/driver"
)

// discardedSince returns what was added to totals. A total that is new, or that fell because its
// server restarted, is left out.
func discardedSince(before, now []driver.Discarded) (all []driver.Discarded) {
	for _, d := range now {
		i := slices.IndexFunc(before, func(b driver.Discarded) bool { return b.Counter == d.Counter && b.Messages <= d.Messages })
		if i >= 0 {
			d.Messages -= before[i].Messages
			all = append(all, d)
		}
	}
	return all
}

// addDiscarded adds what another worker read.
func addDiscarded(all, more []driver.Discarded) []driver.Discarded {
	for _, d := range more {
		switch i := slices.IndexFunc(all, func(x driver.Discarded) bool { return x.Counter == d.Counter }); {
		case i < 0:
			all = append(all, d)
		case d.Client:
			all[i].Messages += d.Messages
		default: // all workers ask about the same totals
			all[i].Messages = max(all[i].Messages, d.Messages)
		}
	}
	return all
}
