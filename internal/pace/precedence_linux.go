package pace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A precedence is SCHED_FIFO of one thread. Its methods are for that thread, and allocate nothing.
type precedence struct {
	first, ordinary, before unix.SchedAttr
}

// precede gives the calling thread real-time priority. Threads that it starts do not inherit it.
func precede() (*precedence, error) {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: asking for the thread's policy: %w", ErrNoFIFO, err)
	}
	p := &precedence{
		first:    unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: fifoPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK},
		ordinary: unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: before.Nice, Flags: unix.SCHED_FLAG_RESET_ON_FORK},
		before:   *before,
	}
	switch err := p.take(); {
	case errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("%w: %w (root or CAP_SYS_NICE, or a limit of real-time priorities of %d: ulimit -r)", ErrNoFIFO, err, fifoPriority)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoFIFO, err)
	}
	return p, nil
}

func (p *precedence) take() error { return unix.SchedSetAttr(0, &p.first, 0) }

func (p *precedence) give() error { return unix.SchedSetAttr(0, &p.ordinary, 0) }

// end restores the previous policy.
func (p *precedence) end() error {
	err := unix.SchedSetAttr(0, &p.before, 0)
	if errors.Is(err, unix.EPERM) {
		// Without CAP_SYS_NICE the flag against inheritance cannot be reset, which does no harm.
		kept := p.before
		kept.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		err = unix.SchedSetAttr(0, &kept, 0)
	}
	return err
}

// used returns how long, in ns, the thread has had a core, in user and kernel mode.
func (p *precedence) used() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
