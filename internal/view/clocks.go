package view

import (
	"fmt"
	"math"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// clockCourses draws how far the clocks of agents moved from the coordinator's in the run, and how well that is
// known.
func (t *single) clockCourses() {
	f := &layout.Chart{Chart: plot.Chart{ID: t.o.drawn + "clocks", Title: "agents' clocks over time", Height: low}}
	o := originOf(t.r)
	least, most, from, to, left := 0.0, 0.0, math.Inf(1), math.Inf(-1), 0
	for i := range t.r.Agents {
		a := &t.r.Agents[i]
		if len(a.Clock.Course) == 0 {
			continue
		}
		if len(f.Legend) == mostColours {
			left++
			continue
		}
		n := len(f.Legend) + 1
		line, band := plot.Line{Class: layout.Series(n), Series: n, Dots: true}, plot.Band{Class: layout.Series(n), Series: n}
		for j := range a.Clock.Course {
			l := &a.Clock.Course[j]
			for _, at := range []int64{l.FromNS, l.ToNS} {
				x, y, bound := o.seconds(at), offsetAt(l, at), float64(l.BoundNS)
				least, most, from, to = min(least, y-bound), max(most, y+bound), min(from, x), max(to, x)
				line.Points = append(line.Points, plot.Point{X: x, Y: y, Text: fmt.Sprintf("%s: %s ±%s at %s", a.Name, quantity.Time(int64(y)), quantity.Time(l.BoundNS), o.says(at))})
				band.Points = append(band.Points, plot.BandPoint{X: x, Lo: y - bound, Hi: y + bound})
			}
			gap := o.seconds(l.ToNS)
			line.Points = append(line.Points, plot.Point{X: gap, Y: math.NaN()})
			band.Points = append(band.Points, plot.BandPoint{X: gap, Lo: math.NaN(), Hi: math.NaN()})
		}
		f.Legend = append(f.Legend, layout.Key{Class: layout.Series(n), Text: a.Name})
		f.Lines, f.Bands = append(f.Lines, line), append(f.Bands, band)
	}
	if len(f.Legend) == 0 {
		return
	}
	f.Caption = "What weir adds to each agent's times beyond the offset at the start, and how far it may be off (the band). A break is a step of a clock. " +
		"An agent that reads the coordinator's clock has no line."
	if left > 0 {
		f.Caption += fmt.Sprintf(" %s not drawn.", quantity.Counted(uint64(left), "further agent is", "further agents are"))
	}
	f.Desc = "The table has each agent's offset at the start and its bound."
	f.X = seconds(from, to)
	f.Y = plot.Linear(least, most, 4, "correction", timeText)
	t.Chart(f)
}

// offsetAt is the offset of a line at one of its instants, in ns.
func offsetAt(l *result.ClockLine, at int64) float64 {
	return float64(l.OffsetNS) + float64(l.DriftPPB)*float64(at-l.FromNS)/1e9
}
