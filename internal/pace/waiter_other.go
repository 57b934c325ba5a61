//go:build !linux

package pace

import (
	"runtime"
	"sync"
	"time"
)

// portable tells that the waiter of this platform sleeps by time.Sleep.
const portable = true

// marginCap is the widest margin in ns that calibration chooses; it is wider
// than Linux's: timers end up to a millisecond late on these platforms.
const marginCap = 1_000_000

// lockThread locks the goroutine to its thread.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	var once sync.Once
	return func() { once.Do(runtime.UnlockOSThread) }
}

// sleepUntil sleeps until the instant wake of c and tells whether it slept to
// its end: always here.
func sleepUntil(c *Clock, wake, now int64) bool {
	time.Sleep(c.between(now, wake))
	return true
}
