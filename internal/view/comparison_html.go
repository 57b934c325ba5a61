package view

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// ComparisonHTML writes a comparison as an HTML page: the contents of Conclusion and Comparison, a chart of
// each shift function, and the runs over a common time axis. It draws no charts of more sides than lines
// can distinguish. It returns the error of w.
func ComparisonHTML(w io.Writer, found *compare.Comparison, full bool, parting Parting) error {
	p := new(layout.Page)
	c := comparison{p, found}
	var names []string
	for i, s := range found.Sides {
		name := c.name(i)
		if name == s.Side {
			name += " (" + layout.Shortened(s.Given, longestSide) + ")"
		}
		names = append(names, name)
	}
	title := "Comparison of " + and(names)
	p.Heading(title)
	c.spoken(nil)
	if slices.ContainsFunc(found.Sides, func(s compare.SideSummary) bool { return s.Guarantee != found.Sides[0].Guarantee }) {
		p.Line(layout.Doubtful.Of(guaranteesDiffer))
	}
	c.systems(nil)
	Conclusion(p, found, parting)
	p.Contents()
	of := c.courses(parting.Course)
	c.curves(of)
	c.sameTime(of)
	c.used()
	c.Gap()
	c.Chapter("the figures")
	c.folded(full)
	c.each(parting.Link)
	if len(parting.Left) > 0 {
		c.Gap()
		c.Chapter("left out of this comparison")
	}
	for _, text := range parting.Left {
		c.Bullet(text)
	}
	h := browser(title)
	h.Footer = "weir compare --json has the figures. " +
		aboutScript
	return h.Write(w, p)
}

// each names the runs of each side, and leads to their pages.
func (c comparison) each(link Linking) {
	c.Gap()
	c.Chapter("each run")
	for i, x := range c.Sides {
		spans := []layout.Span{layout.Strong.Of(c.name(i)), plain(": ")}
		for n, r := range x.Runs[:min(len(x.Runs), mostTogether)] {
			if n > 0 {
				spans = append(spans, plain(", "))
			}
			if spans = append(spans, link.span(r.Dir, r.Dir)); r.Why != "" {
				spans = append(spans, plain(" (left out: "+r.Why+")"))
			}
		}
		if n := len(x.Runs) - mostTogether; n > 0 {
			spans = append(spans, plain(fmt.Sprintf(" and %d more", n)))
		}
		c.Line(spans...)
	}
}

// folded writes what figures writes, with the long tables folded.
func (c comparison) folded(full bool) {
	c.differences()
	fold := func(title string, write func(comparison)) {
		inside := new(layout.Page)
		write(comparison{inside, c.Comparison})
		if !inside.Empty() {
			c.Fold(inside, plain(title))
		}
	}
	for i := range c.Sides[1:] {
		title := fmt.Sprintf("%s against %s: %s", c.name(i+1), c.name(0), came(c.Sides[i+1].Tally, c.Band))
		fold(title, func(c comparison) { c.changeTables(i + 1) })
	}
	for i := range c.Shifts {
		fold(shiftTitle(&c.Shifts[i]), func(c comparison) { c.shift(&c.Shifts[i], i == 0) })
	}
	if full {
		fold("Each run", comparison.runs)
	}
	fold("Figures that are not compared", comparison.missing)
	fold("The sides, as they were given", comparison.sides)
	fold("What the words of these tables mean", comparison.legend)
}

// curves plots the percentiles of the sides, with the objectives that their runs have in common.
func (c comparison) curves(of []runCourse) {
	if len(c.Shifts) == 0 {
		return
	}
	c.Gap()
	c.Chapter("latency, percentile by percentile")
	for i := range c.Shifts {
		c.drawn(&c.Shifts[i], fmt.Sprintf("shift%d", i+1), of)
	}
}

// drawn plots the percentiles of the sides on an axis of nines, with bands between the least and the
// largest of the single runs.
func (c comparison) drawn(s *compare.ShiftFunction, id string, of []runCourse) {
	f := &layout.Chart{
		Caption: "At each percentile the median over the runs, each of which counts once. The band lies between the lowest and the highest run; " +
			"of more than two systems it shows where one points at a name. Dashed: too few samples in some run, do not quote.",
		Chart: plot.Chart{ID: id, Title: strings.Replace(s.Family, ".", " ", 1) + " by percentile", Height: high, Heads: []string{"percentile", "median_ns", "lowest_run_ns", "highest_run_ns"}},
	}
	b := bounded{least: math.Inf(1), most: math.Inf(-1), first: nines(50), end: nines(90)}
	for i := range c.Sides[:min(len(c.Sides), layout.MostSeries)] {
		class := layout.Series(i + 1)
		var curve []curved
		for _, p := range s.Points {
			x := p.Sides[i]
			median, low, high := pointTexts(&x)
			curve = append(curve, curved{
				at:   nines(p.P),
				row:  &result.Percentile{P: p.P, NS: x.MedianNS, AtLeast: x.MedianAtLeast, Supported: x.MedianSupported, LoNS: &x.RunsLoNS, HiNS: &x.RunsHiNS},
				text: fmt.Sprintf("%s %s: %s, median of %s (%s)", c.name(i), percent(p.P), median, runs(c.Sides[i].Used), quantity.Range(low, high)),
			})
		}
		band, lines := b.lines(class, len(f.Legend)+1, curve)
		f.Bands = append(f.Bands, band)
		f.Lines = append(f.Lines, lines...)
		f.Legend = append(f.Legend, layout.Key{Class: class, Text: c.name(i)})
	}
	if n := len(c.Sides); n > layout.MostSeries {
		f.Caption += fmt.Sprintf(" The first %d of %d are drawn.", layout.MostSeries, n)
	}
	if math.IsInf(b.most, -1) || math.IsInf(b.least, 1) {
		return // nothing to draw
	}
	if b.zero {
		f.Caption += noZero
	}
	f.Desc = "Latency by percentile, of each side. The tables below have the values."
	f.X = nined(&b)
	least, most := min(b.least, b.most), b.most
	if group, kind, _ := strings.Cut(s.Family, "."); len(of) > 0 && kind != "system" {
		least, most = promises(f, promisedByAll(of), group, least, most, kind == "service")
	}
	f.Y = plot.Log(least, most, "latency", short)
	c.Chart(f)
}

// nined returns an axis of nines that covers the points of a chart.
func nined(b *bounded) plot.Axis {
	a := plot.Axis{Min: b.first - 0.08, Max: b.end + 0.05, Label: "percentile, each step one nine more"}
	for _, at := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999, 99.99999} {
		if x := nines(at); x >= b.first && x <= b.end+0.05 {
			a.Ticks = append(a.Ticks, plot.Tick{At: x, Text: percent(at)})
		}
	}
	return a
}
