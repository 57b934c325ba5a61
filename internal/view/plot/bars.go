package plot

// A Bar stands on the X axis between two values of it.
type Bar struct {
	From, To float64
	Y        float64
	Class    string // as in a Line; "weak" after a space: unreliable
	Series   int    // as in a Line
	Text     string // shown on hover
}

// bars draws the bars from the lower end of the Y axis.
func (p *pen) bars() {
	base := top + p.high
	for _, b := range p.chart.Bars {
		from, to, y := p.x(b.From), p.x(b.To), p.y(b.Y)
		if !(to > from) || !(b.Y >= p.chart.Y.Min) { // also false for NaN
			continue
		}
		p.linef(`<g class="%s"%s><rect class="bar" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect></g>`,
			escape(b.Class), series(b.Series), num(from), num(y), num(to-from), num(base-y), escape(b.Text))
	}
}
