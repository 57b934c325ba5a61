package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/measure"
)

// Bounds of the other files that are read whole.
const maxEnvironment = 16 << 20 // bytes

// Saved is a result folder that was opened.
type Saved struct {
	Dir    string
	Result *Result  // nil after Open
	Files  []string // names, sorted; the files only
}

// Open lists a result folder's files without reading any, including that of a run that was killed
// or is still running, and has no result.json. Any other folder is ErrNotResult.
func Open(dir string) (*Saved, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("read result folder: %w", err)
	}
	if !st.IsDir() {
		return nil, &FileError{Path: dir, Err: fmt.Errorf("%w: it is not a folder", ErrNotResult)}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read result folder: %w", err)
	}
	s := &Saved{Dir: dir}
	for _, e := range entries {
		if !e.IsDir() {
			s.Files = append(s.Files, e.Name())
		}
	}
	if !slices.ContainsFunc(s.Files, func(name string) bool {
		return slices.Contains([]string{FileResult, FileIntervals, FileEnvironment, FileEvents}, name)
	}) {
		return nil, &FileError{Path: dir, Err: fmt.Errorf("%w: it has no %s: %w", ErrNotResult, FileResult, fs.ErrNotExist)}
	}
	return s, nil
}

// Read opens a result folder and reads its result.json. It ignores unknown fields. The error is a
// *FileError, or one of the operating system: a newer version is ErrNewer, a truncated file
// ErrTorn, a folder without a result.json ErrNotResult and fs.ErrNotExist.
func Read(dir string) (*Saved, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.Files, FileResult) {
		return nil, &FileError{Path: dir, Err: fmt.Errorf(
			"%w: it has no %s, which is written when a run ends (it was killed, or is still running): %w", ErrNotResult, FileResult, fs.ErrNotExist)}
	}
	path := filepath.Join(dir, FileResult)
	b, err := readWhole(path, maxDocument)
	if err != nil {
		return nil, err
	}
	if s.Result, err = Unmarshal(b); err != nil {
		return nil, in(path, err)
	}
	return s, nil
}

// Unmarshal parses the text of a result.json. The error is a *FileError without a path. It takes at
// most some hundred times the memory of b.
func Unmarshal(b []byte) (*Result, error) {
	r := new(Result)
	if err := decodeJSON(b, Schema, r); err != nil {
		return nil, err
	}
	return r, nil
}

// UnmarshalEnvironment parses the text of an environment.json. The error is a *FileError without a
// path.
func UnmarshalEnvironment(b []byte) (*Environment, error) {
	e := new(Environment)
	if err := decodeJSON(b, SchemaEnvironment, e); err != nil {
		return nil, err
	}
	return e, nil
}

// Environment reads the folder's environment.json.
func (s *Saved) Environment() (*Environment, error) {
	path := filepath.Join(s.Dir, FileEnvironment)
	b, err := readWhole(path, maxEnvironment)
	if err != nil {
		return nil, err
	}
	e, err := UnmarshalEnvironment(b)
	return e, in(path, err)
}

// Events reads the folder's events.jsonl as the function Events does.
func (s *Saved) Events() iter.Seq2[Event, error] { return within(s.Dir, FileEvents, Events) }

// Samples reads the folder's host.jsonl as the function Samples does. The error is fs.ErrNotExist
// if there is none: the host does not report samples, or an older weir wrote the folder.
func (s *Saved) Samples() iter.Seq2[host.Sample, error] { return within(s.Dir, FileHost, Samples) }

// within reads a log of a folder.
func within[T any](dir, name string, read func(io.Reader) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		path := filepath.Join(dir, name)
		f, err := openFile(path)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		defer func() { _ = f.Close() }()
		for e, err := range read(f) {
			if !yield(e, in(path, err)) {
				return
			}
		}
	}
}

// Totals sums the folder's intervals.hlog as the function Totals does.
func (s *Saved) Totals() (map[string]*measure.Counts, error) {
	path := filepath.Join(s.Dir, FileIntervals)
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	sums, err := Totals(f)
	return sums, in(path, err)
}

// openFile opens a regular file.
func openFile(path string) (*os.File, error) {
	f, err := userfile.Open(path)
	switch {
	case errors.Is(err, userfile.ErrNotRegular):
		return nil, &FileError{Path: path, Err: fmt.Errorf("%w: it is not a regular file", ErrNotResult)}
	case err != nil:
		return nil, fmt.Errorf("read result folder: %w", err)
	}
	return f, nil
}

// readWhole reads a file of at most that many bytes.
func readWhole(path string, most int64) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read result folder: %w", err)
	case int64(len(b)) > most:
		return nil, &FileError{Path: path, Err: fmt.Errorf("%w: it is longer than %d MiB", ErrNotResult, most>>20)}
	case len(b) == 0:
		return nil, &FileError{Path: path, Err: fmt.Errorf("%w: it is empty", ErrTorn)}
	}
	return b, nil
}
