package serve

import (
	"cmp"
	"slices"

	"github.com/weirmq/weir/internal/view/layout"
)

// readme is the list of published pages in Markdown: suites, searches, and runs by system, version and host.
func readme(l *listView) *layout.Page {
	p := new(layout.Page)
	p.Heading("Results")
	if len(l.Suites) > 0 {
		p.Chapter("Suites")
		p.Gap()
	}
	for _, s := range l.Suites {
		p.Item(layout.Span{Text: s.Text, Link: s.To})
	}
	if len(l.Searches) > 0 {
		p.Chapter("Searches for a capacity")
		t := layout.Listing("search", "objectives", "kept at", "not at", "ended", "by")
		for _, x := range l.Searches {
			row(t, 0, x.Link, x.Name, x.Scenario, x.Sent, x.Came, x.When, x.Guarantee)
		}
		p.Table(t)
	}
	if len(l.Rows) > 0 {
		p.Chapter("Runs")
		t := layout.Listing("system", "version", "host", "run", "began, UTC", "verdict", "delivered", "p99", "of")
		for _, x := range slices.SortedStableFunc(slices.Values(l.Rows), func(a, b rowView) int {
			return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Host, b.Host))
		}) {
			row(t, 3, x.Link, x.Driver, x.Server, x.Host, x.Name, x.When, x.State, x.Came, x.High, x.Family)
		}
		p.Table(t)
	}
	if len(l.Suites)+len(l.Searches)+len(l.Rows) == 0 {
		p.Say("There is no run here yet.")
	}
	return p
}

// row adds a row, of which a cell leads to a page.
func row(t *layout.Table, cell int, to string, texts ...string) {
	t.Row(texts...)
	t.Rows[len(t.Rows)-1][cell].Link = to
}
