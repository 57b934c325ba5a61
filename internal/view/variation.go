package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// A Spot is the figure of one run.
type Spot struct {
	Series  string // its line in the chart
	Key     string // the key's value as written
	Value   result.Value
	Weak    bool // unreliable
	Printed bool // from an article: a dot of its own
}

// A Variation is a figure to draw over the values of a key.
type Variation struct {
	ID      string // unique on a page
	Title   string
	Key     string // the varied key
	Caption string // said besides how to read the chart
	Write   func(float64) string
	Spots   []Spot
}

// Limits of a chart.
const (
	mostPlaces      = 24   // of a key with text values
	mostTicks       = 12   // of a key with numbers
	logarithmicFrom = 20.0 // largest/least value from which the axis is logarithmic
)

// keyNumber reads the value of a key: a number, a size, a time or a rate. The values of one key are of one
// kind, so their numbers are comparable.
func keyNumber(text string) (v float64, ok bool) {
	text = strings.TrimSpace(text)
	if n, ok := quantity.Whole(text); ok {
		return float64(n), true
	}
	if n, rest, err := quantity.Decimal(text); err == nil && (rest == "" || rest == "%") {
		v, _ := n.Float64()
		return v, true
	}
	if d, err := quantity.Duration(text); err == nil {
		return float64(d), true
	}
	if n, err := quantity.Size(text); err == nil {
		return float64(n), true
	}
	if r, err := schedule.ParseRate(text); err == nil {
		return r.PerSecond(), true
	}
	return 0, false
}

// keysNumeric reports whether all values of a key are numbers.
func keysNumeric(values []string) bool {
	return !slices.ContainsFunc(values, func(s string) bool { _, ok := keyNumber(s); return !ok })
}

// A variedPlace holds the runs of one series at one value of the key.
type variedPlace struct {
	series, key string
	values      []result.Value
	weak        bool
	printed     bool
}

// summary returns the median of the runs, the lowest and the highest, and whether the median is only a
// lower bound.
func (p *variedPlace) summary() (middle, low, high float64, atLeast bool) {
	median, lowest, highest := result.Spread(p.values)
	middle, atLeast = median.Least()
	low, _ = lowest.Least()
	high, _ = highest.Least()
	return middle, low, high, atLeast
}

func (p *variedPlace) says(f *Variation) string {
	median, lowest, highest := result.Spread(p.values)
	text := p.series + ", " + f.Key + " " + p.key + ": " + median.Text(f.Write)
	if n := len(p.values); n > 1 {
		text += fmt.Sprintf(", median of %d runs from %s to %s", n, lowest.Text(f.Write), highest.Text(f.Write))
	}
	if p.weak {
		text += " (too few samples)"
	}
	if p.printed {
		text += " (the article)"
	}
	return text
}

// Chart draws the figure; nil if the key has fewer than two values.
func (f Variation) Chart() *layout.Chart {
	var places []*variedPlace
	var names, keys []string
	for _, s := range f.Spots {
		if v, _ := s.Value.Least(); math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if !slices.Contains(names, s.Series) {
			names = append(names, s.Series)
		}
		if !slices.Contains(keys, s.Key) {
			keys = append(keys, s.Key)
		}
		i := slices.IndexFunc(places, func(p *variedPlace) bool {
			return p.series == s.Series && p.key == s.Key && p.printed == s.Printed
		})
		if i < 0 {
			i = len(places)
			places = append(places, &variedPlace{series: s.Series, key: s.Key, printed: s.Printed})
		}
		places[i].values = append(places[i].values, s.Value)
		places[i].weak = places[i].weak || s.Weak
	}
	if len(keys) < 2 {
		return nil
	}
	c := &layout.Chart{Caption: f.Caption}
	c.Chart = plot.Chart{ID: f.ID, Title: f.Title, Height: high}
	if n := len(names) - layout.MostSeries; n > 0 {
		c.Caption += fmt.Sprintf(" The first %d of %d are drawn.", layout.MostSeries, len(names))
		names = names[:layout.MostSeries]
	}
	for i, name := range names {
		c.Legend = append(c.Legend, layout.Key{Class: layout.Series(i + 1), Text: name})
	}
	if keysNumeric(keys) {
		all := len(places)
		if len(names) > layout.Colours { // squares have no width that tells two of one colour apart
			places = slices.DeleteFunc(places, func(p *variedPlace) bool { return p.printed })
		}
		if len(places) < all {
			c.Caption += " The article's figures are left out: there are too many lines."
		}
		f.lines(c, places, names, keys)
	} else {
		f.bars(c, places, names, keys)
	}
	f.value(c, places)
	var says []string
	for _, p := range places {
		says = append(says, p.says(&f))
	}
	c.Desc = strings.Join(says, "; ")
	c.Caption = strings.TrimSpace(c.Caption)
	return c
}

func (f *Variation) value(c *layout.Chart, places []*variedPlace) {
	least, most := math.Inf(1), 0.0
	for _, p := range places {
		_, low, high, _ := p.summary()
		least, most = min(least, low), max(most, high)
	}
	if least >= 1 && most >= logarithmicFrom*least {
		if c.Y = plot.Log(least, most, "", f.Write); len(c.Bars) > 0 {
			c.Caption += " The scale is logarithmic: compare the ends of bars, not their lengths."
		}
		return
	}
	c.Y = plot.Linear(0, 1.08*max(most, math.SmallestNonzeroFloat64), 5, "", f.Write)
}

func (f *Variation) lines(c *layout.Chart, places []*variedPlace, names, keys []string) {
	at := map[string]float64{}
	for _, k := range keys {
		at[k], _ = keyNumber(k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(at[a], at[b]) })
	first, last := at[keys[0]], at[keys[len(keys)-1]]
	c.X = plot.Axis{Min: first, Max: last, Label: f.Key}
	if c.X.Log = first >= 1 && last >= logarithmicFrom*first; !c.X.Log {
		room := (last - first) * 0.03
		c.X.Min, c.X.Max = first-room, last+room
	} else {
		c.X.Min, c.X.Max = first/1.1, last*1.1
	}
	every := (len(keys) + mostTicks - 1) / mostTicks
	for i := 0; i < len(keys); i += every {
		c.X.Ticks = append(c.X.Ticks, plot.Tick{At: at[keys[i]], Text: keys[i]})
	}
	var spreads []plot.Line
	for i, name := range names {
		line := plot.Line{Class: layout.Series(i + 1), Series: i + 1, Dots: true}
		theirs := plot.Line{Class: layout.Series(i + 1), Series: i + 1, Dots: true, Loose: true, Signed: len(names) > 1}
		band := plot.Band{Class: layout.Series(i + 1), Series: i + 1}
		for _, k := range keys {
			for _, p := range places {
				if p.series != name || p.key != k {
					continue
				}
				middle, low, high, atLeast := p.summary()
				dot := plot.Point{X: at[k], Y: middle, Text: p.says(f)}
				if p.printed {
					dot.Form = plot.Square
					theirs.Points = append(theirs.Points, dot, plot.Point{X: at[k], Y: math.NaN()})
					continue
				}
				switch {
				case atLeast:
					dot.Form = plot.Upward
				case p.weak:
					dot.Form = plot.Hollow
				}
				if len(p.values) > 1 {
					spreads = append(spreads, p.spread(f, i+1, at[k]))
				}
				line.Points = append(line.Points, dot)
				band.Points = append(band.Points, plot.BandPoint{X: at[k], Lo: low, Hi: high})
			}
		}
		c.Lines = append(c.Lines, line)
		if len(theirs.Points) > 0 {
			c.Lines = append(c.Lines, theirs)
		}
		c.Bands = append(c.Bands, band)
	}
	c.Lines = append(c.Lines, spreads...)
	f.marks(c, places)
}

func (f *Variation) bars(c *layout.Chart, places []*variedPlace, names, keys []string) {
	if len(keys) > mostPlaces {
		c.Caption += fmt.Sprintf(" The first %d of %d values are drawn.", mostPlaces, len(keys))
		keys = keys[:mostPlaces]
	}
	c.X = plot.Axis{Min: 0, Max: float64(len(keys)), Label: f.Key}
	width := 0.8 / float64(len(names))
	for k, key := range keys {
		text := layout.Shortened(key, max(5, 90/len(keys)))
		c.X.Ticks = append(c.X.Ticks, plot.Tick{At: float64(k) + 0.5, Text: text})
		for i, name := range names {
			from := float64(k) + 0.1 + width*float64(i)
			for _, p := range places {
				if p.series != name || p.key != key {
					continue
				}
				middle, _, _, atLeast := p.summary()
				mark := func(form plot.Form) {
					c.Lines = append(c.Lines, plot.Line{
						Class: layout.Series(i + 1), Series: i + 1, Dots: true, Loose: true,
						Points: []plot.Point{{X: from + width/2, Y: middle, Form: form, Text: p.says(f)}},
					})
				}
				if p.printed {
					mark(plot.Square)
					continue
				}
				b := plot.Bar{From: from, To: from + width, Y: middle, Class: layout.Series(i + 1), Series: i + 1, Text: p.says(f)}
				if p.weak {
					b.Class += " weak"
				}
				c.Bars = append(c.Bars, b)
				if len(p.values) > 1 || atLeast {
					c.Lines = append(c.Lines, p.spread(f, i+1, from+width/2))
				}
			}
		}
	}
	f.marks(c, places)
}

// spread draws each run's figure on a line from the lowest to the highest.
func (p *variedPlace) spread(f *Variation, series int, x float64) plot.Line {
	line := plot.Line{Class: layout.Series(series) + " spread", Series: series, Dots: true}
	for _, v := range p.values {
		y, atLeast := v.Least()
		dot := plot.Point{X: x, Y: y, Form: plot.Hollow, Text: p.series + ", " + f.Key + " " + p.key + ", one run: " + v.Text(f.Write)}
		if atLeast {
			dot.Form = plot.Upward
		}
		line.Points = append(line.Points, dot)
	}
	slices.SortFunc(line.Points, func(a, b plot.Point) int { return cmp.Compare(a.Y, b.Y) })
	return line
}

// marks explains the dot forms in the chart.
func (f *Variation) marks(c *layout.Chart, places []*variedPlace) {
	some := func(has func(p *variedPlace) bool) bool { return slices.ContainsFunc(places, has) }
	if some(func(p *variedPlace) bool { return p.printed }) {
		c.Caption += " A square is the article's figure."
	}
	if some(func(p *variedPlace) bool { return p.weak }) {
		c.Caption += " Hollow or faint: too few samples, do not quote."
	}
	if some(func(p *variedPlace) bool {
		return slices.ContainsFunc(p.values, func(v result.Value) bool { _, ok := v.Exact(); return !ok })
	}) {
		c.Caption += " An arrow: at least so much, since messages that never came count with their age."
	}
	if some(func(p *variedPlace) bool { return len(p.values) > 1 }) {
		c.Caption += " Of repeated runs the median is drawn, and each run on a line from the lowest to the highest."
	}
}
