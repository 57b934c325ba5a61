package suite

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// distributions are those that a row can have drawn.
var distributions = [...]string{"send.response", "send.service", "e2e.response", "e2e.service", "rtt.response", "rtt.service"}

// distribution returns one of them; nil where the run has none.
func distribution(l *result.Latency, name string) *result.Dist {
	switch name {
	case "send.response":
		return l.Send.Response
	case "send.service":
		return l.Send.Service
	case "e2e.response":
		return l.E2E.Response
	case "e2e.service":
		return l.E2E.Service
	case "rtt.response":
		return l.RTT.Response
	case "rtt.service":
		return l.RTT.Service
	}
	return nil
}

// drawnAt returns the percentiles of a curve, beside those that every result has: evenly
// below each further nine, more finely than a picture can show.
func drawnAt() (all []float64) {
	for i := 1; i < 100; i++ {
		all = append(all, float64(i))
	}
	for i := 991; i < 1000; i++ {
		all = append(all, float64(i)/10)
	}
	for i := 9991; i < 10_000; i++ {
		all = append(all, float64(i)/100)
	}
	return all
}

// Bounds of what is drawn.
const (
	mostCurves   = 4
	mostChances  = 6
	mostRequests = 10_000
)

// curves reads what a row has drawn.
func (r *reader) curves(n *tree.Node, path string) []Curve {
	v := n.Field("curves")
	if v == nil {
		return nil
	}
	if v.Shape != tree.List || len(v.Items) == 0 || len(v.Items) > mostCurves {
		r.fault(v.At, tree.Join(path, "curves"), "does not fit (a list of 1 to %d)", mostCurves)
		return nil
	}
	var all []Curve
	for i, item := range v.Items {
		at := fmt.Sprintf("%s.curves[%d]", path, i)
		if !r.keys(item, at, "of", "as") {
			continue
		}
		c := Curve{Of: r.text(item, at, "of", true), As: r.text(item, at, "as", true)}
		if c.Of != "" && !slices.Contains(distributions[:], c.Of) {
			r.fault(item.At, at+".of", "%q is not a distribution (%s)", c.Of, strings.Join(distributions[:], ", "))
		}
		all = append(all, c)
	}
	return all
}

// chances reads which chances are drawn.
func (r *reader) chances(n *tree.Node) (c Chances) {
	v := n.Field("chances")
	if v == nil || !r.keys(v, "chances", "percentiles", "requests") {
		return c
	}
	for _, text := range r.texts(v, "chances", "percentiles") {
		p, err := strconv.ParseFloat(text, 64)
		if err != nil || !(p > 0 && p < 100) {
			r.fault(v.At, "chances.percentiles", "%q does not fit (above 0 and below 100)", text)
			continue
		}
		c.Percentiles = append(c.Percentiles, p)
	}
	if len(c.Percentiles) == 0 || len(c.Percentiles) > mostChances {
		r.fault(v.At, "chances.percentiles", "does not fit (a list of 1 to %d)", mostChances)
	}
	var err error
	if c.Requests, err = strconv.Atoi(r.text(v, "chances", "requests", true)); err != nil || c.Requests < 2 || c.Requests > mostRequests {
		r.fault(v.At, "chances.requests", "does not fit (2 to %d)", mostRequests)
		c.Requests = 2
	}
	return c
}

// A Drawing is a curve of a run.
type Drawing struct {
	Of     string  `json:"of"`
	As     string  `json:"as"`
	Points []Point `json:"points"`
}

// A Point is a percentile of a curve.
type Point struct {
	P         float64 `json:"p"` // percent; 100: the largest of the run
	NS        int64   `json:"ns"`
	AtLeast   bool    `json:"at_least,omitempty"`
	Supported bool    `json:"supported"` // by enough samples
}

// drawings are the curves of a row, of a run.
func (row *Row) drawings(l *result.Latency) []Drawing {
	var all []Drawing
	for _, c := range row.Curves {
		d := Drawing{Of: c.Of, As: c.As, Points: []Point{}}
		if of := distribution(l, c.Of); of != nil {
			if of.MinNS != nil && len(of.Percentiles) > 0 {
				d.Points = append(d.Points, Point{P: 0, NS: *of.MinNS, Supported: true})
			}
			for _, p := range of.Percentiles {
				d.Points = append(d.Points, Point{P: p.P, NS: p.NS, AtLeast: p.AtLeast, Supported: p.Supported})
			}
		}
		all = append(all, d)
	}
	return all
}

// curves puts the curves of each line on the page.
func (r *Report) curves(p *layout.Page) {
	usual := judge.Percentiles() // these have dots
	for i, l := range r.Rows {
		if len(l.Curves) == 0 {
			continue
		}
		title := fmt.Sprintf("%s, %s: percentile by percentile, all of one run", l.Row, l.System)
		c := &layout.Chart{Caption: "An arrow: at least so much. Hollow: too few samples, do not quote; the last dot is the largest."}
		c.Chart = plot.Chart{ID: fmt.Sprintf("curves%d", i), Title: title, Height: 330}
		end, least, most := 1.0, math.Inf(1), 1.0
		var said []string
		for n, d := range l.Curves {
			line := plot.Line{Class: fmt.Sprintf("s%d", n+1), Dots: true}
			c.Legend = append(c.Legend, layout.Key{Class: line.Class, Text: d.As + " (" + d.Of + ")"})
			last := 0.0
			for _, x := range d.Points {
				at := last + 0.3 // the largest stands right of what has so many samples
				if x.P < 100 {
					at = -math.Log10(1 - x.P/100)
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
				text := fmt.Sprintf("%s, %s: %s", d.As, percent(x.P), result.Bound(float64(x.NS), x.AtLeast).Text(func(v float64) string { return quantity.Time(int64(v)) }))
				line.Points = append(line.Points, plot.Point{X: at, Y: float64(x.NS), Text: text, Form: form})
				if x.P == 50 || x.P == 99 || x.P == 100 {
					said = append(said, text)
				}
				last, end, most = at, max(end, at), max(most, float64(x.NS))
				if x.NS > 0 {
					least = min(least, float64(x.NS))
				}
			}
			c.Lines = append(c.Lines, line)
		}
		c.Desc = strings.Join(said, "; ")
		c.X = plot.Axis{Min: 0, Max: end, Label: "percentile, on a scale of nines"}
		for _, q := range [...]float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
			if at := -math.Log10(1 - q/100); at <= end {
				c.X.Ticks = append(c.X.Ticks, plot.Tick{At: at, Text: percent(q)})
			}
		}
		c.Y = plot.Log(min(least, most), most, "latency", func(v float64) string { return shown("ns", v) })
		p.Gap()
		p.Chart(c)
	}
}

func percent(p float64) string {
	switch p {
	case 0:
		return "least"
	case 100:
		return "largest"
	}
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}

// chart draws how likely a page of so many requests meets a percentile: 1 - p^N.
func (c *Chances) chart(p *layout.Page) {
	if c == nil || len(c.Percentiles) == 0 {
		return
	}
	const steps = 120
	title := "pages with a request that is slower than a percentile, by requests of a page"
	out := &layout.Chart{Caption: "1 - p^N, if requests are slow independently of one another. It needs no run."}
	out.Chart = plot.Chart{ID: "chances", Title: title, Height: 330}
	var said []string
	for i, q := range c.Percentiles {
		line := plot.Line{Class: fmt.Sprintf("s%d", i+1), Dots: true}
		had := 0
		for k := range steps + 1 {
			n := int(math.Round(math.Pow(float64(c.Requests), float64(k)/steps))) // even on a logarithmic axis
			if n == had {
				continue
			}
			had = n
			share := 100 * stats.SessionShare(q, uint64(n))
			line.Points = append(line.Points, plot.Point{X: float64(n), Y: share, Form: plot.Undotted})
		}
		half := int(math.Ceil(stats.SessionMessages(q, 0.5)))
		text := fmt.Sprintf("half of all pages of %s meet the %s", quantity.Counted(half, "request", "requests"), percent(q))
		if half <= c.Requests {
			line.Points = mark(line.Points, plot.Point{X: float64(half), Y: 100 * stats.SessionShare(q, uint64(half)), Text: text})
		}
		said = append(said, text)
		out.Legend = append(out.Legend, layout.Key{Class: line.Class, Text: "the " + percent(q)})
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

// mark puts a point among those of a line, by its place.
func mark(points []plot.Point, x plot.Point) []plot.Point {
	i, _ := slices.BinarySearchFunc(points, x.X, func(p plot.Point, at float64) int { return int(p.X - at) })
	return slices.Insert(points, i, x)
}
