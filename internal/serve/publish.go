package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
	s        *Server
	into     string
	markdown bool
	runs     map[string]string // pages, by folder
	said     Published
}

// Publish writes the runs of the index as static pages into the folder dir, which must not exist: a list,
// each run, each folder of runs, comparisons of sibling folders, histories, capacities and suites. In Markdown these are
// the list, runs, capacities and suites. It is atomic.
func (s *Server) Publish(ctx context.Context, dir string, markdown bool) (Published, error) {
	so, err := s.o.Index.Sync(ctx, nil)
	if err != nil {
		return Published{}, err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return Published{}, fmt.Errorf("making the folder of the pages: %w", err)
	}
	p := &publishing{s: s, into: part, markdown: markdown, runs: map[string]string{}}
	for _, dir := range so.Refused {
		p.skip(dir, fs.ErrPermission)
	}
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
	l, err := p.s.o.Index.List(ctx, index.Query{})
	if err != nil {
		return err
	}
	list := &listView{Static: true, Total: l.Total, Heads: heads(index.Query{}), Sorts: index.Sorts()}
	for i := range list.Heads {
		list.Heads[i].Link, list.Heads[i].Sorted = "", ""
	}
	folders := map[string][]string{} // finished runs, newest first, by folder
	scenarios := map[followedOf]int{}
	for _, row := range l.Rows {
		v := viewOf(row)
		v.Link = ""
		switch {
		case row.Wrong != "":
			p.skip(row.Dir, errors.New(row.Wrong))
		case row.Kind != index.Ended:
		case p.said.Pages >= mostPublished:
			p.said.Left++
		default:
			x, err := p.s.loaded(ctx, row.Dir, whole)
			if v.Link, err = p.write(ctx, "run", row.Dir, x, err); err != nil {
				return err
			} else if v.Link == "" {
				break
			}
			p.runs[row.Dir] = v.Link
			folders[path.Dir(row.Dir)] = append(folders[path.Dir(row.Dir)], row.Dir)
			scenarios[followedOf{row.Driver, row.Scenario}]++
		}
		list.Rows = append(list.Rows, v)
	}
	if len(list.Rows) > 0 {
		list.From, list.To = 1, len(list.Rows)
	}
	searches, err := p.s.o.Index.List(ctx, index.Query{Kinds: []index.Kind{index.Capacity}, Most: mostPages})
	if err != nil {
		return err
	}
	for _, row := range searches.Rows {
		v := viewOf(row)
		v.Sent, v.Came = strings.TrimPrefix(v.Sent, "kept "), strings.TrimPrefix(v.Came, "not ") // as the heads say
		x, err := p.s.search(ctx, row.Dir, p.runAt)
		if v.Link, err = p.write(ctx, "capacity", row.Dir, x, err); err != nil {
			return err
		}
		list.Searches = append(list.Searches, v)
	}
	p.capped(searches.Total-len(searches.Rows), "searches")
	if list.Suites, err = p.suites(ctx); err != nil {
		return err
	}
	if p.markdown {
		return p.file("README.md", []byte(machineMade+layout.Markdown{}.Page(readme(list))))
	}
	if list.Series, err = p.folders(ctx, folders); err != nil {
		return err
	}
	if list.Comparisons, list.Apart, err = p.comparisons(ctx, folders); err != nil {
		return err
	}
	trends, err := p.histories(ctx, scenarios)
	if err != nil {
		return err
	}
	list.Tested = tested(list.Rows, trends)
	if list.Search, err = p.s.o.Index.SearchOf(ctx, l, index.Query{}); err != nil {
		return err
	}
	v, err := p.s.frame(frame{Title: "Results", List: list, Footer: "Published by weir " + p.s.o.Weir + "."})
	if err != nil {
		return err
	}
	return p.file("index.html", v.body)
}

// machineMade begins each page in Markdown.
const machineMade = "<!-- Written by weir serve DIR --publish DIR --markdown. -->\n\n"

// write writes the page of a run, a search or a suite as page does.
func (p *publishing) write(ctx context.Context, kind, name string, x drawn, err error) (string, error) {
	if err != nil || !p.markdown {
		b, err := htmlOf(x, err)
		return p.page(ctx, kind, name, b, err)
	}
	base := addressed(name)
	for _, f := range layout.Pictured(x.Drawn(), base) {
		if strings.HasSuffix(f.Name, ".md") {
			f.Text = machineMade + f.Text
		}
		if err := p.file(f.Name, []byte(f.Text)); err != nil {
			return "", err
		}
	}
	p.said.Pages++
	return base + ".md", ctx.Err()
}

// file writes a file below the folder, in a folder that it makes.
func (p *publishing) file(name string, b []byte) error {
	at := filepath.Join(p.into, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, b, 0o644)) //nolint:gosec // G301, G306: a web server reads it
}

// runAt returns where the page of a run is, for pages other than the list.
func (p *publishing) runAt(dir string) string {
	at := p.runs[path.Clean(dir)]
	if at == "" || p.markdown {
		return at
	}
	return "../" + at
}

// page writes a page of a kind and returns its path, relative to the list; "" if it could not be shown. The path
// depends on the name alone, so that an address stays when more is published. The end of ctx is an error.
func (p *publishing) page(ctx context.Context, kind, name string, b []byte, err error) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		p.skip(name, err)
		return "", nil
	}
	v, err := p.s.within(b, "../index.html")
	if err != nil {
		return "", err
	}
	p.said.Pages++
	at := kind + "/" + addressed(name) + ".html"
	return at, p.file(at, v.body)
}

// skip says why something of this name has no page.
func (p *publishing) skip(name string, err error) {
	for _, l := range lines(err) {
		if !strings.HasPrefix(l, name+":") && !strings.HasPrefix(l, name+"/") {
			l = name + ": " + l
		}
		if len(p.said.Skipped) < mostPages {
			p.said.Skipped = append(p.said.Skipped, layout.Printable(l))
		}
	}
}

// summed matches a name that ends as addressed makes one.
var summed = regexp.MustCompile(`-[0-9a-f]{8}$`)

// capped says that there are more of a kind than have a page.
func (p *publishing) capped(more int, kind string) {
	if more > 0 {
		p.said.Skipped = append(p.said.Skipped, fmt.Sprintf("%s: %d more (at most %d have a page)", kind, more, mostPages))
	}
}

// addressed makes a name of a file from any text: readable, and another one for another text. A plain name stays.
func addressed(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '-'
	}, name)
	plain = strings.Trim(plain[:min(len(plain), 80)], "-")
	if plain == name && name != "" && !summed.MatchString(name) && !strings.EqualFold(name, "readme") {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return cmp.Or(plain, "all") + "-" + hex.EncodeToString(sum[:4])
}

// A followedOf is what a published history follows: a scenario on one system.
type followedOf struct{ driver, scenario string }

// A testedView is a system, at one version and on one host, as a row of a gallery.
type testedView struct {
	Driver, Server, Host string
	Runs                 int
	Latest               rowView
	Trends               []link
}

// tested groups runs, newest first, by system, version and host.
func tested(rows []rowView, trends map[followedOf]link) []testedView {
	at := map[[3]string]int{}
	var out []testedView
	for _, r := range rows {
		if r.Link == "" {
			continue
		}
		key := [3]string{r.Driver, r.Server, r.Host}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, testedView{Driver: r.Driver, Server: r.Server, Host: layout.Printable(r.Host), Latest: r})
		}
		out[i].Runs++
		if l, ok := trends[followedOf{r.Driver, r.Scenario}]; ok && !slices.Contains(out[i].Trends, l) {
			out[i].Trends = append(out[i].Trends, l)
		}
	}
	slices.SortStableFunc(out, func(a, b testedView) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), b.Latest.Started.Compare(a.Latest.Started))
	})
	return out
}

// folders writes a page for each folder of several runs, with all of them.
func (p *publishing) folders(ctx context.Context, all map[string][]string) ([]link, error) {
	var out []link
	more := 0
	defer func() { p.capped(more, "folders of runs") }()
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		dirs := all[folder]
		if len(dirs) < 2 || len(dirs) > mostOverlaid {
			continue
		}
		if len(out) == mostPages {
			more++
			continue
		}
		b, err := p.s.overview(ctx, slices.Sorted(slices.Values(dirs)), p.runAt)
		at, err := p.page(ctx, "folder", folder, b, err)
		if err != nil {
			return nil, err
		}
		if at != "" {
			out = append(out, link{folderName(folder) + ", " + quantity.Counted(len(dirs), "run", "runs"), at})
		}
	}
	return out, nil
}

// suites writes a page for each suite, which leads to the pages of its runs.
func (p *publishing) suites(ctx context.Context) ([]link, error) {
	l, err := p.s.o.Index.List(ctx, index.Query{Kinds: []index.Kind{index.Suite}, Sort: "name", Most: mostPages})
	if err != nil {
		return nil, err
	}
	var out []link
	for _, row := range l.Rows {
		x, err := p.s.suite(ctx, row.Dir, p.runAt)
		at, err := p.write(ctx, "suite", row.Dir, x, err)
		if err != nil {
			return nil, err
		}
		if at != "" {
			out = append(out, link{layout.Printable(row.Name + ": " + row.Scenario), at})
		}
	}
	p.capped(l.Total-len(l.Rows), "suites")
	return out, nil
}

// folderName is the display name of a folder.
func folderName(dir string) string {
	if dir == "." {
		return "the folder itself"
	}
	return layout.Printable(dir)
}

// histories writes the history of each scenario on each system with enough runs.
func (p *publishing) histories(ctx context.Context, runs map[followedOf]int) (map[followedOf]link, error) {
	out := map[followedOf]link{}
	more := 0
	defer func() { p.capped(more, "histories") }()
	for _, of := range slices.SortedFunc(maps.Keys(runs), func(a, b followedOf) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.scenario, b.scenario))
	}) {
		if runs[of] < history.LeastRuns {
			continue
		}
		if len(out) == mostPages {
			more++
			continue
		}
		b, err := p.s.historyPage(ctx, index.Query{System: of.driver, Scenario: of.scenario})
		if errors.Is(err, history.ErrTooFew) {
			continue
		}
		at, err := p.page(ctx, "history", of.driver+" "+of.scenario, b, err)
		if err != nil {
			return nil, err
		}
		if at != "" {
			out[of] = link{layout.Printable(of.scenario), at}
		}
	}
	return out, nil
}
