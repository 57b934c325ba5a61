package pace

import (
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/needs"
)

func slack(t *testing.T) int {
	t.Helper()
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		needs.Host(t, "timerslack", err)
	}
	return ns
}

func TestLockSetsAndUnlockRestoresTimerSlack(t *testing.T) {
	outer := lockThread() // so that everything below looks at one thread
	defer outer()
	if got := slack(t); got != 1 {
		t.Fatalf("slack is %d ns while locked, want 1", got)
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 12_345, 0, 0, 0); err != nil {
		t.Fatalf("set a slack of our own: %v", err)
	}
	unlock := NewWaiter(NewClock(), Calibration{}).Lock()
	if got := slack(t); got != 1 {
		t.Errorf("slack is %d ns while locked, want 1", got)
	}
	unlock()
	if got := slack(t); got != 12_345 {
		t.Errorf("slack is %d ns after unlock, want the 12345 of before", got)
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		t.Fatalf("set the slack back: %v", err)
	}
	unlock() // does nothing now
	if got := slack(t); got != 1 {
		t.Errorf("a second unlock changed the slack to %d ns", got)
	}
}

// Signals interrupt the sleep; the wait continues.
func TestSignalsDoNotEndAWait(t *testing.T) {
	c := NewClock()
	w := NewWaiter(c, Calibration{})
	defer w.Lock()()
	tid := unix.Gettid()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
				// The runtime's own signal, which it expects at any time.
				if err := unix.Tgkill(os.Getpid(), tid, unix.SIGURG); err != nil {
					t.Errorf("signal the waiting thread: %v", err)
					return
				}
			}
		}
	})
	interrupted := 0
	for range 20 {
		now := c.Now()
		if !sleepUntil(c, now+3_000_000, now) {
			interrupted++
		}
		due := c.Now() + 3_000_000
		if got := w.Until(due); got < due {
			t.Errorf("returned at %d, due at %d", got, due)
		}
	}
	close(stop)
	wg.Wait()
	if interrupted == 0 {
		t.Log("no signal met a sleep on this host, so this run has shown nothing")
	}
}
