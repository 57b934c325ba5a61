package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view"
)

// Limits on what one page reads.
const (
	mostCompared = 400 // runs of all sides
	mostOverlaid = 24  // runs
)

// The defaults of weir compare.
const (
	alpha  = 0.05
	band   = 0.05
	latest = 10
)

// compared is the page that compares a with b, each a run or a folder of runs.
func (s *Server) compared(r *http.Request) (answer, error) {
	v := named(r.URL.Query())
	var sides []compare.Side
	for _, name := range []string{"a", "b"} {
		dirs, err := s.chosen(r.Context(), v[name], mostCompared)
		if err != nil {
			return answer{}, err
		}
		if len(dirs) == 0 {
			return answer{}, refuse(http.StatusBadRequest, "side %s has no run (mark runs with A and B in the list, four or more each)", strings.ToUpper(name))
		}
		sides = append(sides, compare.Side{Given: given(v[name]), Runs: make([]compare.Run, len(dirs))})
		for i, dir := range dirs {
			sides[len(sides)-1].Runs[i].Dir = dir
		}
	}
	done, err := s.turn(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer done()
	b, err := s.comparison(r.Context(), sides, v.Get("different") != "", view.Parting{Link: s.runAt(r.Context())})
	switch {
	case errors.Is(err, compare.ErrDifferent):
		v.Set("different", "1")
		return s.frame(frame{Title: "Not compared", Errors: lines(err), More: "/compare?" + v.Encode(), MoreText: "Compare them all the same"})
	case errors.Is(err, compare.ErrTooFew), errors.Is(err, compare.ErrSameRun):
		return s.frame(frame{Title: "Not compared", Errors: lines(err)})
	case err != nil:
		return answer{}, err
	}
	return s.within(b, "/")
}

// comparison reads the runs of the sides, and returns the page of weir compare. The error wraps those of
// compare.Compare.
func (s *Server) comparison(ctx context.Context, sides []compare.Side, different bool, parting view.Parting) ([]byte, error) {
	if err := s.fill(ctx, sides); err != nil {
		return nil, err
	}
	found, err := compare.Compare(sides, compare.Options{Alpha: alpha, Band: band, AllowDifferent: different, Recorded: true})
	if err != nil {
		return nil, err
	}
	found.Weir = s.o.Weir
	for _, side := range sides {
		parting.Given = append(parting.Given, side.Given)
	}
	parting.Course = func(dir string) *view.Course {
		x, err := s.loaded(ctx, dir, view.Loading{Drawn: true})
		if err != nil {
			return nil // only its picture is missing: its figures were read
		}
		return x.Course
	}
	var b bytes.Buffer
	err = view.ComparisonHTML(&b, found, false, parting)
	return b.Bytes(), err
}

// named drops the empty fields of the form.
func named(v url.Values) url.Values {
	for _, side := range []string{"a", "b"} {
		v[side] = slices.DeleteFunc(v[side], func(s string) bool { return strings.TrimSpace(s) == "" })
	}
	return v
}

// given names a side: by the folder of its runs if they share one.
func given(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	shared := path.Dir(names[0])
	if shared != "." && !slices.ContainsFunc(names, func(n string) bool { return path.Dir(n) != shared }) {
		return shared
	}
	return quantity.Counted(len(names), "run", "runs")
}

// chosen returns the runs for the names of runs or of folders.
func (s *Server) chosen(ctx context.Context, names []string, most int) ([]string, error) {
	var dirs []string
	seen := map[string]bool{}
	for _, name := range names {
		name = path.Clean(name)
		if row, err := s.o.Index.Row(ctx, name); err == nil && row.Kind == index.Ended {
			if !seen[name] {
				dirs, seen[name] = append(dirs, name), true
			}
			continue
		}
		l, err := s.o.Index.List(ctx, index.Query{Below: name, Kinds: []index.Kind{index.Ended}, Sort: "oldest", Most: most + 1})
		if err != nil {
			return nil, err
		}
		if len(l.Rows) == 0 {
			return nil, refuse(http.StatusNotFound, "%s: there is no such run, and no run below it", name)
		}
		for _, row := range l.Rows {
			if !seen[row.Dir] {
				dirs, seen[row.Dir] = append(dirs, row.Dir), true
			}
		}
		if len(dirs) > most {
			break
		}
	}
	if len(dirs) > most {
		return nil, refuse(http.StatusBadRequest, "there are more than %d runs (choose fewer)", most)
	}
	return dirs, nil
}

// fill adds the records of sides from the index, and joins all errors.
func (s *Server) fill(ctx context.Context, sides []compare.Side) error {
	var errs []error
	for i := range sides {
		for j := range sides[i].Runs {
			r := &sides[i].Runs[j]
			found, err := s.o.Index.Run(ctx, r.Dir)
			r.Record, errs = found.Record, append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return refusal{http.StatusUnprocessableEntity, err}
	}
	return nil
}

// overlaid is the page of several runs: a table, and their percentiles in one chart.
func (s *Server) overlaid(r *http.Request) (answer, error) {
	v := named(r.URL.Query())
	dirs, err := s.chosen(r.Context(), append(v["a"], v["b"]...), mostOverlaid)
	if err != nil {
		return answer{}, err
	}
	if len(dirs) == 0 {
		return answer{}, refuse(http.StatusBadRequest, "no run is chosen (mark runs with A or B in the list)")
	}
	done, err := s.turn(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer done()
	b, err := s.overview(r.Context(), dirs, s.runAt(r.Context()))
	if err != nil {
		return answer{}, err
	}
	return s.within(b, "/")
}

// overview is the page of several runs as in weir report.
func (s *Server) overview(ctx context.Context, dirs []string, link view.Linking) ([]byte, error) {
	var entries []view.Entry
	for _, dir := range dirs {
		e, err := s.loaded(ctx, dir, view.Loading{Drawn: true})
		if err != nil {
			return nil, err
		}
		entries = append(entries, e.Entry)
	}
	var b bytes.Buffer
	err := view.OverviewHTML(&b, entries, view.Options{Link: link})
	return b.Bytes(), err
}

// followed is the history of the runs that match the list's filters.
func (s *Server) followed(r *http.Request) (answer, error) {
	q := queryOf(r.URL.Query())
	if _, _, err := s.look.fresh(r.Context()); err != nil {
		return answer{}, s.unrooted(err)
	}
	key := fmt.Sprint(s.o.Index.News(), " ", filters(q).Encode())
	if b, ok := s.made.get(key); ok {
		return s.within(b, "/?"+filters(q).Encode())
	}
	done, err := s.turn(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer done()
	b, err := s.historyPage(r.Context(), q)
	if err == nil {
		s.made.put(key, b)
	}
	if errors.Is(err, history.ErrTooFew) {
		return s.frame(frame{Title: "No history", Errors: lines(err)})
	}
	if err != nil {
		return answer{}, err
	}
	return s.within(b, "/?"+filters(q).Encode())
}

// mostMade limits the pages that are kept.
const mostMade = 8

// A madePages keeps the latest histories, which take a second of a core to make. A key names a page and the state
// of the index that it was made from.
type madePages struct {
	mu    sync.Mutex
	keys  []string // oldest first
	pages map[string][]byte
}

func (m *madePages) get(key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.pages[key]
	return b, ok
}

func (m *madePages) put(key string, page []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pages == nil {
		m.pages = map[string][]byte{}
	}
	if m.pages[key] == nil {
		m.keys = append(m.keys, key)
	}
	m.pages[key] = page
	for len(m.keys) > mostMade {
		delete(m.pages, m.keys[0])
		m.keys = m.keys[1:]
	}
}

// historyPage is the history of a query's runs as in weir history. The error wraps history.ErrTooFew. It
// skips unreadable runs, which the list names.
func (s *Server) historyPage(ctx context.Context, q index.Query) ([]byte, error) {
	q.Kinds, q.Sort, q.From, q.Most = []index.Kind{index.Ended}, "newest", 0, 0
	all, err := s.o.Index.Runs(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(all.Runs) < history.LeastRuns {
		return nil, fmt.Errorf("%w: these are %d (%d or more of one name, with the same settings)", history.ErrTooFew, len(all.Runs), history.LeastRuns)
	}
	found, err := history.Of(all.Runs, history.Options{Alpha: alpha, Latest: latest, Seed: 1, Memo: s.o.Changes})
	if err != nil {
		return nil, refusal{http.StatusUnprocessableEntity, err}
	}
	found.Weir = s.o.Weir
	var b bytes.Buffer
	err = view.HistoryHTML(&b, found)
	return b.Bytes(), err
}

// queryOf parses a list's filters from a URL.
func queryOf(v url.Values) index.Query {
	return index.Query{
		Words: v.Get("q"), System: v.Get("system"), Scenario: v.Get("scenario"), Status: v.Get("verdict"),
		Sort: v.Get("sort"), Below: v.Get("below"),
	}
}

// searched is the page of a search for the capacity.
func (s *Server) searched(r *http.Request) (answer, error) {
	b, err := htmlOf(s.search(r.Context(), r.URL.Query().Get("dir"), s.runAt(r.Context())))
	if err != nil {
		return answer{}, err
	}
	return s.within(b, "/")
}

// search is the search for the capacity in the folder dir.
func (s *Server) search(ctx context.Context, dir string, link view.Linking) (*view.Search, error) {
	c, err := s.o.Index.Search(ctx, dir)
	return &view.Search{Dir: dir, Report: c, Link: link}, s.unreadable(err)
}

// unreadable is the error of a folder of the index that cannot be read.
func (s *Server) unreadable(err error) error {
	if err == nil || errors.Is(err, index.ErrUnknown) {
		return err
	}
	return refusal{http.StatusUnprocessableEntity, s.unrooted(err)}
}

// repeated is the page of a suite.
func (s *Server) repeated(r *http.Request) (answer, error) {
	b, err := htmlOf(s.suite(r.Context(), r.URL.Query().Get("dir"), s.runAt(r.Context())))
	if err != nil {
		return answer{}, err
	}
	return s.within(b, "/")
}

// suite is the suite in the folder dir.
func (s *Server) suite(ctx context.Context, dir string, link view.Linking) (view.SuiteReport, error) {
	x, err := s.o.Index.Table(ctx, dir)
	return view.SuiteReport{Report: x, To: func(run string) string { return link(path.Join(dir, run)) }}, s.unreadable(err)
}
