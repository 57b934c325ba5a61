// Package retry waits between attempts. Use it for whatever a driver repeats: connecting, a request
// that a cluster cannot answer yet, renewing a lease.
package retry

import (
	"context"
	"sync"
	"time"
)

// Pause waits for d, and returns false if ctx ended meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// While calls try repeatedly, with pauses of d, as long as its error passes. It returns the last
// error; nil once try succeeds. When ctx ends, it stops after the current attempt.
func While(ctx context.Context, d time.Duration, passes func(error) bool, try func() error) error {
	for {
		err := try()
		if err == nil || !passes(err) || !Pause(ctx, d) {
			return err
		}
	}
}

// Every calls f every d until stop is called, which waits for a call in progress. If d is 0, it
// never calls f. Use it to renew a consumer's lease while it works.
func Every(d time.Duration, f func()) (stop func()) {
	if d <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var calling sync.WaitGroup
	calling.Go(func() {
		for Pause(ctx, d) {
			f()
		}
	})
	return func() { cancel(); calling.Wait() }
}
