package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
)

// Limits of publishing.
const (
	mostPublished = 5000 // runs with a page
	mostPages     = 200  // of each kind but runs
	leastASide    = 4    // runs
	mostSides     = 6
)

// A link leads to a page that was written.
type link struct{ Text, To string }

// A Published says what Publish wrote.
type Published struct {
	Pages   int
	Left    int      // runs over the limit, without a page
	Skipped []string // what could not be shown, with reasons
}

// publishing is one Publish.
type publishing struct {
	s    *Server
	into string
	said Published
}

// Publish writes the runs of the index as static pages into the folder dir, which must not exist: a list,
// each run, each folder of runs, comparisons of sibling folders, histories and capacities. It is atomic.
func (s *Server) Publish(ctx context.Context, dir string) (Published, error) {
	if _, err := s.o.Index.Sync(ctx, nil); err != nil {
		return Published{}, err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return Published{}, fmt.Errorf("making the folder of the pages: %w", err)
	}
	p := &publishing{s: s, into: part}
	err = p.all(ctx)
	if err == nil {
		err = os.Chmod(part, 0o755) //nolint:gosec // G302: a web server reads it
	}
	if err == nil {
		err = os.Rename(part, dir)
	}
	if err != nil {
		return Published{}, errors.Join(fmt.Errorf("publishing: %w", err), os.RemoveAll(part))
	}
	return p.said, nil
}

func (p *publishing) all(ctx context.Context) error {
	for _, kind := range []string{"run", "folder", "compare", "history", "capacity"} {
		if err := os.Mkdir(filepath.Join(p.into, kind), 0o755); err != nil {
			return err
		}
	}
	l, err := p.s.o.Index.List(ctx, index.Query{Sort: "newest"})
	if err != nil {
		return err
	}
	list := &listView{Static: true, Total: l.Total, Heads: heads(index.Query{})}
	for i := range list.Heads {
		list.Heads[i].Link, list.Heads[i].Sorted = "", ""
	}
	folders := map[string][]string{} // finished runs, newest first, by folder
	scenarios := map[string]int{}
	for _, row := range l.Rows {
		v := viewOf(row)
		v.Link = ""
		switch {
		case row.Kind != index.Ended || row.Wrong != "":
		case p.said.Pages >= mostPublished:
			p.said.Left++
		default:
			b, err := p.s.runPage(ctx, row.Dir)
			if v.Link, err = p.page(ctx, "run", b, err); err != nil {
				return err
			} else if v.Link == "" {
				break
			}
			folders[path.Dir(row.Dir)] = append(folders[path.Dir(row.Dir)], row.Dir)
			scenarios[row.Scenario]++
		}
		list.Rows = append(list.Rows, v)
	}
	if len(list.Rows) > 0 {
		list.From, list.To = 1, len(list.Rows)
	}
	if list.Series, err = p.folders(ctx, folders); err != nil {
		return err
	}
	if list.Comparisons, err = p.comparisons(ctx, folders); err != nil {
		return err
	}
	if list.Histories, err = p.histories(ctx, scenarios); err != nil {
		return err
	}
	searches, err := p.s.o.Index.List(ctx, index.Query{Kinds: []index.Kind{index.Capacity}, Most: mostPages})
	if err != nil {
		return err
	}
	for _, row := range searches.Rows {
		v := viewOf(row)
		b, err := p.s.capacityPage(ctx, row.Dir)
		if v.Link, err = p.page(ctx, "capacity", b, err); err != nil {
			return err
		}
		list.Searches = append(list.Searches, v)
	}
	v, err := p.s.frame(frame{Title: "Runs", List: list, Footer: "Published by weir " + p.s.o.Weir + "."})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.into, "index.html"), v.body, 0o644) //nolint:gosec // G306: a web server reads it
}

// page writes a page of a kind and returns its path, relative to the list; "" if it could not be shown. The
// end of ctx is an error.
func (p *publishing) page(ctx context.Context, kind string, b []byte, err error) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		if len(p.said.Skipped) < mostPages {
			p.said.Skipped = append(p.said.Skipped, lines(err)...)
		}
		return "", nil
	}
	v, err := p.s.within(b, "../index.html")
	if err != nil {
		return "", err
	}
	p.said.Pages++
	at := fmt.Sprintf("%s/%05d.html", kind, p.said.Pages)
	return at, os.WriteFile(filepath.Join(p.into, at), v.body, 0o644) //nolint:gosec // G306: a web server reads it
}

// folders writes a page for each folder of several runs, with all of them.
func (p *publishing) folders(ctx context.Context, all map[string][]string) ([]link, error) {
	var out []link
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		dirs := all[folder]
		if len(dirs) < 2 || len(dirs) > mostOverlaid || len(out) == mostPages {
			continue
		}
		b, err := p.s.overview(ctx, slices.Sorted(slices.Values(dirs)))
		at, err := p.page(ctx, "folder", b, err)
		if err != nil {
			return nil, err
		}
		if at != "" {
			out = append(out, link{folderName(folder) + ", " + quantity.Counted(len(dirs), "run", "runs"), at})
		}
	}
	return out, nil
}

// folderName is the display name of a folder.
func folderName(dir string) string {
	if dir == "." {
		return "the folder itself"
	}
	return layout.Printable(dir)
}

// comparisons compares sibling folders of runs, with the first by name as the base. Incomparable folders
// are silently skipped: that they belong together is only a guess.
func (p *publishing) comparisons(ctx context.Context, all map[string][]string) ([]link, error) {
	beside := map[string][]string{}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		if len(all[folder]) >= leastASide && len(all[folder]) <= mostCompared/mostSides {
			beside[path.Dir(folder)] = append(beside[path.Dir(folder)], folder)
		}
	}
	var out []link
	for _, parent := range slices.Sorted(maps.Keys(beside)) {
		folders := beside[parent]
		if len(folders) < 2 || len(folders) > mostSides || len(out) == mostPages {
			continue
		}
		var sides []compare.Side
		text := ""
		for i, folder := range folders {
			side := compare.Side{Given: folder}
			for _, dir := range slices.Sorted(slices.Values(all[folder])) {
				side.Runs = append(side.Runs, compare.Run{Dir: dir})
			}
			sides = append(sides, side)
			if i > 0 {
				text += " and "
			}
			text += folderName(folder)
		}
		b, err := p.s.comparison(ctx, sides, false)
		if errors.Is(err, compare.ErrDifferent) || errors.Is(err, compare.ErrTooFew) || errors.Is(err, compare.ErrSameRun) {
			continue
		}
		at, err := p.page(ctx, "compare", b, err)
		if err != nil {
			return nil, err
		}
		if at != "" {
			out = append(out, link{text, at})
		}
	}
	return out, nil
}

// histories writes the history of each scenario with enough runs.
func (p *publishing) histories(ctx context.Context, scenarios map[string]int) ([]link, error) {
	var out []link
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		if scenarios[name] < history.LeastRuns || len(out) == mostPages {
			continue
		}
		b, err := p.s.historyPage(ctx, index.Query{Scenario: name})
		if errors.Is(err, history.ErrTooFew) {
			continue
		}
		at, err := p.page(ctx, "history", b, err)
		if err != nil {
			return nil, err
		}
		if at != "" {
			out = append(out, link{layout.Printable(name), at})
		}
	}
	return out, nil
}
