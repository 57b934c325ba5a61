package pace

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Thread reads the kernel's accounting of one thread.
type Thread struct {
	fd  int
	buf [64]byte
	ts  unix.Timespec
}

// WatchThread returns a Thread for the calling thread, to which the goroutine is locked until
// Close. It fails if the kernel keeps no such accounting.
func WatchThread() (*Thread, error) {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the account of a thread: %w", err)
	}
	t := &Thread{fd: fd}
	// A kernel without accounting reports only 0, and so does one with it of a thread that is new. The first thread of
	// this process is not.
	first, err := os.ReadFile("/proc/self/schedstat")
	if _, ok := t.queued(); !ok || err != nil || bytes.HasPrefix(first, []byte("0 ")) {
		t.Close()
		return nil, errors.New("the kernel does not account for threads (schedstat)")
	}
	return t, nil
}

// Close ends the watch.
func (t *Thread) Close() { _ = unix.Close(t.fd) }

// Read returns the times of the calling thread, which must be the watched one. It takes about 1 us
// and allocates nothing.
func (t *Thread) Read(c *Clock) ThreadTime {
	r := ThreadTime{At: c.Now()}
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t.ts) == nil {
		r.CPU = t.ts.Nano()
	}
	r.Queued, _ = t.queued()
	return r
}

// queued reads the time that the thread waited for a core: the second number, after the time that
// it ran as of the scheduler's last tick.
func (t *Thread) queued() (ns int64, ok bool) {
	n, err := unix.Pread(t.fd, t.buf[:], 0)
	if err != nil {
		return 0, false
	}
	field := 0
	for _, b := range t.buf[:n] {
		switch {
		case b == ' ':
			field++
		case b < '0' || b > '9':
		case field == 1:
			ns = 10*ns + int64(b-'0')
		}
	}
	return ns, field == 2
}
