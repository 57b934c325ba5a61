package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// A Query says which folders a list is of. An empty field takes all.
type Query struct {
	Words    string // each word stands in the row's texts, in whatever case
	System   string // the driver
	Scenario string
	Status   string // a verdict, or fail: an objective failed
	Kinds    []Kind // nil: Ended and Unended
	Below    string // a folder: it and those below it
	Sort     string // one of Sorts; "": newest first
	From     int    // rows that are left out before the first
	Most     int    // rows; 0: MostListed
}

// MostListed bounds the rows of a list, and mostWords the words of a search.
const (
	MostListed = 10_000
	mostWords  = 12
)

// Sorts are the orders of a list, by their names. Rows that lack the figure come last, after
// those of which only a lower bound is known.
func Sorts() []string {
	return []string{"newest", "oldest", "name", "system", "rate", "p50", "p99", "p99.9"}
}

var orders = map[string]string{
	"":       "started DESC, dir DESC",
	"newest": "started DESC, dir DESC",
	"oldest": "started, dir",
	"name":   "scenario, name, started DESC, dir",
	"system": "driver, server, started DESC, dir",
	"rate":   "rate IS NULL, rate DESC, dir",
	"p50":    "p50 IS NULL, p50_at_least, p50, dir",
	"p99":    "p99 IS NULL, p99_at_least, p99, dir",
	"p99.9":  "p999 IS NULL, p999_at_least, p999, dir",
}

// A Listing is what a query found.
type Listing struct {
	Total int // rows that the query takes; Rows are some of them
	Rows  []Row
}

const columns = "dir, kind, name, scenario, driver, server, guarantee, started, touched, status, slo, wrong, rate, received, family, p50, p50_at_least, p99, p99_at_least, p999, p999_at_least"

// List returns the rows of a query.
func (x *Index) List(ctx context.Context, q Query) (Listing, error) {
	where, args := q.where()
	var l Listing
	if err := x.db.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE "+where, args...).Scan(&l.Total); err != nil {
		return l, fmt.Errorf("listing runs: %w", err)
	}
	order, ok := orders[q.Sort]
	if !ok {
		order = orders[""]
	}
	most := q.Most
	if most <= 0 || most > MostListed {
		most = MostListed
	}
	rows, err := x.db.QueryContext(ctx, "SELECT "+columns+" FROM runs WHERE "+where+" ORDER BY "+order+" LIMIT ? OFFSET ?", append(args, most, max(0, q.From))...)
	if err != nil {
		return l, fmt.Errorf("listing runs: %w", err)
	}
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return l, errors.Join(fmt.Errorf("listing runs: %w", err), rows.Close())
		}
		l.Rows = append(l.Rows, r)
	}
	return l, errors.Join(rows.Err(), rows.Close())
}

// where is the condition of a query.
func (q Query) where() (string, []any) {
	var parts []string
	var args []any
	add := func(part string, values ...any) { parts, args = append(parts, part), append(args, values...) }
	kinds := q.Kinds
	if len(kinds) == 0 {
		kinds = []Kind{Ended, Unended}
	}
	marks := make([]string, len(kinds))
	for i, k := range kinds {
		marks[i], args = "?", append(args, string(k))
	}
	parts = append(parts, "kind IN ("+strings.Join(marks, ",")+")")
	words := strings.Fields(strings.ToLower(q.Words))
	for _, w := range words[:min(len(words), mostWords)] {
		add("instr(words, ?) > 0", w)
	}
	if q.System != "" {
		add("driver = ?", q.System)
	}
	if q.Scenario != "" {
		add("scenario = ?", q.Scenario)
	}
	switch q.Status {
	case "":
	case "fail":
		add("slo = 'fail'")
	case "interrupted":
		add("status LIKE 'interrupted%'")
	case "open":
		add("kind = ?", string(Unended))
	default:
		add("status = ?", q.Status)
	}
	if q.Below != "" && q.Below != "." {
		add("(dir = ? OR substr(dir, 1, length(?)) = ?)", q.Below, q.Below+"/", q.Below+"/")
	}
	return strings.Join(parts, " AND "), args
}

// scan reads a row.
func scan(rows interface{ Scan(...any) error }) (Row, error) {
	var r Row
	var started, touched int64
	var p50, p99, p999 storedValue
	err := rows.Scan(&r.Dir, &r.Kind, &r.Name, &r.Scenario, &r.Driver, &r.Server, &r.Guarantee, &started, &touched, &r.Status, &r.SLO, &r.Wrong,
		&r.Rate, &r.Received, &r.Family, &p50.least, &p50.atLeast, &p99.least, &p99.atLeast, &p999.least, &p999.atLeast)
	r.P50, r.P99, r.P999 = p50.value(), p99.value(), p999.value()
	for _, t := range []struct {
		ns int64
		to *time.Time
	}{{started, &r.Started}, {touched, &r.Touched}} {
		if t.ns != 0 {
			*t.to = time.Unix(0, t.ns).UTC()
		}
	}
	return r, err
}

// A storedValue is a value as its two columns have it.
type storedValue struct {
	least   *float64
	atLeast bool
}

func stored(v *result.Value) (s storedValue) {
	if v != nil {
		least, atLeast := v.Least()
		s = storedValue{&least, atLeast}
	}
	return s
}

func (s storedValue) value() *result.Value {
	if s.least == nil {
		return nil
	}
	return new(result.Bound(*s.least, s.atLeast))
}

// ErrUnknown is wrapped where the index has no such folder.
var ErrUnknown = errors.New("there is no such run")

// Row returns that of one folder, or ErrUnknown.
func (x *Index) Row(ctx context.Context, dir string) (Row, error) {
	r, err := scan(x.db.QueryRowContext(ctx, "SELECT "+columns+" FROM runs WHERE dir = ?", dir))
	if errors.Is(err, sql.ErrNoRows) {
		return r, ErrUnknown
	}
	return r, err
}

// A Choice is a value that rows have, and how many have it.
type Choice struct {
	Value string
	Runs  int
}

// mostChoices bounds what a form offers.
const mostChoices = 500

// Choices are the systems and scenarios of the runs, in the order of their names.
func (x *Index) Choices(ctx context.Context) (systems, scenarios []Choice, err error) {
	for _, c := range []struct {
		column string
		to     *[]Choice
	}{{"driver", &systems}, {"scenario", &scenarios}} {
		if *c.to, err = x.choices(ctx, c.column); err != nil {
			return nil, nil, fmt.Errorf("listing what runs have: %w", err)
		}
	}
	return systems, scenarios, nil
}

func (x *Index) choices(ctx context.Context, column string) ([]Choice, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT "+column+", count(*) FROM runs WHERE kind <> ? AND "+column+" <> '' GROUP BY 1 ORDER BY 1 LIMIT ?", string(Capacity), mostChoices)
	if err != nil {
		return nil, err
	}
	var out []Choice
	for rows.Next() {
		var c Choice
		if err := rows.Scan(&c.Value, &c.Runs); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		out = append(out, c)
	}
	return out, errors.Join(rows.Err(), rows.Close())
}

// Path returns the path of a folder that the index has, for readers that want one. Each of
// its files lies below the folder of the index, wherever links lead; a folder with another
// is refused. The error wraps ErrUnknown where the index has no such folder.
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

// File opens a regular file of the run in dir, wherever the index is with it. The error
// wraps fs.ErrNotExist where it is not there yet. The caller closes it.
func (x *Index) File(dir, name string) (*os.File, error) {
	return userfile.OpenIn(x.root, path.Join(dir, name))
}

// Has reports whether the run in dir has a file.
func (x *Index) Has(dir, name string) bool {
	_, err := x.root.Lstat(path.Join(dir, name))
	return err == nil
}
