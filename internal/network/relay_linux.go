package network

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A relay carries packets in one direction, on its own thread.
type relay struct {
	from, to int // TUN devices
	began    time.Time

	mu     sync.Mutex
	oneWay *oneWay
}

// set changes the conditions. Packets in flight keep theirs.
func (r *relay) set(c Conditions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.oneWay.Conditions = c
	r.oneWay.busy = 0
}

// partition cuts or restores the direction.
func (r *relay) partition(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.oneWay.cut = on
}

// counts returns what has been done so far.
func (r *relay) counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.oneWay.counts
}

// burst is how many packets are read before due packets are written again.
const burst = 16

// run carries packets until a device fails. It polls with the precision of the kernel's timers: Go's
// may be a millisecond late in an idle process.
func (r *relay) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // otherwise a sleep may last 50 µs longer
	b := make([]byte, 1<<16)
	poll := []unix.PollFd{{Fd: int32(r.from), Events: unix.POLLIN}}
	for {
		idle, err := r.pass(b)
		if err != nil {
			return err
		}
		if idle == 0 {
			continue
		}
		var wait *unix.Timespec
		if idle > 0 {
			t := unix.NsecToTimespec(int64(idle))
			wait = &t
		}
		if _, err := unix.Ppoll(poll, wait, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for packets: %w", err)
		}
	}
}

// pass reads what has arrived and writes what is due. It returns how long to wait for new packets: 0
// is not at all, below 0 is for ever.
func (r *relay) pass(b []byte) (idle time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := true
	for range burst {
		n, err := unix.Read(r.from, b)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			more = false
			break
		}
		if err != nil {
			return 0, fmt.Errorf("reading packets: %w", err)
		}
		if n > 0 && b[0]>>4 == 4 { // IPv6 is the kernel's neighbour discovery, for which there is no address here
			r.oneWay.take(time.Since(r.began), b[:n])
		}
	}
	for {
		p := r.oneWay.arrive(time.Since(r.began))
		if p == nil {
			break
		}
		_, err := unix.Write(r.to, p)
		r.oneWay.done(p)
		switch {
		case errors.Is(err, unix.EBADF), errors.Is(err, unix.EBADFD):
			return 0, fmt.Errorf("writing packets: %w", err)
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
			r.oneWay.counts.Overflow++
		} // other errors concern a packet with an invalid header
	}
	if more {
		return 0, nil
	}
	at, any := r.oneWay.next()
	if !any {
		return -1, nil
	}
	return max(1, at-time.Since(r.began)), nil
}

// newRelay returns a relay from one device to another.
func newRelay(from, to int, seed uint64) *relay {
	return &relay{from: from, to: to, began: time.Now(), oneWay: newOneWay(Conditions{}, seed)}
}
