package report

import (
	"github.com/weirmq/weir/internal/plot"
)

// A figure is a chart with its caption and what its colours mean. Only a page for
// a browser shows it.
type figure struct {
	chart   plot.Chart
	caption string
	legend  []legendKey
}

// A legendKey is a line of a chart by its classes, and its name.
type legendKey struct{ class, text string }

// printable is what may be shown of a figure whose texts are of a stranger's file.
func (f *figure) printable() {
	f.caption = printable(f.caption)
	f.chart.Title, f.chart.Desc = printable(f.chart.Title), printable(f.chart.Desc)
	for i := range f.legend {
		f.legend[i].text = printable(f.legend[i].text)
	}
	for _, l := range f.chart.Lines {
		for i := range l.Points {
			l.Points[i].Text = printable(l.Points[i].Text)
		}
	}
	for i := range f.chart.Marks {
		f.chart.Marks[i].Text = printable(f.chart.Marks[i].Text)
	}
	for i := range f.chart.Columns {
		f.chart.Columns[i].Text = printable(f.chart.Columns[i].Text)
	}
	for i := range f.chart.Spans {
		f.chart.Spans[i].Text = printable(f.chart.Spans[i].Text)
	}
}
