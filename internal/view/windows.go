package view

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Windows are the samples of consecutive windows within a run's measured window.
type Windows struct {
	Every time.Duration
	parts []window
	more  int // number over the limit
}

// A window holds what completed in it, by the tags of intervals.hlog.
type window struct {
	from, to int64 // ns since the end of the warm-up
	counts   map[string]*measure.Counts
}

const mostWindows = 400

// windowed reads a run's samples from its interval log, in windows of length every. The first begins at the
// run's instant begins, with the measured window. A line of the log, about a second, belongs to the window
// that holds its middle: seconds of the log end some milliseconds late, more on a busy host.
func windowed(dir string, every time.Duration, begins int64) (*Windows, error) {
	path := filepath.Join(dir, result.FileIntervals)
	f, err := userfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading windows: %w", err)
	}
	defer func() { _ = f.Close() }()
	w := &Windows{Every: every}
	for log := result.NewLogReader(f); ; {
		l, err := log.NextOf(func(tag string) bool { return strings.HasSuffix(tag, "."+measure.Measure.String()) })
		switch {
		case errors.Is(err, io.EOF):
			return w, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if l.Counts == nil { // of the warm-up, or after the end
			continue
		}
		i := int(max(0, (l.From+l.To)/2-begins) / int64(every))
		if i >= mostWindows {
			w.more = max(w.more, i-mostWindows+1)
			continue
		}
		for len(w.parts) <= i {
			from := int64(len(w.parts)) * int64(every)
			w.parts = append(w.parts, window{from: from, to: from + int64(every), counts: map[string]*measure.Counts{}})
		}
		part := &w.parts[i]
		if part.counts[l.Tag] == nil {
			part.counts[l.Tag] = new(measure.Counts)
		}
		part.counts[l.Tag].Merge(l.Counts)
	}
}

// firstSecond is where the first measured second begins, in ns since the run's epoch: the log has seconds
// of the run.
func firstSecond(r *result.Result) int64 {
	for _, second := range result.MeasuredFirst(r.Intervals) {
		return int64(second.TS * 1e9)
	}
	return r.WindowFrom()
}

// windows writes the percentiles of each window, for what was confirmed, answered or delivered in it.
func (t *single) windows() {
	w := t.Windows
	if w == nil || len(w.parts) == 0 {
		return
	}
	asked := t.o.Percentiles
	if len(asked) == 0 {
		asked = []float64{50, 95, 99}
	}
	asked = append(slices.DeleteFunc(slices.Clone(asked), func(p float64) bool { return p >= 100 }), 100)
	t.Gap()
	if t.o.drawn != "" {
		t.Chapter("in windows of " + quantity.Span(w.Every))
	}
	says := "in windows of " + quantity.Span(w.Every) + " since the end of the warm-up, of what was confirmed, answered or delivered in each"
	if w.more > 0 {
		says += fmt.Sprintf("; %s more are left out", quantity.Count(uint64(w.more)))
	}
	t.Line(layout.Faint.Of(says))
	x := &layout.Table{Columns: []layout.Column{{Head: "window", Kind: layout.Word, Key: true}}}
	var of []distribution
	for _, c := range distributions(t.r) {
		if c.interval {
			of = append(of, c)
			x.Columns = append(x.Columns, layout.Column{Group: c.group + " " + c.name, Head: "messages", Tone: layout.Faint})
			for _, p := range asked {
				x.Columns = append(x.Columns, layout.Column{Group: c.group + " " + c.name, Head: headOf(p), Tone: layout.Strong})
			}
		}
	}
	lines := make([][]plot.Line, len(of))
	for _, part := range w.parts {
		row := []layout.Span{plain(secondsOf(part.from) + ".." + secondsOf(part.to) + " s")}
		middle := float64(part.from+part.to) / 2e9
		for i, c := range of {
			d := judge.OfStage(part.counts[c.tag()], nil, asked...)
			if d == nil {
				row = append(row, plain("0"))
				for range asked {
					row = append(row, plain("-"))
				}
				continue
			}
			row = append(row, layout.Faint.Of(quantity.Count(d.Count)))
			for k, p := range asked {
				text := distribution{group: c.group, name: c.name, d: d}.figure(t.r, p)
				row = append(row, text)
				if len(lines[i]) <= k {
					n := len(lines[i]) + 1
					lines[i] = append(lines[i], plot.Line{Class: layout.Series(n), Series: n, Dots: true})
				}
				if v := d.Percentile(p); v != nil {
					dot := plot.Point{X: middle, Y: float64(v.NS), Text: row[0].Text + ", " + headOf(p) + ": " + text.Text}
					if !v.Supported {
						dot.Form = plot.Hollow
					}
					lines[i][k].Points = append(lines[i][k].Points, dot)
				}
			}
		}
		x.Rows = append(x.Rows, row)
	}
	t.Table(x)
	tooFew(t.Page, x)
	if t.o.drawn == "" {
		return
	}
	for i, c := range of {
		least, most := ends(lines[i])
		if most <= 0 {
			continue
		}
		f := &layout.Chart{Caption: "Percentiles of each window, at its middle. Time counts from the end of the warm-up. A hollow dot has too few samples."}
		f.Chart = plot.Chart{ID: t.o.drawn + "windows-" + c.group, Title: c.group + " " + c.name + " in windows of " + quantity.Span(w.Every), Height: low, Lines: lines[i]}
		var heads []string
		for k, p := range asked {
			f.Legend = append(f.Legend, layout.Key{Class: layout.Series(k + 1), Text: headOf(p)})
			heads = append(heads, headOf(p))
		}
		f.X = seconds(float64(w.parts[0].from)/1e9, float64(w.parts[len(w.parts)-1].to)/1e9)
		f.Y = plot.Log(least, most, "latency", short)
		f.Desc = fmt.Sprintf("%s of %d windows, from %s to %s.", strings.Join(heads, ", "), len(w.parts), quantity.Time(int64(least)), quantity.Time(int64(most)))
		t.Chart(f)
	}
}

func headOf(p float64) string {
	if p >= 100 {
		return "max"
	}
	return "p" + strings.TrimSuffix(percent(p), " %")
}

// secondsOf formats a time of the run in a table.
func secondsOf(ns int64) string {
	return strings.TrimSuffix(quantity.Commas(fmt.Sprintf("%.1f", float64(ns)/1e9)), ".0")
}
