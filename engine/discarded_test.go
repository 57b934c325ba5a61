package engine

import (
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/golden"
)

func TestDiscardedCountsOnlyThisRun(t *testing.T) {
	before := []driver.Discarded{{Counter: "grew", Messages: 7}, {Counter: "stood", Messages: 2}, {Counter: "restarted", Messages: 9}}
	now := []driver.Discarded{{Counter: "grew", Messages: 10}, {Counter: "stood", Messages: 2}, {Counter: "restarted", Messages: 1}, {Counter: "new", Messages: 5}}
	want := []driver.Discarded{{Counter: "grew", Messages: 3}, {Counter: "stood"}}
	golden.Equal(t, want, discardedSince(before, now), "")
}

// Two workers read the same server, and their own clients.
func TestDiscardedSumOverWorkers(t *testing.T) {
	of := func(server, client uint64) []driver.Discarded {
		return []driver.Discarded{{Counter: "server", Messages: server}, {Counter: "client", Messages: client, Client: true}}
	}
	golden.Equal(t, of(6, 5), addDiscarded(addDiscarded(nil, of(5, 2)), of(6, 3)), "")
}
