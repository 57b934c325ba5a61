package plot

import (
	"cmp"
	"math"
	"slices"
)

// A numbered is where the number of a legend entry belongs: beside x and y.
type numbered struct {
	n    int
	x, y float64
}

// numbers writes the numbers of legend entries, a sign beside their colours: at the end of each line and
// rule, left of signed points, and in bars. A chart of one entry needs none.
func (p *pen) numbers() {
	var ends []numbered
	signed := map[float64][]numbered{} // by the place on the X axis
	var places []float64
	for _, l := range p.chart.Lines {
		if l.Series == 0 || l.Loose && !l.Signed {
			continue
		}
		end := numbered{n: l.Series, x: math.Inf(-1)}
		for _, at := range l.Points {
			if math.IsNaN(at.X) || math.IsNaN(at.Y) {
				continue
			}
			here := numbered{l.Series, p.x(at.X + at.Wide), p.y(at.Y)}
			if !l.Loose {
				if here.x >= end.x {
					end = here
				}
				continue
			}
			if signed[here.x] == nil {
				places = append(places, here.x)
			}
			signed[here.x] = append(signed[here.x], here)
		}
		i := slices.IndexFunc(ends, func(x numbered) bool { return x.n == end.n })
		switch {
		case math.IsInf(end.x, 0):
		case i < 0:
			ends = append(ends, end)
		case end.x >= ends[i].x: // of a line in parts the last
			ends[i] = end
		}
	}
	for _, r := range p.chart.Rules {
		if r.Series > 0 && p.chart.Drawn(r) {
			ends = append(ends, numbered{r.Series, width - right, p.y(r.Y)})
		}
	}
	if len(ends) < 2 {
		ends = nil
	}
	p.column(ends, "number", 6)
	for _, x := range places {
		if x < left+20 { // the axis has its texts there
			p.column(signed[x], "number", 7)
			continue
		}
		p.column(signed[x], "number end", -7)
	}
	p.barNumbers()
}

// column writes numbers at one side of their places. Those that would lie on each other stand in two columns.
func (p *pen) column(all []numbered, class string, side float64) {
	const high, wide = 12, 14
	lowest, aside := math.Inf(-1), 0.0
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.y, b.y), a.n-b.n) })
	for _, x := range all {
		if x.y < lowest+2*high {
			aside = math.Copysign(wide, side) - aside
		} else {
			aside = 0
		}
		lowest = math.Max(x.y, lowest+high)
		p.linef(`<text class="%s" x="%s" y="%s"%s>%d</text>`, class, num(x.x+side+aside), num(lowest+4), series(x.n), x.n)
	}
}

// barNumbers writes in each bar the number of its legend entry, where it has room and bars are of several entries.
func (p *pen) barNumbers() {
	const room, roomOnPhone = 16, 30
	bars := p.chart.Bars
	if !slices.ContainsFunc(bars, func(b Bar) bool { return b.Series != bars[0].Series }) {
		return
	}
	for _, b := range bars {
		from, to := p.x(b.From), p.x(b.To)
		class := "number mid"
		if to-from < roomOnPhone {
			class += " n"
		}
		if b.Series > 0 && to-from >= room {
			p.linef(`<text class="%s" x="%s" y="%s"%s>%d</text>`, class, num((from+to)/2), num(top+p.high-4), series(b.Series), b.Series)
		}
	}
}
