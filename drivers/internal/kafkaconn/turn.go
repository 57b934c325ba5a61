package kafkaconn

import (
	"context"
	"sync"
)

// A Turn is a lock under which goroutines wait for what others change.
type Turn struct {
	sync.Mutex
	changed sync.Cond
}

// Changed has those that Wait look again. The lock is held.
func (t *Turn) Changed() { t.changed.Broadcast() }

// Wait returns when ok, or ctx's error. The lock is held, also when ok is asked; while
// nothing has Changed others may have it.
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
