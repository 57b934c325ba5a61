package flock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

func TestLockIsHeldUntilClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "lock")
	f := must.Get(Try(path))(t)
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second one: %v; want ErrHeld", err)
	}
	other, err := os.Open(path) // read access is enough
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for range 2 { // asking takes nothing
		if !Held(path) {
			t.Error("not held")
		}
	}
	if err := Open(other); !errors.Is(err, ErrHeld) {
		t.Errorf("through another file: %v; want ErrHeld", err)
	}
	_ = f.Close()
	if Held(path) {
		t.Error("held after it was closed")
	}
	if err := Open(other); err != nil {
		t.Errorf("after it was closed: %v", err)
	}
}

func TestWaitAnnouncesOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := must.Get(Try(path))(t)
	ctx, cancel := context.WithCancel(t.Context())
	said := 0
	if _, err := Wait(ctx, path, func() { said++; cancel() }); !errors.Is(err, context.Canceled) || said != 1 {
		t.Errorf("said %d times: %v; want once, and context.Canceled", said, err)
	}
	got, err := Wait(t.Context(), path, func() { said++; _ = f.Close() })
	if err != nil || said != 2 {
		t.Fatalf("said %d times in all: %v; want 2", said, err)
	}
	_ = got.Close()
	if _, err = Wait(t.Context(), path, func() { t.Error("it waits for nobody") }); err != nil {
		t.Error(err)
	}
}

// TestRemovedLockIsFree has many goroutines take turns, each of which removes the file and its folder.
func TestRemovedLockIsFree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	path := filepath.Join(dir, "lock")
	var mu sync.Mutex
	var all sync.WaitGroup
	turns := 0
	for range 4 {
		all.Go(func() {
			for range 20 {
				f, err := Wait(t.Context(), path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if !mu.TryLock() {
					t.Error("two hold the lock")
					_ = f.Close()
					return
				}
				turns++
				mu.Unlock() // removing the file releases the lock before it is closed
				_ = os.Remove(path)
				_ = os.Remove(dir)
				_ = f.Close()
			}
		})
	}
	if all.Wait(); turns != 80 && !t.Failed() {
		t.Errorf("%d turns, want 80", turns)
	}
}
