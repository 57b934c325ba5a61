//go:build !linux

package pace

import "errors"

// A Thread reads what the kernel accounts to one thread. Here there is none.
type Thread struct{}

// WatchThread fails: this platform keeps no account of how long a thread waited for
// a core.
func WatchThread() (*Thread, error) {
	return nil, errors.New("this platform does not account for threads")
}

// Close does nothing.
func (t *Thread) Close() {}

// Read is never called.
func (t *Thread) Read(*Clock) ThreadTime { return ThreadTime{} }
