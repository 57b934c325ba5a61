package slowdisk

import (
	"sync"
	"time"
)

// A lag is the added delay of operations. The zero value is no delay.
type lag struct {
	mu   sync.Mutex
	by   time.Duration
	over chan struct{} // closed when by changes; nil while it is 0
}

// set changes the delay and releases those that are waiting.
func (l *lag) set(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		close(l.over)
		l.over = nil
	}
	if l.by = by; by > 0 {
		l.over = make(chan struct{})
	}
}

// wait returns after the delay, or when it changes. Like on a disk, signals do not interrupt it.
func (l *lag) wait() {
	l.mu.Lock()
	by, over := l.by, l.over
	l.mu.Unlock()
	if by == 0 {
		return
	}
	t := time.NewTimer(by)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	}
}
