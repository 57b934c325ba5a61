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

	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/result"
)

// Limits of the search for runs.
const (
	deepest    = 4       // a folder of nights, a night, a suite, a run
	mostRuns   = 100_000 // that are listed
	mostLooked = 400_000 // folders that are examined
	batch      = 200     // rows published at once
)

// A Synced is the outcome of a Sync.
type Synced struct {
	Runs   int  // folders of runs, searches and suites
	Read   int  // folders read because they are new or changed
	Gone   int  // listed folders that no longer exist
	Beyond bool // there are more folders than the index holds

	Refused []string // folders that may not be read, at most mostRefused
}

// mostRefused limits the names of folders that may not be read.
const mostRefused = 20

// A folder is a run's folder as seen in the file system.
type folder struct {
	dir     string
	kind    Kind
	stamp   string
	touched time.Time
}

// Sync updates the index from the folders. It reads only new or changed folders, and waits for another
// Sync in progress. told is called after each batch; it may be nil.
func (x *Index) Sync(ctx context.Context, report func(Synced)) (Synced, error) {
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
		if batched = batched[:0]; report != nil {
			report(s)
		}
	}
	looked := 0
	refused := func(dir string) {
		if len(s.Refused) < mostRefused {
			s.Refused = append(s.Refused, dir)
		}
	}
	err := x.walk(ctx, ".", 0, &looked, refused, func(f folder) error {
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
		row, rec := readRow(x.root, f)
		if batched = append(batched, entryOf(row, rec, f.stamp)); len(batched) == batch {
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
		if ended || s.Gone > 0 { // a run in progress changes every second
			err = x.store(ctx)
		}
	}
	if err != nil {
		return s, fmt.Errorf("looking for runs: %w", err)
	}
	return s, nil
}

// walk calls found for each run, search and suite below dir, and refused for each folder that may not be read. It skips
// links to folders and names that begin with a dot.
func (x *Index) walk(ctx context.Context, dir string, depth int, looked *int, refused func(string), found func(folder) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if *looked++; *looked > mostLooked {
		return fs.SkipAll
	}
	f, err := x.root.Open(dir)
	if err != nil {
		if depth > 0 && errors.Is(err, fs.ErrPermission) {
			refused(dir)
		}
		return passing(err, depth)
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return passing(err, depth)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if f, ok := x.folderOf(dir, entries); ok {
		if err := found(f); err != nil || f.kind.Runs() {
			return err
		}
	}
	if depth == deepest {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			if err := x.walk(ctx, path.Join(dir, e.Name()), depth+1, looked, refused, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// passing ignores a folder that is unreadable or has disappeared, unless it is the top one.
func passing(err error, depth int) error {
	if depth == 0 || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

// folderOf classifies a folder by its entries.
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
	case has[suite.FileReport]:
		f.kind, of = Suite, suite.FileReport
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
	if err != nil { // it has disappeared
		return f, false
	}
	f.touched = st.ModTime()
	f.stamp = fmt.Sprint(f.kind, " ", st.Size(), " ", st.ModTime().UnixNano())
	return f, true
}

// stamp returns the state of a folder when it was read; "" if it was not.
func (x *Index) stamp(dir string) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e := x.rows[dir]; e != nil {
		return e.Stamp
	}
	return ""
}

// put stores rows.
func (x *Index) put(entries []*entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range entries {
		x.rows[e.Row.Dir] = e
	}
	x.news += uint64(len(entries))
}

// keep removes all folders except the seen ones, and returns how many.
func (x *Index) keep(seen map[string]bool) (gone int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := len(x.rows)
	maps.DeleteFunc(x.rows, func(dir string, _ *entry) bool { return !seen[dir] })
	gone = before - len(x.rows)
	x.news += uint64(gone)
	return gone
}
