//go:build !linux

package pace

import (
	"runtime"
	"sync"
	"time"
)

// portable is whether this platform's waiter uses time.Sleep.
const portable = true

// marginCap is the largest margin in ns that calibration chooses; it is larger than Linux's because
// timers fire up to a millisecond late on these platforms.
const marginCap = 1_000_000

// lockThread locks the goroutine to its thread.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	var once sync.Once
	return func() { once.Do(runtime.UnlockOSThread) }
}

// sleepUntil sleeps until the instant wake of c and reports whether it slept to its end: always
// true here.
func sleepUntil(c *Clock, wake, now int64) bool {
	time.Sleep(c.between(now, wake))
	return true
}
