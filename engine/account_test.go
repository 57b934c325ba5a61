package engine

import "testing"

// A pacer turns to messages as if Publish had not slept, until it has caught up.
func TestPacerOvershootAccounting(t *testing.T) {
	a := account{owed: 1000}
	for _, x := range []struct{ due, now, ready int64 }{
		{100, 1200, 200},  // the pacer's own work was 100
		{900, 1250, 900},  // due in the sleep, and 350 after: all due to the sleep
		{950, 1400, 1050}, // of the 450 now only 350 are
		{1400, 1400, 1400},
		{1410, 1500, 1500}, // caught up: what comes later is the pacer's fault
	} {
		if got := a.turned(x.due, x.now); got != x.ready {
			t.Errorf("due at %d, turned to at %d: ready at %d; want %d", x.due, x.now, got, x.ready)
		}
	}
	a.owed = 500
	if a.onTime(); a.turned(10, 400) != 400 {
		t.Error("a pacer that waited for its next message is still owed")
	}
}
