package series

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/weirmq/weir/internal/flock"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// ErrWriting is wrapped by errors in writing a file of the series.
var ErrWriting = errors.New("writing")

// A KeptError says why a search or suite cannot be resumed from its folder.
type KeptError struct{ Err error }

// Error returns the text of the wrapped error.
func (e *KeptError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *KeptError) Unwrap() error { return e.Err }

// tidy removes folders in which no run left anything.
func (s *Series) tidy() {
	if s.fresh {
		dir := s.o.Path(s.parent)
		planned := []string{result.FileSeries, result.FileScenario, capacity.File} // written before the first run
		files, err := os.ReadDir(dir)
		if err == nil && !slices.ContainsFunc(files, func(f os.DirEntry) bool { return !slices.Contains(planned, f.Name()) }) {
			for _, f := range files {
				_ = os.Remove(filepath.Join(dir, f.Name()))
			}
			_ = os.Remove(dir)
		}
	}
	if s.made {
		_ = os.Remove(s.o.Path(results))
	}
}

// Path makes a path of the caller's absolute.
func (o Options) Path(p string) string {
	if filepath.IsAbs(p) || o.Dir == "" {
		return p
	}
	return filepath.Join(o.Dir, p)
}

// results is the parent of folders without a name of their own.
const results = "results"

// mostSuffix is how many runs of one name within one second get a folder each.
const mostSuffix = 99

// makeFolder makes the common folder of several runs.
func (s *Series) makeFolder(name string) error {
	dir, folder, err := s.create(name)
	if err != nil {
		return err
	}
	s.parent, s.folder, s.fresh = dir, folder, true
	return nil
}

// reopen opens the folder of a resumed series.
func (s *Series) reopen(dir string) { s.parent, s.folder = dir, result.Reopen(s.o.Path(dir)) }

// create makes a folder: the requested one, which must not exist, or results/<time>-name, or if that exists
// results/<time>-name-2, -3 and so on.
func (s *Series) create(name string) (dir string, folder *result.Folder, err error) {
	if dir = s.o.Out; dir != "" {
		if folder, err = result.Create(s.o.Path(dir)); err != nil {
			err = &FolderError{err}
		}
		return dir, folder, err
	}
	if _, err := os.Stat(s.o.Path(results)); errors.Is(err, fs.ErrNotExist) {
		s.made = true
	}
	name = s.started.Format("20060102T150405Z") + "-" + name
	for n := 1; n <= mostSuffix; n++ {
		dir = filepath.Join(results, name)
		if n > 1 {
			dir += fmt.Sprintf("-%d", n)
		}
		if folder, err = result.Create(s.o.Path(dir)); !errors.Is(err, result.ErrExists) {
			break
		}
	}
	if err != nil {
		err = &FolderError{err}
	}
	return dir, folder, err
}

// claim locks the series' folder until Close, since two programs that execute its runs would disturb each
// other. A folder without a plan is not locked.
func (s *Series) claim() error {
	f, err := userfile.Open(filepath.Join(s.o.Path(s.parent), result.FileSeries))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		if err = flock.Open(f); err == nil {
			s.lock = f
			return nil
		}
		_ = f.Close()
	}
	if errors.Is(err, flock.ErrHeld) {
		return &FolderError{fmt.Errorf("%s: another weir does its runs now (wait for its end)", s.parent)}
	}
	return &FolderError{fmt.Errorf("claiming %s: %w", s.parent, err)}
}

// free returns an unused name for a run's folder. The folder of an interrupted run stays: the run is
// repeated in one with a number appended.
func (s *Series) free(name string) string {
	found := name
	for i := 2; i <= mostSuffix; i++ {
		if _, err := os.Lstat(s.o.Path(filepath.Join(s.parent, found))); errors.Is(err, fs.ErrNotExist) {
			break
		}
		found = name + "-" + strconv.Itoa(i)
	}
	return found
}

// write atomically writes a file of the common folder.
func (s *Series) write(name string, content []byte) error {
	path := s.o.Path(filepath.Join(s.parent, name))
	err := os.WriteFile(path+".new", content, 0o644) //nolint:gosec // G306: a result is for all to read
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrWriting, name, err)
	}
	return nil
}

// document writes v as a JSON file of the common folder.
func (s *Series) document(name string, v any) error {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return fmt.Errorf("%w %s: %w", ErrWriting, name, err)
	}
	return s.write(name, b.Bytes())
}

// read reads and parses a file of at most that many bytes from the folder of a series, relative to root. It
// also returns the bytes.
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
