package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/capacity"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/layout"
	"github.com/weirmq/weir/internal/plot"
	"github.com/weirmq/weir/result"
)

// Came says in a line what a search for the capacity came to.
func Came(a *capacity.Answered) string {
	pass, fail := Rate(a.PassPerS), Rate(a.FailPerS)
	switch a.Stop {
	case capacity.Found:
		return fmt.Sprintf("%s kept the promise, %s did not", pass, fail)
	case capacity.Between:
		return fmt.Sprintf("%s kept the promise, %s did not: wider than asked, because the rates between them could not be decided from %s on", pass, fail, Rate(a.UndecidedPerS))
	case capacity.Generator:
		if a.PassPerS == 0 {
			return "not known: the generator or its host was the limit, not the system: use a quieter host"
		}
		return fmt.Sprintf("at least %s: at %s the generator or its host was the limit, not the system", pass, fail)
	case capacity.TooShort:
		if a.PassPerS == 0 {
			return "not known: the probes are too short to decide the objectives: set --longest higher"
		}
		return fmt.Sprintf("at least %s: at %s the probes are too short to decide the objectives: set --longest higher", pass, fail)
	case capacity.AtMost:
		return fmt.Sprintf("at least %s: no higher rate was asked for", pass)
	case capacity.NonePassed:
		return fmt.Sprintf("none: no rate down to %s kept the promise", fail)
	case capacity.OutOfTries, capacity.Unstarted, capacity.Unfinished:
	}
	switch {
	case a.PassPerS > 0 && a.FailPerS > 0:
		return fmt.Sprintf("not known yet: %s kept the promise, %s did not pass", pass, fail)
	case a.PassPerS > 0:
		return fmt.Sprintf("not known yet: %s kept the promise", pass)
	case a.FailPerS > 0:
		return fmt.Sprintf("not known yet: no rate down to %s passed", fail)
	}
	return "not known yet"
}

// mostProbes bounds the probes on a page.
const mostProbes = 2000

// CapacityHTML writes a search for the capacity as a page for a browser: what it came to,
// the latency against the load with the objectives, and each probe. The error is that of w.
func CapacityHTML(w io.Writer, r *capacity.Report) error {
	p, search := new(layout.Page), &Search{Report: r}
	title := search.name()
	p.Heading(title)
	p.Line(layout.Strong.Of("capacity"), plain(": "+Came(&r.Answer)))
	for _, o := range r.Over[:min(len(r.Over), mostProbes)] {
		of := ""
		if r.Plan.Over != nil {
			of = " " + r.Plan.Over.Of
		}
		p.Bullet(fmt.Sprintf("with %d%s: %s", o.N, of, Came(&o.Answered)))
	}
	search.drawn(p, true)
	page := browser(title)
	page.Footer = "This page is a picture of capacity.json, which has the figures to compute with. " +
		aboutScript
	return page.Write(w, p)
}

func judged(word string) layout.Tone {
	switch word {
	case capacity.Passed.String():
		return layout.Good
	case capacity.Failed.String():
		return layout.Bad
	}
	return layout.Doubtful
}

func timeOr(v *result.Value) string {
	if v == nil {
		return "-"
	}
	return v.Text(timeText)
}

// loaded draws the response against the rate: of each rate the median of its probes. It is
// nil where fewer than two rates have a latency.
func loaded(r *capacity.Report, all []capacity.Probed) *layout.Chart {
	of, rates := "", map[float64]bool{}
	for _, x := range all {
		if x.P99NS != nil && x.RatePerS > 0 && (of == "" || of == x.Of) {
			of, rates[x.RatePerS] = x.Of, true
		}
	}
	if len(rates) < 2 {
		return nil
	}
	f := &layout.Chart{
		Caption: "The operating range: each dot is a probe, and a line joins the medians of the rates. A hollow dot did not pass. An arrow: at least so much.",
		Chart:   plot.Chart{ID: "load", Title: of + " response against the load", Desc: "The table below has the values.", Height: high},
	}
	least, most, first, last := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for i, name := range []string{"p50", "p99"} {
		line := plot.Line{Class: fmt.Sprintf("s%d", i+1)}
		dots := plot.Line{Class: line.Class, Dots: true}
		at := map[float64][]float64{}
		for _, x := range all {
			v := x.P50()
			if name == "p99" {
				v = x.P99()
			}
			if v == nil || x.Of != of || x.RatePerS <= 0 {
				continue
			}
			y, atLeast := v.Least()
			form := plot.Full
			if atLeast {
				form = plot.Upward
			} else if x.Judgement != capacity.Passed.String() {
				form = plot.Hollow
			}
			at[x.RatePerS] = append(at[x.RatePerS], y)
			dots.Points = append(dots.Points, plot.Point{X: x.RatePerS, Y: y, Form: form, Text: Rate(x.RatePerS) + ": " + name + " " + v.Text(timeText) + ", " + x.Judgement}, plot.Point{X: x.RatePerS, Y: math.NaN()})
			least, most, first, last = min(least, y), max(most, y), min(first, x.RatePerS), max(last, x.RatePerS)
		}
		for rate, y := range at {
			slices.Sort(y)
			line.Points = append(line.Points, plot.Point{X: rate, Y: y[len(y)/2], Form: plot.Undotted})
		}
		slices.SortFunc(line.Points, func(a, b plot.Point) int { return cmp.Compare(a.X, b.X) })
		f.Lines = append(f.Lines, line, dots)
		f.Legend = append(f.Legend, layout.Key{Class: line.Class, Text: name})
	}
	for _, expr := range r.Promise[:min(len(r.Promise), mostColours)] {
		o, err := judge.ParseObjective(expr)
		if err != nil {
			continue
		}
		if name, service := o.Latency(); name == of && !service && o.Limit() > 0 && o.Limit() < most*farOff && o.Limit() > least/farOff {
			least, most = min(least, o.Limit()), max(most, o.Limit())
			f.Rules = append(f.Rules, plot.Rule{Y: o.Limit(), Text: expr})
		}
	}
	if a := r.Answer; a.PassPerS > 0 && a.FailPerS > a.PassPerS && a.PassPerS <= last && a.FailPerS >= first {
		f.Spans = append(f.Spans, plot.Span{From: a.PassPerS, To: min(a.FailPerS, last), Text: "capacity"})
	}
	f.X = plot.Linear(0, last, 6, "rate", func(v float64) string { return Rate(v) })
	f.Y = plot.Log(least, most, "latency", short)
	return f
}
