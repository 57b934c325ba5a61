package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// pairs draws each figure that the article also gives, ours beside the article's, in a row on a logarithmic axis.
// Figures of one unit share a chart.
func (r SuiteReport) pairs(p *layout.Page) {
	var order []string
	of := map[string][]suitePair{}
	for _, l := range r.Rows {
		for _, f := range l.Figures {
			if f.Published == nil || f.Unit == "" || f.Value <= 0 || f.Published.Value <= 0 {
				continue
			}
			if of[f.Unit] == nil {
				order = append(order, f.Unit)
			}
			of[f.Unit] = append(of[f.Unit], suitePair{l.Row, l.System, f})
		}
	}
	for i, unit := range order {
		p.Gap()
		p.Chart(pairsChart(fmt.Sprintf("pairs%d", i), unit, of[unit], r.heading()))
	}
}

// A suitePair is one of our figures with the article's.
type suitePair struct {
	row, system string
	figure      suite.Figure
}

// Limits of a chart of pairs, and the height of a row in its units.
const (
	mostPairs = 60
	pairHigh  = 32
)

// pairsChart draws a row for each pair: ours and the article's on one axis, joined, with their ratio.
func pairsChart(id, unit string, all []suitePair, heading string) *layout.Chart {
	of := cmp.Or(map[string]string{"ns": "times", "per_s": "rates", "ratio": "shares"}[unit], "counts")
	title := heading + ": " + of + ", ours and the article's"
	c := &layout.Chart{Caption: "A square is the article's figure, a dot is ours. Each line says how many times the article's ours is.", Legend: []layout.Key{{Class: "s1 round", Text: "ours"}, {Class: "s2 box", Text: "the article's"}}}
	if n := len(all); n > mostPairs {
		c.Caption += fmt.Sprintf(" The first %d of %d are drawn.", mostPairs, n)
		all = all[:mostPairs]
	}
	low, high := math.Inf(1), 0.0
	ours, theirs := plot.Line{Class: "s1", Series: 1, Dots: true, Loose: true}, plot.Line{Class: "s2", Series: 2, Dots: true, Loose: true}
	y := plot.Axis{Inside: true}
	var said []string
	at := 0.8 // downwards
	for i, x := range all {
		if i == 0 || x.row != all[i-1].row {
			y.Ticks = append(y.Ticks, plot.Tick{At: -at, Text: layout.Shortened(x.row, mostLabel), Head: true})
			at++
		}
		f := x.figure
		name := fmt.Sprintf("%s, %s: %s times", x.system, f.Figure, ratioText(&f))
		text := fmt.Sprintf("%s, %s, %s: ours %s, article %s", x.row, x.system, f.Figure, f.Shown(), f.Published.Text)
		said = append(said, text)
		low, high = min(low, f.Value, f.Published.Value), max(high, f.Value, f.Published.Value)
		form := plot.Full
		if f.AtLeast {
			form = plot.Upward
		}
		y.Ticks = append(y.Ticks, plot.Tick{At: -at, Text: layout.Shortened(name, mostLabel)})
		c.Lines = append(c.Lines, plot.Line{Class: "s5", Points: []plot.Point{{X: f.Published.Value, Y: -at}, {X: f.Value, Y: -at}}})
		ours.Points = append(ours.Points, plot.Point{X: f.Value, Y: -at, Text: text, Form: form})
		theirs.Points = append(theirs.Points, plot.Point{X: f.Published.Value, Y: -at, Text: text, Form: plot.Square})
		at++
	}
	y.Min = -float64(len(y.Ticks))
	c.Lines = append(c.Lines, theirs, ours)
	c.Chart = plot.Chart{
		ID: id, Title: title, Desc: strings.Join(said, "; "), Height: 80 + pairHigh*len(y.Ticks),
		X: plot.Log(low/2, high*2, "", func(v float64) string { return suite.Shown(unit, v) }), Y: y, Lines: c.Lines,
	}
	return c
}

// mostLabel is how many characters of a line of a chart of pairs a phone shows.
const mostLabel = 56

// ratioText is how many times the article's figure ours is.
func ratioText(f *suite.Figure) string {
	ratio := f.Value / f.Published.Value
	text := quantity.Significant(ratio, false)
	switch {
	case ratio < 0.0001 && !f.AtLeast:
		text = "less than 0.0001"
	case ratio < 0.01:
		text = strconv.FormatFloat(ratio, 'g', 2, 64)
	}
	if f.AtLeast {
		text = ">= " + text
	}
	return text
}

func (r SuiteReport) charts(p *layout.Page) {
	for i, c := range r.Suite.Charts {
		unit, spots := r.spots(&c)
		if c.Over == "" {
			spots = bestOf(spots, unit)
		}
		f := Variation{ID: fmt.Sprintf("over%d", i), Title: c.Title, Key: c.Over, Spots: spots, Write: func(v float64) string { return suite.Shown(unit, v) }}
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

// spots returns the figures of a chart and their unit. An INVALID run has none; the article's are beside
// ours.
func (r SuiteReport) spots(c *suite.Chart) (unit string, spots []Spot) {
	for _, l := range r.Rows {
		key := l.Over[c.Over]
		if !c.Takes(l.Row) || c.Over != "" && key == "" {
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
				spots = append(spots, Spot{Series: l.System, Key: key, Value: f.Bound()})
			}
			if f.Published != nil {
				spots = append(spots, Spot{Series: l.System, Key: key, Value: result.Exactly(f.Published.Value), Printed: true})
			}
		}
	}
	return unit, spots
}

// bestOf returns the best figure of each system, ours and the article's separately: the least of times, the
// highest of anything else.
func bestOf(spots []Spot, unit string) (best []Spot) {
	for _, s := range spots {
		s.Series = "best row"
		i := slices.IndexFunc(best, func(b Spot) bool { return b.Key == s.Key && b.Printed == s.Printed })
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

// curves draws the distributions of one run over each other.
func curves(id string, l *suite.Line) *layout.Chart {
	usual := judge.Percentiles() // these have dots
	title := fmt.Sprintf("%s, %s: percentile by percentile, all of one run", l.Row, l.System)
	c := &layout.Chart{Caption: "An arrow: at least so much. Hollow: too few samples, do not quote; the last dot is the largest."}
	c.Chart = plot.Chart{ID: id, Title: title, Height: high}
	end := 1.0
	var said []string
	for n, d := range l.Curves {
		line := plot.Line{Class: layout.Series(n + 1), Series: n + 1, Dots: true}
		c.Legend = append(c.Legend, layout.Key{Class: line.Class, Text: d.As + " (" + d.Of + ")"})
		last := 0.0
		for _, x := range d.Points {
			at := last + 0.3 // place the largest to the right of this many samples
			if x.P < 100 {
				at = nines(x.P)
			}
			form := plot.Full
			switch {
			case x.P > 0 && !slices.Contains(usual, x.P):
				form = plot.Undotted
			case x.AtLeast:
				form = plot.Upward
			case !x.Supported:
				form = plot.Hollow
			}
			text := fmt.Sprintf("%s, %s: %s", d.As, suitePercent(x.P), result.Bound(float64(x.NS), x.AtLeast).Text(timeText))
			line.Points = append(line.Points, plot.Point{X: at, Y: float64(x.NS), Text: text, Form: form})
			if x.P == 50 || x.P == 99 || x.P == 100 {
				said = append(said, text)
			}
			last, end = at, max(end, at)
		}
		c.Lines = append(c.Lines, line)
	}
	c.Desc = strings.Join(said, "; ")
	c.X = plot.Axis{Min: 0, Max: end, Label: "percentile, on a scale of nines"}
	for _, q := range [...]float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		if at := nines(q); at <= end {
			c.X.Ticks = append(c.X.Ticks, plot.Tick{At: at, Text: suitePercent(q)})
		}
	}
	least, most := ends(c.Lines)
	c.Y = plot.Log(min(least, most), most, "latency", timeText)
	return c
}

func suitePercent(p float64) string {
	return cmp.Or(map[float64]string{0: "least", 100: "largest"}[p], percent(p))
}

// chancesChart draws how likely a page of N requests meets a percentile: 1 - p^N.
func chancesChart(c *suite.Chances, p *layout.Page) {
	if c == nil || len(c.Percentiles) == 0 {
		return
	}
	const steps = 120
	title := "pages with a request that is slower than a percentile, by requests of a page"
	out := &layout.Chart{Caption: "1 - p^N, if requests are slow independently of one another. It needs no run."}
	out.Chart = plot.Chart{ID: "chances", Title: title, Height: high}
	var said []string
	for i, q := range c.Percentiles {
		line := plot.Line{Class: layout.Series(i + 1), Series: i + 1, Dots: true}
		had := 0
		for k := range steps + 1 {
			n := int(math.Round(math.Pow(float64(c.Requests), float64(k)/steps))) // evenly spaced on a logarithmic axis
			if n == had {
				continue
			}
			had = n
			share := 100 * stats.SessionShare(q, uint64(n))
			line.Points = append(line.Points, plot.Point{X: float64(n), Y: share, Form: plot.Undotted})
		}
		half := int(math.Ceil(stats.SessionMessages(q, 0.5)))
		text := fmt.Sprintf("half of all pages of %s meet the %s", quantity.Counted(half, "request", "requests"), suitePercent(q))
		if half <= c.Requests {
			line.Points = insertAt(line.Points, plot.Point{X: float64(half), Y: 100 * stats.SessionShare(q, uint64(half)), Text: text})
		}
		said = append(said, text)
		out.Legend = append(out.Legend, layout.Key{Class: line.Class, Text: "the " + suitePercent(q)})
		out.Lines = append(out.Lines, line)
	}
	out.Desc = strings.Join(said, "; ")
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	out.X = plot.Log(1, float64(c.Requests), "requests of a page", whole)
	out.X.Max = float64(c.Requests)
	out.Y = plot.Linear(0, 100, 5, "pages that meet it", func(v float64) string { return whole(v) + " %" })
	p.Gap()
	p.Chart(out)
	for _, text := range said {
		p.Bullet(strings.ToUpper(text[:1]) + text[1:] + ".")
	}
}

// insertAt inserts a point into a line, by X.
func insertAt(points []plot.Point, x plot.Point) []plot.Point {
	i, _ := slices.BinarySearchFunc(points, x.X, func(p plot.Point, at float64) int { return int(p.X - at) })
	return slices.Insert(points, i, x)
}
