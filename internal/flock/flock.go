// Package flock locks files between processes. A lock ends when its file is closed or its process
// ends, however it ends.
package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrHeld is returned when another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// poll is how often Wait retries.
const poll = 50 * time.Millisecond

// Open locks an open file until it is closed. The error wraps ErrHeld if another process, or this one
// through another open file, holds the lock.
func Open(f *os.File) error { return lock(f, syscall.LOCK_EX) }

// Held reports whether a process holds the lock of the file at path. It creates nothing, and several may ask at once.
func Held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(lock(f, syscall.LOCK_SH), ErrHeld)
}

func lock(f *os.File, how int) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("%s: %w", f.Name(), ErrHeld)
		default:
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
	}
}

// Try locks the file at path until the returned file is closed. It creates the file and its folder if
// necessary. The holder may remove the file: then it is no longer a lock for those who opened it
// before.
func Try(path string) (*os.File, error) {
	for {
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) {
			continue // another process created and removed the folder
		}
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue // the folder has been removed
		}
		if err != nil {
			return nil, err
		}
		if err := Open(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(path); err == nil {
			if own, err := f.Stat(); err == nil && os.SameFile(there, own) {
				return f, nil
			}
		}
		_ = f.Close() // the file has been removed
	}
}

// Wait is like Try but waits until the lock is free or ctx ends. Before waiting it calls held once,
// unless held is nil.
func Wait(ctx context.Context, path string, held func()) (*os.File, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		f, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return f, err
		}
		if held != nil {
			held()
			held = nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		}
	}
}
