package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// A Query selects the folders of a list. An empty field matches all.
type Query struct {
	Words    string // each must be in the row's texts, ignoring case, or be a condition such as "p99<10ms"
	System   string // the driver
	Scenario string
	Status   string // a verdict, or fail: an objective failed
	Kinds    []Kind // nil: Ended and Unended
	Below    string // only this folder and those below it
	Sort     string // one of Sorts; "": newest first
	From     int    // number of rows to skip
	Most     int    // maximum number of rows; 0: MostListed in a list

	// Grouped lists the runs of a series, a search or a suite as one row; those of Open follow it.
	Grouped bool
	Open    string // the Group of a row
}

// MostListed limits the rows of a list, and mostWords the words of a search.
const (
	MostListed = 10_000
	mostWords  = 12
)

// Sorts returns the names of the sort orders. Rows without the figure come last, after those with only
// a lower bound.
func Sorts() []string {
	return []string{"newest", "oldest", "name", "scenario", "system", "verdict", "lost", "failed", "rate", "delivered", "p50", "p99", "p99.9"}
}

// orders compare rows. Ties are ordered by folder.
var orders = map[string]func(a, b *Row) int{
	"newest": func(a, b *Row) int {
		if c := b.Started.Compare(a.Started); c != 0 {
			return c
		}
		return cmp.Compare(b.Dir, a.Dir)
	},
	"oldest": func(a, b *Row) int { return a.Started.Compare(b.Started) },
	"name": func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Name, b.Name), b.Started.Compare(a.Started))
	},
	"system": func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Server, b.Server), b.Started.Compare(a.Started))
	},
	"scenario":  func(a, b *Row) int { return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), b.Started.Compare(a.Started)) },
	"verdict":   func(a, b *Row) int { return cmp.Or(b.badness()-a.badness(), b.Started.Compare(a.Started)) },
	"lost":      func(a, b *Row) int { return cmp.Or(cmp.Compare(b.Lost, a.Lost), b.Started.Compare(a.Started)) },
	"failed":    func(a, b *Row) int { return cmp.Or(cmp.Compare(b.Failed, a.Failed), b.Started.Compare(a.Started)) },
	"rate":      func(a, b *Row) int { return highest(a.Rate, b.Rate) },
	"delivered": func(a, b *Row) int { return highest(a.Received, b.Received) },
	"p50":       func(a, b *Row) int { return lowest(a.P50, b.P50) },
	"p99":       func(a, b *Row) int { return lowest(a.P99, b.P99) },
	"p99.9":     func(a, b *Row) int { return lowest(a.P999, b.P999) },
}

// badness orders rows by verdict.
func (r *Row) badness() int {
	switch {
	case r.Wrong != "":
		return 5
	case r.Kind != Ended:
		return 0
	case strings.HasPrefix(r.Status, "interrupted"):
		return 3
	case r.Status == string(result.Invalid):
		return 4
	case r.Status == string(result.Suspect):
		return 2
	}
	return 1
}

// highest compares values, descending; unknown ones come last.
func highest(a, b *float64) int {
	if a == nil || b == nil {
		return after(a == nil, b == nil)
	}
	return cmp.Compare(*b, *a)
}

// lowest compares values, ascending; bounds come after them, and unknown values last.
func lowest(a, b *result.Value) int {
	if a == nil || b == nil {
		return after(a == nil, b == nil)
	}
	x, xAtLeast := a.Least()
	y, yAtLeast := b.Least()
	return cmp.Or(after(xAtLeast, yAtLeast), cmp.Compare(x, y))
}

// after sorts true after false.
func after(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// A Listing is the result of a query.
type Listing struct {
	Total int          // matching rows, of which Rows is a part
	Of    map[Kind]int // matching folders
	Rows  []Row
}

// List returns the rows of a query. The error wraps ErrFilter if its words hold a wrong condition.
func (x *Index) List(ctx context.Context, q Query) (Listing, error) {
	found, err := x.find(q)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Of: map[Kind]int{}}
	for _, e := range found {
		l.Of[e.Row.Kind]++
	}
	var rows []*Row
	if q.Grouped {
		rows = grouped(found, q.Open)
	} else {
		for _, e := range found {
			rows = append(rows, &e.Row)
		}
	}
	l.Total = len(rows)
	if q.Most <= 0 || q.Most > MostListed {
		q.Most = MostListed
	}
	rows = rows[min(max(0, q.From), len(rows)):]
	for _, r := range rows[:min(q.Most, len(rows))] {
		l.Rows = append(l.Rows, *r)
	}
	return l, ctx.Err()
}

// A Found is what Runs returns.
type Found struct {
	Runs   []compare.Run // with their records
	Unread []Row         // those that have none: unreadable, or without a result
}

// Runs returns the records of a query's runs, for comparisons and histories: all of them, unless Most says
// otherwise. It reads no folder.
func (x *Index) Runs(ctx context.Context, q Query) (Found, error) {
	found, err := x.find(q)
	if err != nil {
		return Found{}, err
	}
	if q.Most > 0 {
		found = found[:min(q.Most, len(found))]
	}
	var f Found
	for _, e := range found {
		if e.record == nil {
			f.Unread = append(f.Unread, e.Row)
			continue
		}
		f.Runs = append(f.Runs, compare.Run{Dir: e.Row.Dir, Record: e.record})
	}
	return f, ctx.Err()
}

// Run returns the record of the run in a folder. The error wraps ErrUnknown, or says why it cannot be read.
func (x *Index) Run(_ context.Context, dir string) (compare.Run, error) {
	x.mu.RLock()
	e := x.rows[dir]
	x.mu.RUnlock()
	switch {
	case e == nil:
		return compare.Run{}, fmt.Errorf("%s: %w", dir, ErrUnknown)
	case e.record == nil:
		return compare.Run{}, fmt.Errorf("%s: it cannot be read: %s", dir, cmp.Or(e.Row.Wrong, "it has no result"))
	}
	return compare.Run{Dir: dir, Record: e.record}, nil
}

// find returns the entries of a query.
func (x *Index) find(q Query) (found []*entry, err error) {
	order := orders[q.Sort]
	if order == nil {
		order = orders["newest"]
	}
	takes, err := q.takes()
	if err != nil {
		return nil, err
	}
	x.mu.RLock()
	for _, e := range x.rows {
		if takes(e) {
			found = append(found, e)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(found, func(a, b *entry) int {
		if c := order(&a.Row, &b.Row); c != 0 {
			return c
		}
		return cmp.Compare(a.Row.Dir, b.Row.Dir)
	})
	return found, nil
}

// takes returns the condition of a query.
func (q Query) takes() (func(*entry) bool, error) {
	kinds := q.Kinds
	if len(kinds) == 0 {
		kinds = []Kind{Ended, Unended}
	}
	filters, words, err := parse(q.Words)
	if err != nil {
		return nil, err
	}
	return func(e *entry) bool {
		r := &e.Row
		return slices.Contains(kinds, r.Kind) &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.words, w) }) &&
			!slices.ContainsFunc(filters, func(f filter) bool { return !f(r) }) &&
			(q.System == "" || r.Driver == q.System) && (q.Scenario == "" || r.Scenario == q.Scenario) && r.has(q.Status) &&
			(q.Below == "" || q.Below == "." || r.Dir == q.Below || strings.HasPrefix(r.Dir, q.Below+"/"))
	}, nil
}

// has reports whether a row has the verdict that a query names.
func (r *Row) has(status string) bool {
	switch status {
	case "":
		return true
	case "fail":
		return r.SLO == string(result.Fail)
	case "interrupted":
		return strings.HasPrefix(r.Status, "interrupted")
	case "open":
		return r.Kind == Unended
	}
	return r.Status == status
}

// ErrUnknown is returned when the index has no such folder.
var ErrUnknown = errors.New("there is no such run")

// Row returns the row of a folder, or ErrUnknown.
func (x *Index) Row(_ context.Context, dir string) (Row, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.rows[dir]
	if !ok {
		return Row{}, ErrUnknown
	}
	return e.Row, nil
}

// A Choice is a value of rows, and how many rows have it.
type Choice struct {
	Value string
	Runs  int
}

// mostChoices limits the choices in a form.
const mostChoices = 500

// Choices returns the systems and scenarios of the runs, sorted by name.
func (x *Index) Choices(ctx context.Context) (systems, scenarios []Choice, err error) {
	drivers, names := map[string]int{}, map[string]int{}
	x.mu.RLock()
	for _, e := range x.rows {
		if e.Row.Kind.Runs() {
			drivers[e.Row.Driver]++
			names[e.Row.Scenario]++
		}
	}
	x.mu.RUnlock()
	return choices(drivers), choices(names), ctx.Err()
}

func choices(runs map[string]int) (out []Choice) {
	delete(runs, "")
	for _, value := range slices.Sorted(maps.Keys(runs)) {
		out = append(out, Choice{value, runs[value]})
	}
	return out[:min(len(out), mostChoices)]
}

// Path returns the path of a folder in the index, for readers that need one. All its files must be
// inside of the index's folder after following links; otherwise Path returns an error. The error wraps
// ErrUnknown if the index has no such folder.
func (x *Index) Path(ctx context.Context, dir string) (string, error) {
	if _, err := x.Row(ctx, dir); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	f, err := x.root.Open(dir)
	if err != nil {
		return "", fmt.Errorf("opening a run: %w", err)
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("opening a run: %w", err)
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			if _, err := x.root.Stat(path.Join(dir, e.Name())); err != nil {
				return "", fmt.Errorf("opening a run: %w", err)
			}
		}
	}
	return filepath.Join(x.dir, filepath.FromSlash(dir)), nil
}

// File opens a regular file of the run in dir, which need not be in the index. The error wraps
// fs.ErrNotExist if the file does not exist yet. The caller must close it.
func (x *Index) File(dir, name string) (*os.File, error) {
	return userfile.OpenIn(x.root, path.Join(dir, name))
}

// Has reports whether the run in dir has a file.
func (x *Index) Has(dir, name string) bool {
	_, err := x.root.Lstat(path.Join(dir, name))
	return err == nil
}
