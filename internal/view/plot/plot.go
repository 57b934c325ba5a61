// Package plot draws charts as static SVG: axes, lines with gaps, bands, shaded spans and marks. A chart
// needs no script, font or other resource. Its colours are classes (s1, s2, ... of series, see Chart) that
// the surrounding page styles, so that a page can be light or dark.
package plot

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// phoneLine is how high a line of text is on a phone.
const phoneLine = 20

// longTick is how many characters a phone shows beside the Y axis in its usual size.
const longTick = 7

// The size of a chart in its own units; the page scales it.
const (
	width  = 720
	left   = 76
	right  = 30
	top    = 26
	bottom = 54
	strip  = 10 // under the X axis, if the chart has one
)

// A Chart is one picture. Its texts may be untrusted: they are escaped.
type Chart struct {
	ID     string // prefix of the ids in it: unique on a page; letters, digits and hyphens
	Title  string // what it shows, for screen readers
	Desc   string // description, likewise
	X, Y   Axis
	Height int // in units; the width is 720 of them

	Spans   []Span // shaded, behind everything
	Cells   []Cell // of a heat map
	Bars    []Bar
	Bands   []Band
	Lines   []Line
	Rules   []Rule
	Marks   []Mark
	Under   []Mark // in a strip under the X axis; nil: no strip
	Later   bool   // a script draws the lines, and knows the columns
	Columns []Column
	Heads   []string // of the values of its dots, for a script; the first is the place on the X axis
}

// A Frame is the margins of a chart around its axes, in its units.
type Frame struct {
	Width  int `json:"width"`
	Left   int `json:"left"`
	Right  int `json:"right"`
	Top    int `json:"top"`
	Bottom int `json:"bottom"`
	Strip  int `json:"strip"` // additional bottom margin with a strip under the axis
}

// Framed returns the frame of every chart.
func Framed() Frame { return Frame{width, left, right, top, bottom, strip} }

// Drawn reports whether a rule lies within the Y axis. Others are not drawn.
func (c *Chart) Drawn(r Rule) bool {
	return !math.IsNaN(r.Y) && r.Y >= c.Y.Min && r.Y <= c.Y.Max
}

// A Cell is a rectangle of a heat map. Level is its darkness, from 1 to Levels.
type Cell struct {
	From, To float64 // on the X axis
	Lo, Hi   float64 // on the Y axis
	Level    int
	Apart    bool // in a different colour
}

// Levels is the number of shades in a heat map.
const Levels = 6

// A Rule is a horizontal line through the whole chart. Its name stands in the legend, where no curve crosses it.
type Rule struct {
	Y      float64
	Text   string // shown on hover
	Class  string
	Series int // as in a Line
}

// A Span shades a chart between two values of its X axis.
type Span struct {
	From, To float64
	Text     string // written at its top if wide enough
	Class    string // besides "span"
	Series   int    // its legend entry, which has its name: its number stands there; 0: none
}

// A Band is the area between two lines.
type Band struct {
	Class  string
	Points []BandPoint
	Series int // as in a Line
}

// mostBands is how many bands can be told apart where they overlap.
const mostBands = 2

// A BandPoint is the lower and upper end of a band at X; a NaN in it ends a segment.
type BandPoint struct{ X, Lo, Hi float64 }

// A Line joins points. A point with a NaN Y is a gap.
type Line struct {
	Class  string // "s1", and more after a space, such as "dash"
	Series int    // its legend entry, from 1; 0: none
	Points []Point
	Dots   bool // draw each point, with its text
	Loose  bool // the points are not joined
	Signed bool // of a loose line: each point has the number of its legend entry
}

// A Point is a point of a line.
type Point struct {
	X, Y float64
	Wide float64 // width of a step from X on
	Text string  // shown on hover
	Form Form
	Row  string // its values under Heads, see Row

	// Ends of an interval, drawn as a whisker through the dot. An infinite one is open; equal ones draw none.
	Low, High float64
}

// A Form is the shape of a point's dot.
type Form uint8

// The shapes of dots.
const (
	Full     Form = iota
	Hollow        // unreliable
	Upward        // a lower bound: an arrow up
	Square        // dominated by the instrument, not by what it measures
	Cross         // inconclusive
	Undotted      // none
)

// A Mark is an event at one value of the X axis: a stroke at the bottom or, with Tall, through the whole
// chart. In a strip it extends from X to To.
type Mark struct {
	X     float64
	Text  string
	Class string
	Tall  bool
	To    float64
}

// A Column is the hover text of a section of the X axis.
type Column struct {
	From, To float64
	Text     string
}

// SVG returns the chart as an svg element.
func (c *Chart) SVG() string {
	p := pen{chart: c, high: float64(c.Height) - top - bottom}
	if c.Under != nil {
		p.low = strip
		p.high -= strip
	}
	heads := ""
	if c.Heads != nil {
		heads = ` data-heads="` + escape(strings.Join(c.Heads, ",")) + `"`
	}
	p.linef(`<svg class="chart" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d"%s>`, width, c.Height, escape(c.ID), escape(c.ID), heads)
	p.linef(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, escape(c.ID), escape(c.Title), escape(c.ID), escape(c.Desc))
	p.group("back", len(c.Spans)+len(c.Cells), func() { p.spans(); p.cells() })
	p.group("ticks", 1, p.grid)
	p.bars()
	for _, b := range c.Bands {
		p.band(b)
	}
	p.group("front", len(c.Marks)+len(c.Under), func() { p.marks(); p.under() })
	for _, r := range c.Rules {
		p.rule(r)
	}
	for _, l := range c.Lines {
		p.line(l)
	}
	if !c.Later {
		p.columns()
	}
	for _, l := range c.Lines { // above the columns, to get the pointer first
		p.dots(l)
	}
	p.numbers()
	p.linef("</svg>")
	return p.String()
}

// A pen writes a chart.
type pen struct {
	strings.Builder
	chart *Chart
	high  float64 // height within the axes
	low   float64 // height of the strip under them
}

func (p *pen) linef(format string, args ...any) {
	fmt.Fprintf(&p.Builder, format, args...)
	p.WriteByte('\n')
}

// x and y are the positions of a value, always within the axes.
func (p *pen) x(v float64) float64 { return left + p.chart.X.part(v)*(width-left-right) }
func (p *pen) y(v float64) float64 { return top + (1-p.chart.Y.part(v))*p.high }

// group wraps what a script moves together in an element, if there is any.
func (p *pen) group(class string, n int, write func()) {
	if n == 0 {
		return
	}
	p.linef(`<g class="%s">`, class)
	write()
	p.linef("</g>")
}

// cells draws a heat map, each shade as one path.
func (p *pen) cells() {
	var paths [2][Levels + 1]path
	shade := func(c Cell) {
		of := &paths[0]
		if c.Apart {
			of = &paths[1]
		}
		x, y := p.x(c.From), p.y(c.Hi)
		if wide, high := p.x(c.To)-x, p.y(c.Lo)-y; wide > 0 && high > 0 {
			of[max(1, min(Levels, c.Level))].rect(x, y, wide, high)
		}
	}
	var open Cell // cells of one shade above each other are one rectangle
	for _, c := range p.chart.Cells {
		switch alike := c.From == open.From && c.To == open.To && c.Level == open.Level && c.Apart == open.Apart; {
		case alike && c.Lo == open.Hi:
			open.Hi = c.Hi
		case alike && c.Hi == open.Lo:
			open.Lo = c.Lo
		default:
			shade(open)
			open = c
		}
	}
	shade(open)
	for i, class := range []string{"heat", "heat apart"} {
		for level := range paths[i] {
			if d := paths[i][level].String(); d != "" {
				p.linef(`<path class="%s h%d" d="%s"/>`, class, level, d)
			}
		}
	}
}

// rule draws a line through the chart.
func (p *pen) rule(r Rule) {
	if p.chart.Drawn(r) {
		p.linef(`<path class="rule %s" d="M%d %sH%d"%s><title>%s</title></path>`, escape(r.Class), left, num(p.y(r.Y)), width-right, series(r.Series), escape(r.Text))
	}
}

// under draws the strip under the X axis: the marks of each class as one path.
func (p *pen) under() {
	end := map[string]float64{} // of the mark before, by class
	p.together(p.chart.Under, func(d *path, m Mark) {
		from := math.Max(p.x(m.X), end[m.Class]) // they are in the order of time, and may overlap
		to := math.Max(p.x(m.X)+1.2, p.x(math.Max(m.X, m.To)))
		if to > from {
			d.rect(from, top+p.high+2, to-from, strip-3)
			end[m.Class] = to
		}
	})
}

// together draws marks, those of one class as one path.
func (p *pen) together(marks []Mark, one func(*path, Mark)) {
	var classes []string
	paths := map[string]*path{}
	for _, m := range marks {
		if paths[m.Class] == nil {
			classes = append(classes, m.Class)
			paths[m.Class] = new(path)
		}
		one(paths[m.Class], m)
	}
	for _, class := range classes {
		p.linef(`<path class="%s" d="%s"/>`, escape(class), paths[class].String())
	}
}

func (p *pen) spans() {
	free := 0.0 // from where on no number stands
	for _, s := range p.chart.Spans {
		from, to := p.x(s.From), p.x(s.To)
		p.linef(`<rect class="%s" x="%s" y="%d" width="%s" height="%s"%s/>`, strings.TrimSpace("span "+escape(s.Class)), num(from), top, num(math.Max(1, to-from)), num(p.high), series(s.Series))
		switch {
		case s.Series > 0:
			free = math.Max(free, from)
			p.linef(`<text class="number sign" x="%s" y="%d"%s>%d</text>`, num(free+3), top+16, series(s.Series), s.Series)
			free += 16
		case to-from > 9*float64(len(s.Text)):
			p.linef(`<text class="faint n" x="%s" y="%d">%s</text>`, num(from+4), top+14, escape(s.Text))
		}
	}
}

func (p *pen) grid() {
	base := top + p.high
	var grid path
	for _, t := range p.chart.Y.Ticks {
		if !t.Head {
			grid.move(left, p.y(t.At))
			grid.line(width-right, p.y(t.At))
		}
	}
	for _, t := range p.chart.X.Ticks {
		grid.move(p.x(t.At), top)
		grid.line(p.x(t.At), base)
	}
	p.linef(`<path class="grid" d="%s"/>`, grid.String())
	lowest := math.Inf(1) // name of the Y axis on a narrow screen
	for _, t := range p.chart.Y.Ticks {
		y := p.y(t.At)
		switch {
		case t.Text == "":
		case t.Head:
			p.linef(`<text class="inside" font-weight="600" x="%d" y="%s">%s</text>`, left+4, num(y-4), escape(t.Text))
		case p.chart.Y.Inside:
			p.linef(`<text class="inside" x="%d" y="%s">%s</text>`, left+4, num(y-9), escape(t.Text))
		default:
			class := "end"
			if len(t.Text) > longTick {
				class = "end long"
			}
			if lowest-y < phoneLine {
				class += " n"
			} else {
				lowest = y
			}
			p.linef(`<text class="%s" x="%d" y="%s">%s</text>`, class, left-7, num(y+4), escape(t.Text))
		}
	}
	room := math.Inf(1) // on a narrow screen: where the name to the right begins
	crowded := map[int]bool{}
	for i, t := range slices.Backward(p.chart.X.Ticks) {
		at, half := p.x(t.At), 6.5*float64(utf8.RuneCountInString(t.Text))
		if crowded[i] = len(p.chart.X.Ticks) > 6 && i%2 == 1 || at+half > room; !crowded[i] {
			room = at - half
		}
	}
	for i, t := range p.chart.X.Ticks {
		class := "mid"
		if crowded[i] {
			class = "mid n" // narrow screens have no room for it
		}
		p.linef(`<text class="%s" x="%s" y="%s">%s</text>`, class, num(p.x(t.At)), num(base+p.low+21), escape(t.Text))
	}
	p.linef(`<path class="axis" d="M%d %dV%sH%d"/>`, left, top, num(base), width-right)
	p.linef(`<text class="faint end name" x="%d" y="%d">%s</text>`, width-right, p.chart.Height-8, escape(p.chart.X.Label))
	p.linef(`<text class="faint unit" x="%d" y="%d">%s</text>`, 4, 14, escape(p.chart.Y.Label))
}

func (p *pen) band(b Band) {
	var d path
	flush := func(part []BandPoint) {
		if len(part) < 2 {
			return
		}
		d.move(p.x(part[0].X), p.y(part[0].Hi))
		for _, at := range part[1:] {
			d.line(p.x(at.X), p.y(at.Hi))
		}
		for i := len(part) - 1; i >= 0; i-- {
			d.line(p.x(part[i].X), p.y(part[i].Lo))
		}
		d.close()
	}
	from := 0
	for i, at := range b.Points {
		if math.IsNaN(at.X) || math.IsNaN(at.Lo) || math.IsNaN(at.Hi) {
			flush(b.Points[from:i])
			from = i + 1
		}
	}
	flush(b.Points[from:])
	if d.begun {
		class := b.Class
		if len(p.chart.Bands) > mostBands {
			class += " quiet" // shown when its line is pointed at
		}
		p.linef(`<path class="band %s" d="%s"%s/>`, escape(class), d.String(), series(b.Series))
	}
}

// series marks the legend entry that an element belongs to.
func series(n int) string {
	if n == 0 {
		return ""
	}
	return ` data-n="` + strconv.Itoa(n) + `"`
}

func (p *pen) line(l Line) {
	if l.Loose {
		return
	}
	var d path
	joined, lone := false, false
	for _, at := range append(slices.Clip(l.Points), Point{Y: math.NaN()}) {
		if math.IsNaN(at.X) || math.IsNaN(at.Y) {
			if lone { // between two gaps
				d.dot()
			}
			joined, lone = false, false
			continue
		}
		x, y := p.x(at.X), p.y(at.Y)
		if joined {
			d.line(x, y)
		} else {
			d.move(x, y)
		}
		if at.Wide > 0 {
			d.line(p.x(at.X+at.Wide), y)
		}
		joined, lone = true, !joined && !(at.Wide > 0)
	}
	if d.begun && p.chart.Later {
		p.linef(`<path class="line %s"%s/>`, escape(l.Class), series(l.Series))
	} else if d.begun {
		p.linef(`<path class="line %s" d="%s"%s/>`, escape(l.Class), d.String(), series(l.Series))
	}
}

func (p *pen) dots(l Line) {
	if !l.Dots {
		return
	}
	p.linef(`<g class="%s"%s>`, escape(l.Class), series(l.Series))
	var whiskers path
	for _, at := range l.Points {
		if at.Low == at.High || math.IsNaN(at.Y) {
			continue
		}
		x := p.x(at.X)
		whiskers.move(x, p.y(at.Low))
		whiskers.line(x, p.y(at.High))
		for _, end := range []float64{at.Low, at.High} {
			if !math.IsInf(end, 0) {
				whiskers.move(x-4, p.y(end))
				whiskers.line(x+4, p.y(end))
			}
		}
	}
	if whiskers.begun {
		p.linef(`<path class="whisker" d="%s"/>`, whiskers.String())
	}
	for _, at := range l.Points {
		if math.IsNaN(at.X) || math.IsNaN(at.Y) {
			continue
		}
		x, y := p.x(at.X), p.y(at.Y)
		says, row := "<title>"+escape(at.Text)+"</title>", ""
		if at.Row != "" {
			row = ` data-v="` + escape(at.Row) + `"`
		}
		switch at.Form {
		case Full:
			p.linef(`<circle class="dot" cx="%s" cy="%s" r="3.5"%s>%s</circle>`, num(x), num(y), row, says)
		case Hollow:
			p.linef(`<circle class="hollow" cx="%s" cy="%s" r="3.5"%s>%s</circle>`, num(x), num(y), row, says)
		case Square:
			p.linef(`<rect class="square" x="%s" y="%s" width="8" height="8"%s>%s</rect>`, num(x-4), num(y-4), row, says)
		case Cross:
			p.linef(`<path class="hollow" d="M%s %sl7 7m0-7l-7 7"%s>%s</path>`, num(x-3.5), num(y-3.5), row, says)
		case Upward:
			p.linef(`<path class="hollow" d="M%s %sl5 9h-10Z"%s>%s</path>`, num(x), num(y-5), row, says)
		}
	}
	p.linef("</g>")
}

// Row is the values of a dot; NaN: none.
func Row(values ...float64) string {
	said := make([]string, len(values))
	for i, v := range values {
		if !math.IsNaN(v) {
			said[i] = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return strings.Join(said, ",")
}

// marks draws tall marks, each with its text, and the others of a class as one path.
func (p *pen) marks() {
	base := top + p.high
	var plain []Mark
	for _, m := range p.chart.Marks {
		if !m.Tall || p.chart.Later { // a script has the texts
			m.Class = "mark " + m.Class
			plain = append(plain, m)
			continue
		}
		p.linef(`<path class="mark %s" d="M%s %sv%s"><title>%s</title></path>`, escape(m.Class), num(p.x(m.X)), num(base), num(-p.high), escape(m.Text))
	}
	p.together(plain, func(d *path, m Mark) {
		up := 9.0
		if m.Tall {
			up = p.high
		}
		d.move(p.x(m.X), base)
		d.line(p.x(m.X), base-up)
	})
}

func (p *pen) columns() {
	for _, c := range p.chart.Columns {
		from, to := p.x(c.From), p.x(c.To)
		p.linef(`<rect class="column" x="%s" y="%d" width="%s" height="%s"><title>%s</title></rect>`, num(from), top, num(to-from), num(p.high), escape(c.Text))
	}
}

// num formats a coordinate to a tenth of a unit.
func num(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// escape escapes a text for an element or an attribute.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
