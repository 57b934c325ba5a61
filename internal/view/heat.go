package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// Limits of a heat map, whatever the run, so that browsers can open the page.
const (
	mostHeatColumns = 120
	mostHeatRows    = 40
)

// heat draws all latencies of each direction over time.
func (t *single) heat() {
	c := t.Course
	if c == nil || len(c.mosaics) == 0 {
		return
	}
	t.Gap()
	t.Chapter("all latencies over time")
	t.Line(layout.Faint.Of("The stronger the colour of a field, the more messages took so long at that time, by the logarithm of their number. The faintest is a single message. " +
		"Percentiles hide shapes that show here: two bands, bursts, a slow rise."))
	for _, of := range directions {
		m := c.mosaics[of]
		if m == nil || len(m.parts) == 0 {
			continue
		}
		cells, least, most := m.cells(c.origin)
		if len(cells) == 0 {
			continue
		}
		f := &layout.Chart{Chart: plot.Chart{
			ID: t.o.drawn + of + "-heat", Title: of + " " + t.counted() + " of every message", Height: high, Cells: cells,
			X: seconds(c.from, c.to),
		}, Timed: &layout.Timed{Unit: layout.Nanoseconds, Of: of, Heat: true}}
		for i, x := range []curve{{of + ".p50", "p50", "s1"}, {of + ".p99", "p99", "s2"}} {
			if points := c.tracks[x.track].points; len(points) > 0 {
				f.Lines = append(f.Lines, plot.Line{Class: x.class, Points: points, Series: i + 1})
			}
			f.Legend = append(f.Legend, layout.Key{Class: x.class, Text: x.name})
		}
		if slices.ContainsFunc(cells, func(x plot.Cell) bool { return x.Apart }) {
			f.Legend = append(f.Legend, layout.Key{Class: "apart", Text: uncompleted[of]})
			f.Caption = "Messages that " + uncompleted[of] + " are drawn at the time when they were due, as old as they were at the end of the run: they took at least so long."
		}
		least, most = promises(f, t.r.Verdict.SLO, of, least, most, t.r.Run.Loop == result.LoopClosed)
		f.Y = plot.Log(least, most, "latency", short)
		f.Desc = "From " + seconded(c.from) + " to " + seconded(c.to) + " of the run, latencies from " + timeText(least) + " to " + timeText(most) + "."
		f.Marks, f.Under = c.strokes(), c.stalled()
		t.Chart(f)
		t.Embed(of, m.pack(c.origin)) // last, since it may merge parts
	}
}

// uncompleted says, by direction, what did not happen to messages that did not complete.
var uncompleted = map[string]string{"send": "were never confirmed", "rtt": "were never answered", "e2e": "never came"}

// counted names the latencies over time: responses, or services in a closed loop.
func (t *single) counted() string {
	if t.r.Run.Loop == result.LoopClosed {
		return "service"
	}
	return "response"
}

// cells returns the cells of a heat map, and its least and greatest latency.
func (m *heatmap) cells(o origin) (all []plot.Cell, least, most float64) {
	lowest, highest := math.MaxInt, 0
	for i := range m.parts {
		for x := range m.parts[i].tiles() {
			lowest, highest = min(lowest, x.bucket), max(highest, x.bucket)
		}
	}
	if lowest > highest {
		return nil, 0, 0
	}
	together := 1 // adjacent buckets
	for (highest-lowest)/together >= mostHeatRows {
		together *= 2
	}
	step := (len(m.parts) + mostHeatColumns - 1) / mostHeatColumns
	type field struct {
		column int
		tile
	}
	counts, densest := map[field]uint64{}, uint64(1)
	for i := range m.parts {
		for x, n := range m.parts[i].tiles() {
			at := field{i / step, tile{x.bucket / together, x.never}}
			counts[at] += n
			densest = max(densest, counts[at])
		}
	}
	for at, n := range counts {
		first, last := m.parts[at.column*step], m.parts[min((at.column+1)*step, len(m.parts))-1]
		all = append(all, plot.Cell{
			From: o.seconds(first.from), To: o.seconds(last.to),
			Lo: float64(max(1, tileLowest(at.bucket*together))), Hi: float64(tileLowest((at.bucket + 1) * together)),
			Level: shade(n, densest), Apart: at.never,
		})
	}
	slices.SortFunc(all, func(a, b plot.Cell) int { // map order is random, and the page must be reproducible
		if by := cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Lo, b.Lo)); by != 0 || !a.Apart {
			return cmp.Or(by, -1)
		}
		return 1 // above the other
	})
	return all, float64(max(1, tileLowest(lowest))), float64(tileLowest(highest + 1))
}

// shade is the darkness of a cell with n messages, where the fullest has densest.
func shade(n, densest uint64) int {
	if n <= 1 || densest <= 1 {
		return 1
	}
	return 1 + int(math.Round(float64(plot.Levels-1)*math.Log(float64(n))/math.Log(float64(densest))))
}
