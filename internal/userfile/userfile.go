// Package userfile reads files at paths that a user gave.
//
// Such a path may name anything: a pipe without a writer, a device that never ends, a file of many
// gigabytes. All such files must be read through this package: it accepts regular files only, reads no more
// than the caller allows, and never waits for another process. JSON parses documents that weir wrote.
package userfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Errors of a path that names a file which is not read.
var (
	// ErrNotRegular says that the path names a folder, a pipe, a device or a socket.
	ErrNotRegular = errors.New("is not a regular file")
	// ErrTooLong says that the file is longer than the caller allows.
	ErrTooLong = errors.New("is too long")
)

// readLimit bounds the wait for files that claim to be regular but block their readers, as some below /proc
// do.
const readLimit = 10 * time.Second

// Open opens a regular file for reading, following links. It does not block, not even on a pipe without a
// writer. Anything that is not a regular file is ErrNotRegular. The caller closes the file.
func Open(path string) (*os.File, error) {
	// Without O_NONBLOCK the opening of a pipe waits for a writer.
	f, err := os.OpenFile(path, unblocking, 0)
	return regular(f, path, err)
}

// OpenIn opens a regular file below root as Open does. A link that leads out of root is
// refused.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, unblocking, 0)
	return regular(f, path, err)
}

// unblocking opens without waiting, and without acquiring a controlling terminal.
const unblocking = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// regular returns an opened file if it is a regular one, else an error.
func regular(f *os.File, path string, err error) (*os.File, error) {
	if err != nil {
		if errors.Is(err, syscall.ENXIO) { // a socket
			err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
		}
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// A file that does not support deadlines does not need one.
	if err := f.SetReadDeadline(time.Now().Add(readLimit)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns the content of a regular file of at most that many bytes. A longer one is ErrTooLong, and at
// most most+1 bytes of it are read. Anything but a regular file is ErrNotRegular.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	return whole(f, path, most, err)
}

// ReadIn is Read for a file below root.
func ReadIn(root *os.Root, path string, most int64) ([]byte, error) {
	f, err := OpenIn(root, path)
	return whole(f, path, most, err)
}

func whole(f *os.File, path string, most int64, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w (at most %s)", ErrTooLong, size(most))}
	}
	return b, nil
}

// size writes a number of bytes as a person would.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
