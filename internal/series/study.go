package series

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/userfile"
)

// ErrWriting is wrapped by the error of a file of the study that could not be written.
var ErrWriting = errors.New("writing")

// A KeptError says what is wrong with the folder of a study that is to go on.
type KeptError struct{ Err error }

// Error returns the text of the error that it wraps.
func (e *KeptError) Error() string { return e.Err.Error() }

// Unwrap returns what it wraps.
func (e *KeptError) Unwrap() error { return e.Err }

// A folder is what all studies have in common. One goroutine uses it.
type folder struct {
	o       Options // Out is the folder
	resumed bool         // it is there
	err     error        // why the study ended before its end
}

// Dir returns the folder of the study, as it is to be shown.
func (f *folder) Dir() string { return f.o.Out }

// Err says why All ended before its end, where it was not stopped: a file of the study could
// not be written, which wraps ErrWriting, or a run could not be laid out.
func (f *folder) Err() error { return f.err }

// create makes the folder, of that name where Out is empty, with its first file.
func (f *folder) create(name, file string, content []byte) (err error) {
	if f.o.Out, err = f.o.Create(name); err != nil {
		return err
	}
	return f.write(file, content)
}

// write writes a file of the folder: whole, or as it was before.
func (f *folder) write(name string, content []byte) error {
	path := f.o.Path(filepath.Join(f.o.Out, name))
	err := os.WriteFile(path+".new", content, 0o644) //nolint:gosec // G306: a result is for all to read
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrWriting, name, err)
	}
	return nil
}

// document writes v as a JSON file of the folder.
func (f *folder) document(name string, v any) error {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return fmt.Errorf("%w %s: %w", ErrWriting, name, err)
	}
	return f.write(name, b.Bytes())
}

// read reads a file of at most so many bytes from the folder of a study of that kind, below
// root. It returns the bytes, too.
func read[T any](root, dir, name, kind string, most int64, parse func([]byte) (*T, error)) (*T, []byte, error) {
	path := filepath.Join(dir, name)
	b, err := userfile.Read(Options{Dir: root}.Path(path), most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s has no %s (the folder of a %s)", dir, name, kind)
	}
	var v *T
	if err == nil {
		v, err = parse(b)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return v, b, nil
}

// do does the n-th run, in a folder of that name or of one like it, which it returns.
func (f *folder) do(ctx context.Context, stop <-chan struct{}, what *scenario.Scenario, name string, n, of int, percentiles []float64) (*Outcome, string) {
	o := f.o
	name = f.o.Free(f.o.Out, name)
	o.Out, o.Percentiles = filepath.Join(f.o.Out, name), percentiles
	if observe := f.o.Observe; observe != nil {
		o.Observe = func(r Run) Observer {
			if !r.Several {
				r.Number, r.Of = n, of
			}
			return observe(r)
		}
	}
	return o.One(ctx, stop, what), name
}

// over reports whether no further run is to begin.
func over(ctx context.Context, stop <-chan struct{}) bool {
	return latch.Closed(stop) || ctx.Err() != nil
}
