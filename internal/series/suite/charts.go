package suite

import (
	"fmt"
	"slices"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// mostCharts limits the charts of a page.
const mostCharts = 12

// A Chart draws a figure over what distinguishes the rows of a suite, a line for each system, with the
// article's figures where available.
type Chart struct {
	Figure string   `json:"figure"`         // a figure of the rows
	Over   string   `json:"over,omitempty"` // a scenario key, "message.size"; "": the best row of each system, as bars
	Title  string   `json:"title,omitempty"`
	Rows   []string `json:"rows,omitempty"` // nil: all with the figure

	at tree.Position
}

// charts parses the page's charts.
func (r *reader) charts(n *tree.Node) []Chart {
	v := n.Field("charts")
	if v == nil {
		return nil
	}
	if v.Shape != tree.List || len(v.Items) == 0 || len(v.Items) > mostCharts {
		r.fault(v.At, "charts", "does not fit (a list of 1 to %d)", mostCharts)
		return nil
	}
	var all []Chart
	for i, item := range v.Items {
		at := fmt.Sprintf("charts[%d]", i)
		if r.keys(item, at, "figure", "over", "title", "rows") {
			all = append(all, Chart{Figure: r.text(item, at, "figure", true), Over: r.text(item, at, "over", false), Title: r.text(item, at, "title", false), Rows: r.texts(item, at, "rows"), at: item.At})
		}
	}
	return all
}

// checkCharts looks for unknown rows, and for figures that no row has.
func (s *Suite) checkCharts(r *reader) {
	for i, c := range s.Charts {
		at := fmt.Sprintf("charts[%d]", i)
		for _, name := range c.Rows {
			if !slices.ContainsFunc(s.Rows, func(row Row) bool { return row.Name == name }) {
				r.fault(c.at, at+".rows", "%q is not a row of the suite", name)
			}
		}
		if c.Figure != "" && !slices.ContainsFunc(s.Rows, func(row Row) bool { return c.Takes(row.Name) && slices.Contains(row.Figures, c.Figure) }) {
			r.fault(c.at, at+".figure", "%s is a figure of none of its rows", c.Figure)
		}
	}
}

// Takes reports whether a row is in the chart.
func (c *Chart) Takes(row string) bool { return c.Rows == nil || slices.Contains(c.Rows, row) }

// over returns a run's values of the charts' keys; nil if there are none.
func over(charts []Chart, i *Item) map[string]string {
	var out map[string]string
	for _, c := range charts {
		if c.Over == "" || !c.Takes(i.Row.Name) {
			continue
		}
		for _, f := range compare.Settings(i.Scenario.YAML(), func(s string) string { return s }) {
			if f.Name == c.Over {
				if out == nil {
					out = map[string]string{}
				}
				out[c.Over] = f.Value
			}
		}
	}
	return out
}
