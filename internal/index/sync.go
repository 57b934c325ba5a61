package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/result"
)

// Bounds of the search for runs.
const (
	deepest    = 4       // a folder of nights, a night, a suite, a run
	mostRuns   = 100_000 // that are listed
	mostLooked = 400_000 // folders that are looked into
	batch      = 200     // rows that are shown at once
)

// A Synced says what a Sync found.
type Synced struct {
	Runs   int  // folders of runs and searches
	Read   int  // that were read, because they are new or have changed
	Gone   int  // that were listed and are not there any more
	Beyond bool // there are more than the index takes
}

// A folder of a run, as the file system shows it.
type folder struct {
	dir     string
	kind    Kind
	stamp   string
	touched time.Time
}

// Sync brings the index up to what the folders hold. It reads only folders that are new or
// have changed, and waits for a Sync that goes on. told is called after each batch; nil:
// it is not.
func (x *Index) Sync(ctx context.Context, told func(Synced)) (Synced, error) {
	x.sync.Lock()
	defer x.sync.Unlock()
	var s Synced
	seen := map[string]bool{}
	var batched []*entry
	ended := false // a folder was read that will not change soon
	flush := func() {
		if len(batched) == 0 {
			return
		}
		x.put(batched)
		if batched = batched[:0]; told != nil {
			told(s)
		}
	}
	looked := 0
	err := x.walk(ctx, ".", 0, &looked, func(f folder) error {
		if s.Runs == mostRuns {
			s.Beyond = true
			return fs.SkipAll
		}
		s.Runs++
		seen[f.dir] = true
		if x.stamp(f.dir) == f.stamp {
			return nil
		}
		s.Read++
		x.read++
		ended = ended || f.kind != Unended
		if batched = append(batched, entryOf(readRow(x.root, f), f.stamp)); len(batched) == batch {
			flush()
		}
		return nil
	})
	if errors.Is(err, fs.SkipAll) {
		s.Beyond, err = true, nil
	}
	if err == nil {
		flush()
		s.Gone = x.keep(seen)
		if ended || s.Gone > 0 { // a run that goes on changes every second
			err = x.store(ctx)
		}
	}
	if err != nil {
		return s, fmt.Errorf("looking for runs: %w", err)
	}
	return s, nil
}

// walk calls found for each run and search below dir. Links to folders are not followed,
// and neither is a name that begins with a dot.
func (x *Index) walk(ctx context.Context, dir string, depth int, looked *int, found func(folder) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if *looked++; *looked > mostLooked {
		return fs.SkipAll
	}
	f, err := x.root.Open(dir)
	if err != nil {
		return passing(err, depth)
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return passing(err, depth)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if f, ok := x.folderOf(dir, entries); ok {
		if err := found(f); err != nil || f.kind != Capacity { // the runs of a search lie below it
			return err
		}
	}
	if depth == deepest {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			if err := x.walk(ctx, path.Join(dir, e.Name()), depth+1, looked, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// passing lets a folder pass that cannot be read, or went away. Without the first there
// is nothing to list.
func passing(err error, depth int) error {
	if depth == 0 || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

// folderOf says what a folder with these entries is.
func (x *Index) folderOf(dir string, entries []os.DirEntry) (folder, bool) {
	has := map[string]bool{}
	for _, e := range entries {
		if !e.IsDir() {
			has[e.Name()] = true
		}
	}
	f := folder{dir: dir}
	var of string
	switch {
	case has[result.FileResult]:
		f.kind, of = Ended, result.FileResult
	case has[capacity.File]:
		f.kind, of = Capacity, capacity.File
	case has[result.FileIntervals]:
		f.kind, of = Unended, result.FileIntervals
	case has[result.FileEvents], has[result.FileEnvironment]:
		f.kind, of = Unended, result.FileEnvironment
		if !has[of] {
			of = result.FileEvents
		}
	default:
		return f, false
	}
	st, err := x.root.Lstat(path.Join(dir, of))
	if err != nil { // it went away
		return f, false
	}
	f.touched = st.ModTime()
	f.stamp = fmt.Sprint(f.kind, " ", st.Size(), " ", st.ModTime().UnixNano())
	return f, true
}

// stamp is the state in which a folder was read; "" where it was not.
func (x *Index) stamp(dir string) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e := x.rows[dir]; e != nil {
		return e.Stamp
	}
	return ""
}

// put takes rows that were read.
func (x *Index) put(entries []*entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range entries {
		x.rows[e.Row.Dir] = e
	}
}

// keep removes all folders but those that were seen, and returns how many.
func (x *Index) keep(seen map[string]bool) (gone int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := len(x.rows)
	maps.DeleteFunc(x.rows, func(dir string, _ *entry) bool { return !seen[dir] })
	return before - len(x.rows)
}
