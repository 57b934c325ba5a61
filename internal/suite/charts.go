package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// mostCharts bounds a page.
const mostCharts = 12

// A Chart draws a figure over what the rows of a suite differ in, a line for each system,
// with the article's figures where it has some.
type Chart struct {
	Figure string   `json:"figure"`         // one of the rows'
	Over   string   `json:"over,omitempty"` // a key of a scenario, "message.size"; "": the best row of each system, as bars
	Title  string   `json:"title,omitempty"`
	Rows   []string `json:"rows,omitempty"` // nil: all with the figure

	at tree.Position
}

// charts reads which charts the page has.
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

// checkCharts looks for rows that there are not, and for figures that no row has.
func (s *Suite) checkCharts(r *reader) {
	for i, c := range s.Charts {
		at := fmt.Sprintf("charts[%d]", i)
		for _, name := range c.Rows {
			if !slices.ContainsFunc(s.Rows, func(row Row) bool { return row.Name == name }) {
				r.fault(c.at, at+".rows", "%q is not a row of the suite", name)
			}
		}
		if c.Figure != "" && !slices.ContainsFunc(s.Rows, func(row Row) bool { return c.takes(row.Name) && slices.Contains(row.Figures, c.Figure) }) {
			r.fault(c.at, at+".figure", "%s is a figure of none of its rows", c.Figure)
		}
	}
}

// takes reports whether a row is in the chart.
func (c *Chart) takes(row string) bool { return c.Rows == nil || slices.Contains(c.Rows, row) }

// over are the values that a run has of the keys of charts; nil where there are none.
func over(charts []Chart, i *Item) map[string]string {
	var out map[string]string
	for _, c := range charts {
		if c.Over == "" || !c.takes(i.Row.Name) {
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

// charts puts the charts of a suite on the page.
func (r *Report) charts(p *layout.Page) {
	for i, c := range r.Suite.Charts {
		unit, spots := r.spots(&c)
		if c.Over == "" {
			spots = bestOf(spots, unit)
		}
		f := view.Variation{ID: fmt.Sprintf("over%d", i), Title: c.Title, Key: c.Over, Spots: spots, Write: func(v float64) string { return shown(unit, v) }}
		if c.Over == "" {
			f.Key, f.Caption = "system", "The best of its rows. It ranks nothing: what a confirmation means differs, see each run."
		}
		if f.Title == "" {
			f.Title = strings.TrimSuffix(c.Figure+" over "+c.Over, " over ")
		}
		f.Title = r.heading() + ": " + f.Title
		if chart := f.Chart(); chart != nil {
			p.Gap()
			p.Chart(chart)
		}
	}
}

// spots are the figures of a chart, and their unit. An INVALID run has none, and the
// article's are beside ours.
func (r *Report) spots(c *Chart) (unit string, spots []view.Spot) {
	for _, l := range r.Rows {
		key := l.Over[c.Over]
		if !c.takes(l.Row) || c.Over != "" && key == "" {
			continue
		}
		if c.Over == "" {
			key = l.System
		}
		for _, f := range l.Figures {
			if f.Figure != c.Figure || f.Unit == "" {
				continue
			}
			unit = f.Unit
			if l.Verdict != string(result.Invalid) {
				spots = append(spots, view.Spot{Series: l.System, Key: key, Value: f.value()})
			}
			if f.Published != nil {
				spots = append(spots, view.Spot{Series: l.System, Key: key, Value: result.Exactly(f.Published.Value), Printed: true})
			}
		}
	}
	return unit, spots
}

// bestOf returns of each system, ours and the article's apart, the best figure: the least
// of times, and the highest of anything else.
func bestOf(spots []view.Spot, unit string) (best []view.Spot) {
	for _, s := range spots {
		s.Series = "best row"
		i := slices.IndexFunc(best, func(b view.Spot) bool { return b.Key == s.Key && b.Printed == s.Printed })
		if i < 0 {
			best = append(best, s)
			continue
		}
		_, lowest, highest := result.Spread([]result.Value{best[i].Value, s.Value})
		if best[i].Value = highest; unit == "ns" {
			best[i].Value = lowest
		}
	}
	return best
}
