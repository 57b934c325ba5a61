package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	batch      = 200     // rows that are written at once
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
	known, err := x.stamps(ctx)
	if err != nil {
		return s, fmt.Errorf("reading the index: %w", err)
	}
	seen := map[string]bool{}
	var rows []Row
	var stamps []string
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		err := x.put(ctx, rows, stamps)
		rows, stamps = rows[:0], stamps[:0]
		if told != nil {
			told(s)
		}
		return err
	}
	looked := 0
	err = x.walk(ctx, ".", 0, &looked, func(f folder) error {
		if s.Runs == mostRuns {
			s.Beyond = true
			return fs.SkipAll
		}
		s.Runs++
		seen[f.dir] = true
		if known[f.dir] == f.stamp {
			return nil
		}
		s.Read++
		x.read++
		rows, stamps = append(rows, readRow(x.root, f)), append(stamps, f.stamp)
		if len(rows) >= batch {
			return flush()
		}
		return nil
	})
	if errors.Is(err, fs.SkipAll) {
		s.Beyond, err = true, nil
	}
	if err == nil {
		err = flush()
	}
	if err == nil {
		s.Gone, err = x.drop(ctx, known, seen)
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

func (x *Index) stamps(ctx context.Context) (map[string]string, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT dir, stamp FROM runs")
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for rows.Next() {
		var dir, stamp string
		if err := rows.Scan(&dir, &stamp); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		known[dir] = stamp
	}
	return known, errors.Join(rows.Err(), rows.Close())
}

// put writes rows.
func (x *Index) put(ctx context.Context, rows []Row, stamps []string) error {
	return x.within(ctx, func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO runs VALUES (?"+strings.Repeat(",?", 22)+")")
		if err != nil {
			return err
		}
		for i, r := range rows {
			words := strings.ToLower(strings.Join([]string{r.Dir, r.Name, r.Scenario, r.Driver, r.Server, r.Guarantee, r.Status, r.SLO}, "\n"))
			p50, p99, p999 := stored(r.P50), stored(r.P99), stored(r.P999)
			_, err := insert.ExecContext(ctx, r.Dir, string(r.Kind), stamps[i], r.Name, r.Scenario, r.Driver, r.Server, r.Guarantee,
				instant(r.Started), instant(r.Touched), r.Status, r.SLO, r.Wrong, r.Rate, r.Received, r.Family,
				p50.least, p50.atLeast, p99.least, p99.atLeast, p999.least, p999.atLeast, words)
			if err != nil {
				return errors.Join(err, insert.Close())
			}
		}
		return insert.Close()
	})
}

// instant is a time in ns since 1970; 0 for one that is not known, or too far off.
func instant(t time.Time) int64 {
	if y := t.Year(); y < 1971 || y > 2200 {
		return 0
	}
	return t.UnixNano()
}

// drop removes what is gone.
func (x *Index) drop(ctx context.Context, known map[string]string, seen map[string]bool) (int, error) {
	var gone []string
	for dir := range known {
		if !seen[dir] {
			gone = append(gone, dir)
		}
	}
	if len(gone) == 0 {
		return 0, nil
	}
	return len(gone), x.within(ctx, func(tx *sql.Tx) error {
		for _, dir := range gone {
			if _, err := tx.ExecContext(ctx, "DELETE FROM runs WHERE dir = ?", dir); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *Index) within(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
