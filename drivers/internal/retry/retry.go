// Package retry waits between attempts. Use it for whatever a driver tries again: a
// connection that was lost, a question that a cluster cannot answer yet, a lease that must
// be renewed.
package retry

import (
	"context"
	"sync"
	"time"
)

// Pause waits for d, and reports whether ctx has not ended meanwhile.
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

// While calls try again and again, with pauses of d, as long as its error passes. It
// returns the last error; nil once try succeeds. The end of ctx ends it after the
// attempt under way.
func While(ctx context.Context, d time.Duration, passes func(error) bool, try func() error) error {
	for {
		err := try()
		if err == nil || !passes(err) || !Pause(ctx, d) {
			return err
		}
	}
}

// Every calls f each d, until stop is called, which waits for a call under way. With a d
// of 0 it never calls f. Use it to renew what a consumer holds while it works.
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
