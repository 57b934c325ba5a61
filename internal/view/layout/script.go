package layout

import (
	_ "embed" // the script of a page
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/view/plot"
)

// pageScript is the one script of a page. It adds to charts: values under the cursor, lines
// that can be hidden, zoom, and what was measured in a part of the time. Without it a page
// is whole.
//
//go:embed page.js
var pageScript string

// A Unit says how the script formats values of a chart.
type Unit string

// The units of values: latencies in ns, messages per second, numbers, bytes, and cores.
const (
	Nanoseconds Unit = "time"
	PerSecond   Unit = "rate"
	Numbers     Unit = "count"
	Octets      Unit = "bytes"
	Cores       Unit = "cores"
)

// Timed says that a chart's X axis is the time of a run in seconds. The script then zooms and selects all
// such charts of the page together.
type Timed struct {
	Unit Unit
	Of   string // name of the embedded data behind the chart (see Embed); "" for none
	Heat bool   // a heat map of cells of one height, with a fixed Y axis
}

// Embed embeds data for the page's script under a name, as JSON.
func (p *Page) Embed(name string, v any) {
	if p.embedded == nil {
		p.embedded = map[string]any{}
	}
	p.embedded[name] = v
}

// script is the data and code of the page's script; empty for a page without charts.
type script struct{ Data, Code string }

// scriptOf gathers what the script of a page needs.
func scriptOf(p *Page) (script, error) {
	charts := chartsOf(p)
	if len(charts) == 0 {
		return script{}, nil
	}
	all := struct {
		Frame  plot.Frame     `json:"frame"`
		Charts []drawing      `json:"charts"`
		Data   map[string]any `json:"data"` // as embedded
	}{Frame: plot.Framed(), Charts: []drawing{}, Data: p.embedded}
	for _, c := range charts {
		if c.Timed != nil {
			all.Charts = append(all.Charts, drawingOf(c))
		}
	}
	b, err := json.Marshal(all) // escapes <, > and &, so that no text ends the element
	return script{string(b), lean(pageScript)}, err
}

// lean drops the comments and indents of a script, which readers of a page do not need.
func lean(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimLeft(line, " "); !strings.HasPrefix(line, "//") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// chartsOf returns the charts of a page and of its nested pages.
func chartsOf(p *Page) (all []*Chart) {
	for _, x := range p.blocks {
		if x.Chart != nil {
			all = append(all, x.Chart)
		}
		if x.Inside != nil {
			all = append(all, chartsOf(x.Inside)...)
		}
	}
	return all
}

// A drawing is a chart over time as the script reads it.
type drawing struct {
	ID     string     `json:"id"`
	X      [2]float64 `json:"x"`
	Y      [2]float64 `json:"y"`
	Log    bool       `json:"log"`
	Unit   Unit       `json:"unit"`
	Of     string     `json:"of,omitempty"`
	Heat   bool       `json:"heat,omitempty"`
	Height int        `json:"height"`
	Strip  bool       `json:"strip,omitempty"`
	Names  []string   `json:"names"` // of the legend
	Rules  []float64  `json:"rules"` // only the drawn ones
	Lines  []stroke   `json:"lines"`
}

// A stroke is a line of a drawing. Lines with the same X values share them.
type stroke struct {
	Series int             `json:"n"`
	Dots   bool            `json:"dots,omitempty"` // points without a line
	X      json.RawMessage `json:"x,omitempty"`    // absent: X and To are those of the line before
	To     json.RawMessage `json:"to,omitempty"`   // ends of the steps that begin at X; absent: points are joined
	Y      json.RawMessage `json:"y"`
}

func drawingOf(c *Chart) drawing {
	d := drawing{
		ID: c.ID, X: [2]float64{c.X.Min, c.X.Max}, Y: [2]float64{c.Y.Min, c.Y.Max}, Log: c.Y.Log, Unit: c.Timed.Unit, Of: c.Timed.Of, Heat: c.Timed.Heat,
		Height: c.Height, Strip: c.Under != nil, Names: []string{}, Rules: []float64{}, Lines: []stroke{},
	}
	for _, k := range c.Legend {
		d.Names = append(d.Names, k.Text)
	}
	for _, r := range c.Rules {
		if c.Drawn(r) {
			d.Rules = append(d.Rules, r.Y)
		}
	}
	before := ""
	for _, l := range c.Lines {
		digits := 6
		if c.Timed.Unit == Nanoseconds {
			digits = 4
		}
		x := numbers(l.Points, 9, func(p plot.Point) float64 { return math.Round(p.X*1000) / 1000 })
		to := ""
		if slices.ContainsFunc(l.Points, func(p plot.Point) bool { return p.Wide > 0 }) {
			to = numbers(l.Points, 9, func(p plot.Point) float64 { return math.Round((p.X+p.Wide)*1000) / 1000 })
		}
		s := stroke{Series: l.Series, Dots: l.Dots, Y: json.RawMessage(numbers(l.Points, digits, func(p plot.Point) float64 { return p.Y }))}
		if x+to != before {
			s.X, s.To, before = json.RawMessage(x), json.RawMessage(to), x+to
		}
		d.Lines = append(d.Lines, s)
	}
	return d
}

// numbers encodes values of points as JSON with that many digits; null for NaN.
func numbers(points []plot.Point, digits int, of func(plot.Point) float64) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, p := range points {
		if i > 0 {
			b.WriteByte(',')
		}
		v := of(p)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b.WriteString("null")
			continue
		}
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // its own output
		b.WriteString(strconv.FormatFloat(rounded, 'f', -1, 64))
	}
	b.WriteByte(']')
	return b.String()
}
