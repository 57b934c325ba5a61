package layout

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// An Outlet is where a verb writes: stdout, or the file of --out.
type Outlet struct {
	Stdout   io.Writer
	Terminal bool                     // Stdout is a terminal
	Text     func(noColor bool) Text  // how to write pages on Stdout
	Path     func(name string) string // resolves a file's name as the user gave it
}

// Check returns an error for a file that cannot be written, before anything is read; nil: stdout.
func (o Outlet) Check(out *string) error {
	const allowed = "a file that does not exist yet, in a folder that does"
	if out == nil {
		return nil
	}
	if *out == "" {
		return errors.New("--out: is empty (" + allowed + ")")
	}
	switch _, err := os.Lstat(o.Path(*out)); {
	case err == nil:
		return fmt.Errorf("--out: %s exists (%s)", *out, allowed)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--out: %w (%s)", err, allowed)
	}
	parent := filepath.Dir(*out)
	if st, err := os.Stat(o.Path(parent)); err != nil || !st.IsDir() {
		return fmt.Errorf("--out: %s is not a folder (%s)", parent, allowed)
	}
	return nil
}

// Deliver writes b to its destination, a file atomically; nil: stdout.
func (o Outlet) Deliver(out *string, b []byte) error {
	if out == nil {
		_, err := o.Stdout.Write(b)
		return err
	}
	return NewFile(o.Path(*out), b)
}

// NewFile atomically writes a file that must not exist.
func NewFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(path) // report the first error
	}
	return err
}

// Show writes a page on stdout.
func (o Outlet) Show(p *Page, noColor bool) error {
	_, err := io.WriteString(o.Stdout, o.Text(noColor).Page(p))
	return err
}

// Answer writes v as JSON on stdout, or the page that show fills.
func (o Outlet) Answer(asJSON bool, v any, noColor bool, show func(*Page)) error {
	if asJSON {
		return JSON(o.Stdout, v)
	}
	p := new(Page)
	show(p)
	return o.Show(p, noColor)
}
