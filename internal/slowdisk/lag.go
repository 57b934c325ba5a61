package slowdisk

import (
	"sync"
	"time"
)

// A lag is how much longer operations take. The zero value is none.
type lag struct {
	mu   sync.Mutex
	by   time.Duration
	over chan struct{} // closed when by changes; nil while it is 0
}

// set changes it. Those that wait go on.
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

// wait returns after the lag, or when it changes. Who waits is not interrupted by a signal: no
// disk is.
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
