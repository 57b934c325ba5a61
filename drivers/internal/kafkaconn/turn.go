package kafkaconn

import (
	"context"
	"sync"
)

// A Turn is a lock with a condition: goroutines wait under it for changes by others.
type Turn struct {
	sync.Mutex
	changed sync.Cond
}

// Changed wakes all waiters. The lock must be held.
func (t *Turn) Changed() { t.changed.Broadcast() }

// Wait waits until ok returns true, or returns ctx's error. The lock must be held, and is held
// while ok runs; other goroutines may hold it in between.
func (t *Turn) Wait(ctx context.Context, ok func() bool) error {
	if ok() {
		return nil
	}
	if t.changed.L == nil {
		t.changed.L = &t.Mutex
	}
	stop := context.AfterFunc(ctx, func() {
		t.Lock()
		defer t.Unlock()
		t.Changed()
	})
	defer stop()
	for !ok() {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.changed.Wait()
	}
	return nil
}
