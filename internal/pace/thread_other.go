//go:build !linux

package pace

import "errors"

// A Thread reads the kernel's accounting of one thread; this platform has none.
type Thread struct{}

// WatchThread fails: this platform does not account how long a thread waited for a core.
func WatchThread() (*Thread, error) {
	return nil, errors.New("this platform does not account for threads")
}

// Close does nothing.
func (t *Thread) Close() {}

// Read is never called.
func (t *Thread) Read(*Clock) ThreadTime { return ThreadTime{} }
