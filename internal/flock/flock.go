// Package flock locks files, so that one of several processes works on something at a time.
// A lock ends when its file is closed or its process ends, however it ends.
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

// ErrHeld: another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// poll is how often Wait tries again.
const poll = 50 * time.Millisecond

// Open locks an open file until it is closed. The error wraps ErrHeld where another process,
// or this one through another open file, holds the lock.
func Open(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
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

// Try locks the file at path until the returned file is closed. It makes the file, and the
// folder that holds it. The holder may remove the file: what others had opened before is then
// no lock to them.
func Try(path string) (*os.File, error) {
	for {
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) {
			continue // the folder was made by another and removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue // the folder was removed meanwhile
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
		_ = f.Close() // it was removed meanwhile
	}
}

// Wait is Try that waits until the lock is free or ctx ends. It calls held once, before it
// waits; held may be nil.
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
