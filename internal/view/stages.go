package view

import (
	"fmt"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// stages writes the figures of each stage of a profile. With one stage they are the run's.
func (t *single) stages() {
	all := t.r.Stages
	if len(all) < 2 {
		return
	}
	shown := all[:min(len(all), measure.MostStages)] // the file may hold anything
	x := t.stageTable(shown)
	t.Gap()
	t.Table(x)
	if n := len(all) - len(shown); n > 0 {
		t.Note(fmt.Sprintf("and %d further stages: see result.json", n))
	}
	if !marked(t.table, "!") { // the table of the run explains it already
		doubtful(t.Page, x)
	}
	if !marked(t.table, "?") {
		withheld(t.Page, x, t.r)
	}
	if !marked(t.table, fewSamples) {
		tooFew(t.Page, x)
	}
	t.Note("times: of the messages due in the stage, whenever they came", "rates: what happened in the time of the stage")
}

func (t *single) stageTable(shown []result.Stage) *layout.Table {
	x := &layout.Table{Columns: []layout.Column{
		{Head: "stage", Key: true, Kind: layout.Word, Tone: layout.Strong}, {Head: "lasts", Key: true},
	}}
	const rates = "messages per second"
	for _, head := range []string{"offered", "sent", "confirmed"} {
		x.Columns = append(x.Columns, layout.Column{Group: rates, Head: head})
	}
	received := slices.ContainsFunc(shown, func(g result.Stage) bool { return g.ReceivedPerS != nil })
	if received {
		x.Columns = append(x.Columns, layout.Column{Group: rates, Head: arrived(t.r)})
	}
	for i := range shown {
		g := &shown[i]
		row := []layout.Span{
			plain(layout.Shortened(g.Plan, 40)), plain(quantity.Time(g.ToNS - g.FromNS)),
			plain(perSecond(g.OfferedPerS)), plain(perSecond(g.SentPerS)), plain(perSecond(g.ConfirmedPerS)),
		}
		switch {
		case g.ReceivedPerS != nil:
			row = append(row, plain(perSecond(*g.ReceivedPerS)))
		case received:
			row = append(row, plain("-"))
		}
		x.Rows = append(x.Rows, row)
	}
	for _, of := range []struct {
		name string
		of   func(*result.Stage) *result.Pair
	}{
		{"send", func(g *result.Stage) *result.Pair { return g.Send }},
		{"rtt", func(g *result.Stage) *result.Pair { return g.RTT }},
		{"e2e", func(g *result.Stage) *result.Pair { return g.E2E }},
	} {
		t.latenciesOfStages(x, shown, of.name, of.of)
	}
	return x
}

// perSecond formats a rate under a heading that names the unit.
func perSecond(v float64) string {
	if v >= 100 {
		return quantity.Count(uint64(math.Round(v)))
	}
	return quantity.Significant(v, false)
}

// latenciesOfStages adds columns of one response: p50, p99, requested percentiles, those with enough
// samples in some stage, the largest, and the number of samples.
func (t *single) latenciesOfStages(x *layout.Table, stages []result.Stage, name string, of func(*result.Stage) *result.Pair) {
	ds := make([]distribution, len(stages))
	any := false
	ps := []float64{50, 99}
	if len(t.o.Percentiles) > 0 {
		ps = slices.Clone(t.o.Percentiles[:min(len(t.o.Percentiles), mostPercentiles)])
	}
	for i := range stages {
		ds[i] = distribution{group: name, name: "response", late: true}
		if pair := of(&stages[i]); pair != nil && pair.Response != nil {
			ds[i].d, ds[i].onTime = pair.Response, pair.OnTime
			any = true
			if row := pair.Response.Percentile(99.9); row != nil && row.Supported && len(t.o.Percentiles) == 0 && !slices.Contains(ps, 99.9) {
				ps = append(ps, 99.9)
			}
		}
	}
	if !any {
		return
	}
	if !slices.Contains(ps, 100) {
		ps = append(ps, 100)
	}
	for _, p := range ps {
		x.Columns = append(x.Columns, layout.Column{Group: name + " response", Head: percent(p)})
	}
	x.Columns = append(x.Columns, layout.Column{Group: name + " response", Head: "samples"})
	for i, c := range ds {
		for _, p := range ps {
			x.Rows[i] = append(x.Rows[i], c.figure(t.r, p))
		}
		samples := plain("0")
		if c.d != nil {
			samples.Text = quantity.Count(c.d.Count)
			if c.d.Censored > 0 {
				samples.Text += " " + censored(c.d).Text
			}
		}
		x.Rows[i] = append(x.Rows[i], samples)
	}
}

// offered returns the planned rate over time as a line: each stage of a profile, or one rate for the
// measured window.
func (t *single) offered(c *Course) (line plot.Line, says string, most float64) {
	line.Class = "s5 thin"
	end := func(x float64) { // end of a stretch: the next begins apart
		line.Points = append(line.Points, plot.Point{X: x, Y: math.NaN()})
	}
	if len(t.r.Stages) > 0 {
		for i := range t.r.Stages {
			g := &t.r.Stages[i]
			from, to := c.origin.seconds(g.FromNS), c.origin.seconds(g.ToNS)
			line.Points = append(line.Points, plot.Point{X: from, Y: g.BeginsPerS}, plot.Point{X: to, Y: g.EndsPerS})
			most = max(most, g.BeginsPerS, g.EndsPerS)
		}
		end(line.Points[len(line.Points)-1].X)
		return line, "offered, as planned; bursts as their mean", most
	}
	most = t.r.Throughput.OfferedPerS
	for _, s := range c.spans {
		if s.Text == "measure" && most > 0 {
			line.Points = append(line.Points, plot.Point{X: s.From, Y: most}, plot.Point{X: s.To, Y: most})
			end(s.To)
		}
	}
	return line, "offered (mean of the window, " + quantity.Rate(most) + ")", most
}
