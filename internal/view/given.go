package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/result"
)

// A Place is the folder that users' relative paths start from; "": the process's working directory. Errors
// and pages use the names as the user gave them.
type Place string

// Path makes a path of the user's absolute.
func (at Place) Path(p string) string {
	if filepath.IsAbs(p) || at == "" {
		return p
	}
	return filepath.Join(string(at), p)
}

// A spot is a result folder: its path, and the name to show.
type spot struct{ path, name string }

// find returns the result folders that a name stands for.
func (at Place) find(given string) ([]spot, error) {
	dir := filepath.Clean(at.Path(given))
	found, err := result.Find(at.Path(given))
	out := make([]spot, len(found))
	for i, f := range found {
		out[i] = spot{filepath.Clean(f), filepath.Clean(given)}
		if below, err := filepath.Rel(dir, f); err == nil {
			out[i].name = filepath.Join(given, below)
		}
	}
	return out, err
}

// An Unread is a folder that could not be read, and what is left of its run.
type Unread struct {
	Err     error
	Remains []string
}

// Read reads the runs of folders, each once. lacks reports missing files, and unreadable runs of a planned
// series of which others can be read.
func (at Place) Read(dirs []string, how Loading) (entries []Entry, lacks []string, bad []Unread) {
	seen := map[string]bool{}
	for _, given := range dirs {
		if given == "" {
			bad = append(bad, Unread{Err: errors.New("the name of a folder is empty (leave it out)")})
			continue
		}
		if strings.Contains(given, "://") {
			// Not shown: it may hold a password.
			bad = append(bad, Unread{Err: errors.New("an argument is a URL, not a folder (a folder that weir run wrote)")})
			continue
		}
		found, err := at.find(given)
		if err != nil {
			bad = append(bad, Unread{Err: err})
			continue
		}
		how.Totals = how.Drawn && len(dirs) == 1 && len(found) == 1 // a page of many runs has no room for finer curves
		for _, f := range found {
			if seen[f.path] {
				continue
			}
			seen[f.path] = true
			entry, missing, err := Load(f.path, f.name, how)
			if err != nil {
				switch planned, again := ofPlan(f.path, err); {
				case !planned:
					bad = append(bad, Unread{err, Remains(f.path)})
				case !again:
					lacks = append(lacks, "not shown: "+err.Error())
				}
				continue
			}
			if len(missing) > 0 {
				lacks = append(lacks, fmt.Sprintf("%s lacks %s; shown is what result.json holds", f.name, strings.Join(missing, ", ")))
			}
			entries = append(entries, entry)
		}
	}
	return entries, lacks, bad
}

// Side reads the runs of all folders that an argument names, and joins all errors.
func (at Place) Side(given string, l result.Loading) (compare.Side, error) {
	side := compare.Side{Given: given}
	dirs, err := at.folders(given)
	errs := []error{err}
	for _, dir := range dirs {
		found, err := at.find(dir)
		errs = append(errs, err)
		for _, f := range found {
			entry, missing, err := result.Load(f.path, f.name, l)
			if err != nil {
				if _, again := ofPlan(f.path, err); !again {
					errs = append(errs, err)
				}
				continue
			}
			side.Runs = append(side.Runs, compare.RunOf(entry, missing))
		}
	}
	return side, errors.Join(errs...)
}

// History returns the runs of all folders that an argument names, with their records, from indexes of these
// folders, and joins all errors. file returns the file of a folder's index; "" keeps it in memory.
func (at Place) History(ctx context.Context, given string, file func(dir string) string) (runs []compare.Run, err error) {
	dirs, err := at.folders(given)
	errs := []error{err}
	for _, dir := range dirs {
		if _, err := os.Stat(at.Path(dir)); err != nil {
			_, err := at.find(dir)
			errs = append(errs, err)
			continue
		}
		kept := ""
		if _, err := os.Stat(filepath.Join(at.Path(dir), result.FileResult)); err != nil { // one run needs no file
			kept = file(at.Path(dir))
		}
		found, err := at.indexed(ctx, dir, kept)
		runs, errs = append(runs, found...), append(errs, err)
	}
	return runs, errors.Join(errs...)
}

// indexed returns the runs below one folder.
func (at Place) indexed(ctx context.Context, dir, file string) (runs []compare.Run, err error) {
	x, err := index.Open(ctx, at.Path(dir), file)
	if err != nil && file != "" { // the file is only a cache
		x, err = index.Open(ctx, at.Path(dir), "")
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	so, err := x.Sync(ctx, nil)
	if err != nil {
		return nil, err
	}
	found, err := x.Runs(ctx, index.Query{Sort: "oldest"})
	if err != nil {
		return nil, err
	}
	if so.Beyond {
		return nil, fmt.Errorf("%s holds more runs than an index does, %d (name some of them)", dir, so.Runs)
	}
	if so.Runs == 0 {
		_, err := at.find(dir) // says what is allowed
		return nil, err
	}
	var errs []error
	for _, r := range found.Runs {
		r.Dir = filepath.Join(dir, filepath.FromSlash(r.Dir))
		runs = append(runs, r)
	}
	for _, r := range found.Unread {
		name := filepath.Join(dir, filepath.FromSlash(r.Dir))
		_, _, err := result.Load(at.Path(name), name, result.Loading{})
		if err == nil {
			err = fmt.Errorf("%s: %s", name, r.Wrong)
		}
		if _, again := ofPlan(at.Path(name), err); !again {
			errs = append(errs, err)
		}
	}
	return runs, errors.Join(errs...)
}

// folders returns the folders of a side, by the names the user gave. A name with a comma or an asterisk is
// that folder if it exists.
func (at Place) folders(given string) ([]string, error) {
	const allowed = "a folder of a run or of several, such folders with commas between them, or a pattern"
	if strings.Contains(given, "://") {
		return nil, fmt.Errorf("an argument is a URL, not a folder (%s)", allowed) // not shown: it may hold a password
	}
	var out []string
	pieces := []string{given}
	if _, err := os.Lstat(at.Path(given)); err != nil {
		pieces = strings.Split(given, ",")
	}
	for _, p := range pieces {
		if p = strings.TrimSpace(p); p == "" {
			return nil, fmt.Errorf("%q: the name of a folder is empty (%s)", given, allowed)
		}
		if _, err := os.Lstat(at.Path(p)); err == nil || !strings.ContainsAny(p, "*?[") {
			out = append(out, p) // the reader reports it if it does not exist
			continue
		}
		found, err := filepath.Glob(at.Path(p))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: is not a pattern (%s)", p, allowed)
		case len(found) == 0:
			return nil, fmt.Errorf("%s: there is no such file or folder (%s)", p, allowed)
		}
		for _, f := range found {
			if !filepath.IsAbs(p) && at != "" {
				if rel, err := filepath.Rel(string(at), f); err == nil {
					f = rel
				}
			}
			out = append(out, f)
		}
	}
	return out, nil
}
