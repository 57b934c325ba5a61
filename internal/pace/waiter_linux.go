package pace

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// portable tells that the waiter of this platform sleeps by time.Sleep.
const portable = false

// marginCap is the widest margin in ns that calibration chooses; see Calibrate.
const marginCap = 200_000

// lockThread locks the goroutine to its thread and sets the thread's slack.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	// Where prctl is refused, by a seccomp filter say, the slack stays as it
	// is and the calibration, which locks in the same way, shows it.
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			if err == nil {
				// It was allowed a moment ago, and there is no caller to tell.
				_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
			}
			runtime.UnlockOSThread()
		})
	}
}

// sleepUntil sleeps until the instant wake of c, which is after now, or until a signal ends the
// sleep, and tells whether it slept to its end.
//
// The sleep goes through Syscall, not RawSyscall: the scheduler must know that
// the thread sleeps, or its P stays bound to a sleeping thread.
func sleepUntil(c *Clock, wake, now int64) bool {
	ts := unix.NsecToTimespec(c.monotonic(wake))
	switch err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil); {
	case err == nil:
		return true
	case errors.Is(err, unix.EINTR):
		return false
	default:
		// A sandbox may not know the call. Its sleep is worse, never early.
		time.Sleep(c.between(now, wake))
		return true
	}
}
