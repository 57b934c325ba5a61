package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// deliveredTo is where a text goes: the file of --out, or stdout.
type deliveredTo struct{ out *string }

// check refuses a file that cannot be written before anything is read.
func (d deliveredTo) check(e *env) error {
	const allowed = "a file that does not exist yet, in a folder that does"
	if d.out == nil {
		return nil
	}
	if *d.out == "" {
		return errors.New("--out: is empty (" + allowed + ")")
	}
	switch _, err := os.Lstat(e.path(*d.out)); {
	case err == nil:
		return fmt.Errorf("--out: %s exists already (%s)", *d.out, allowed)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--out: %w (%s)", err, allowed)
	}
	parent := filepath.Dir(*d.out)
	if st, err := os.Stat(e.path(parent)); err != nil || !st.IsDir() {
		return fmt.Errorf("--out: %s is not a folder (%s)", parent, allowed)
	}
	return nil
}

// deliver writes b to where it goes, to a file whole or not at all.
func (d deliveredTo) deliver(e *env, b []byte) error {
	if d.out == nil {
		_, err := e.Stdout.Write(b)
		return err
	}
	path := e.path(*d.out)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(path) // the first error is the one to tell
	}
	return err
}
