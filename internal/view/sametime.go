package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// mostTogether is how many runs share one time axis, in the colours of at most layout.MostSeries series.
const mostTogether = 24

// A runCourse is a run's course and its series in the legend, from 1.
type runCourse struct {
	course *Course
	series int
}

// onOneAxis draws several runs over one time axis, aligned at the end of each warm-up: the messages
// received per second, under the page's word for it, and p99 of each direction.
func onOneAxis(p *layout.Page, of []runCourse, names []string, word, says string) {
	if len(of) < 2 {
		return
	}
	from, to := math.Inf(1), math.Inf(-1)
	for _, x := range of {
		from, to = min(from, x.course.from), max(to, x.course.drains())
	}
	first := true
	for _, x := range []struct {
		track, title string
		unit         layout.Unit
	}{
		{"received", "messages " + word, layout.PerSecond},
		{"send.p99", "send p99", layout.Nanoseconds},
		{"rtt.p99", "rtt p99", layout.Nanoseconds},
		{"e2e.p99", "e2e p99", layout.Nanoseconds},
	} {
		f := &layout.Chart{Chart: plot.Chart{ID: "all-" + strings.TrimSuffix(x.track, ".p99") + "-time", Title: x.title + ", of each run over time", Height: high}, Timed: &layout.Timed{Unit: x.unit}}
		for _, r := range of {
			points := r.course.tracks[x.track].points
			until := r.course.drains()
			if points = slices.DeleteFunc(slices.Clone(points), func(p plot.Point) bool { return p.X >= until }); len(points) > 0 {
				f.Lines = append(f.Lines, plot.Line{Class: layout.Series(r.series), Series: r.series, Points: points})
			}
		}
		least, most := ends(f.Lines)
		if len(f.Lines) < 2 || most <= 0 {
			continue
		}
		for i, name := range names {
			f.Legend = append(f.Legend, layout.Key{Class: layout.Series(i + 1), Text: name})
		}
		f.X = seconds(from, to)
		f.Y = plot.Linear(0, 1.15*most, 4, "per second", countText)
		if x.unit == layout.Nanoseconds {
			group, _, _ := strings.Cut(x.track, ".")
			promised := slices.DeleteFunc(promisedByAll(of), func(s result.SLO) bool {
				o, err := judge.ParseObjective(s.Expr)
				p, is := o.Percentile()
				return err != nil || !is || p != 99
			})
			least, most = promises(f, promised, group, least, most, of[0].course.closed)
			f.Y = plot.Log(least, most, "latency", short)
		}
		text := textOf(x.unit)
		f.Desc = fmt.Sprintf("%s lines from %s to %s of the runs, between %s and %s.", quantity.Count(uint64(len(f.Lines))), seconded(from), seconded(to), text(least), text(most))
		if first {
			p.Gap()
			p.Chapter("over the same time")
			p.Line(layout.Faint.Of(says))
			first = false
		}
		p.Chart(f)
	}
}

// promisedByAll returns the objectives that all runs have.
func promisedByAll(of []runCourse) (all []result.SLO) {
	for _, s := range of[0].course.promised {
		having := 0
		for _, x := range of {
			for _, y := range x.course.promised {
				if y.Expr != s.Expr {
					continue
				}
				having++
				if y.Outcome() != s.Outcome() {
					s.Status = "not the same in all runs"
				}
			}
		}
		if having == len(of) {
			all = append(all, s)
		}
	}
	return all
}

// drains is when the drain of a run begins: it is as long as each system needs, and nothing is sent in it. It is the
// end of a run whose messages come only then.
func (c *Course) drains() float64 {
	received := c.tracks["received"].points
	first := slices.IndexFunc(received, func(p plot.Point) bool { return p.Y > 0 })
	for _, s := range c.spans {
		if s.Text == "drain" && (first < 0 || received[first].X < s.From) {
			return s.From
		}
	}
	return c.to
}

// ends returns the least value above 0 and the greatest value of lines.
func ends(lines []plot.Line) (least, most float64) {
	least = math.Inf(1)
	for _, l := range lines {
		for _, at := range l.Points {
			for _, y := range []float64{at.Y, at.Low, at.High} {
				if y > 0 && !math.IsInf(y, 0) {
					least, most = min(least, y), max(most, y)
				}
			}
		}
	}
	return least, most
}

// sameTime draws the runs of an overview that are not compared, each in its own colour.
func sameTime(p *layout.Page, entries []Entry, names []string) {
	says := "0 is the end of the warm-up of each run. A step is a second. A gap is a second with too few samples. The drain is not drawn."
	if n := len(entries); n > layout.MostSeries {
		entries, names = entries[:layout.MostSeries], names[:layout.MostSeries]
		says += fmt.Sprintf(" The first %d of %d runs are drawn.", layout.MostSeries, n)
	}
	var of []runCourse
	var results []*result.Result
	for i, e := range entries {
		results = append(results, e.Result)
		if e.Course != nil {
			of = append(of, runCourse{e.Course, i + 1})
		}
	}
	onOneAxis(p, of, names, arrived(results...), says)
}

// most is how many runs of each side are drawn over time.
func (c comparison) most() int { return max(1, mostTogether/len(c.Sides)) }

// courses returns the courses of the runs of a comparison that count, the first of each side.
func (c comparison) courses(course func(dir string) *Course) (of []runCourse) {
	if course == nil || len(c.Sides) > layout.MostSeries {
		return nil
	}
	for i, side := range c.Sides {
		drawn := 0
		for _, r := range side.Runs {
			if r.Why != "" || drawn == c.most() {
				continue
			}
			if x := course(r.Dir); x != nil {
				of = append(of, runCourse{x, i + 1})
				drawn++
			}
		}
	}
	return of
}

// sameTime draws runs of a comparison in the colours of their sides.
func (c comparison) sameTime(of []runCourse) {
	var names []string
	for i := range c.Sides {
		names = append(names, c.name(i))
	}
	says := "Each line is a run in the colour of its system. 0 is the end of its warm-up. A step is a second. A gap is a second with too few samples. The drain is not drawn."
	if slices.ContainsFunc(c.Sides, func(s compare.SideSummary) bool { return s.Used > c.most() }) {
		says += fmt.Sprintf(" Of each system the first %d runs are drawn.", c.most())
	}
	onOneAxis(c.Page, of, names, "received", says)
}
