package pace

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// portable is whether this platform's waiter uses time.Sleep.
const portable = false

// marginCap is the largest margin in ns that calibration chooses; see Calibrate.
const marginCap = 200_000

// lockThread locks the goroutine to its thread and sets the thread's slack.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	// If prctl is denied, for example by a seccomp filter, the slack stays as it is, and the
	// calibration, which locks in the same way, shows it.
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			if err == nil {
				// It was allowed a moment ago, and there is no caller to report to.
				_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
			}
			runtime.UnlockOSThread()
		})
	}
}

// sleepUntil sleeps until the instant wake of c, which is after now, or until a signal interrupts
// it, and reports whether it slept to its end.
//
// The sleep goes through Syscall, not RawSyscall: the scheduler must know that the thread sleeps,
// or its P stays bound to a sleeping thread.
func sleepUntil(c *Clock, wake, now int64) bool {
	ts := unix.NsecToTimespec(c.monotonic(wake))
	switch err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil); {
	case err == nil:
		return true
	case errors.Is(err, unix.EINTR):
		return false
	default:
		// A sandbox may not support the call. time.Sleep is less precise, but never early.
		time.Sleep(c.between(now, wake))
		return true
	}
}
