// Package retry waits between attempts. Use it for whatever a driver tries again: a
// connection that was lost, a question that a cluster cannot answer yet.
package retry

import (
	"context"
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
