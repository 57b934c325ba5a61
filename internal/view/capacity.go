package view

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// answer returns the result of a search, or the best result of a search over several values.
func answer(r *capacity.Report) capacity.Ended {
	if i := slices.IndexFunc(r.Over, func(e capacity.Ended) bool { return e.Answered == r.Answer }); i >= 0 {
		return r.Over[i]
	}
	return capacity.Ended{Answered: r.Answer}
}

// Came summarizes in one line the result of a search for the capacity, or of its search at one value.
func Came(r *capacity.Report, a capacity.Ended) string {
	pass, fail := quantity.Rate(a.PassPerS), quantity.Rate(a.FailPerS)
	switch a.Stop {
	case capacity.Found:
		return fmt.Sprintf("%s met every objective, %s did not", pass, fail)
	case capacity.Between:
		return fmt.Sprintf("%s met every objective, %s did not. Not narrower: %s stayed undecided", pass, fail, quantity.Rate(a.UndecidedPerS))
	case capacity.Doubtful:
		return "not known: " + votes(r, a) + "; no probe confirmed the rate at the end"
	case capacity.Generator:
		if a.PassPerS == 0 {
			return "not known: the generator or its host was the limit, not the system: use a quieter host"
		}
		return fmt.Sprintf("at least %s: at %s %s", pass, fail, inTheWay(capacity.Limited))
	case capacity.TooShort:
		if a.PassPerS == 0 {
			return "not known: the probes are too short to decide the objectives: set --longest higher"
		}
		return fmt.Sprintf("at least %s: at %s %s: set --longest higher", pass, fail, inTheWay(capacity.Undecided))
	case capacity.AtMost:
		return fmt.Sprintf("at least %s: no higher rate was asked for", pass)
	case capacity.NonePassed:
		return fmt.Sprintf("none: no rate down to %s met every objective", fail)
	case capacity.OutOfTries, capacity.Unstarted, capacity.Unfinished:
	}
	switch end := a.Fail(); {
	case a.PassPerS > 0 && end.By == capacity.Failed:
		return fmt.Sprintf("not known yet: %s met every objective, %s did not", pass, fail)
	case a.PassPerS > 0 && a.FailPerS > 0:
		return fmt.Sprintf("not known yet: %s met every objective; at %s %s", pass, fail, inTheWay(end.By))
	case a.PassPerS > 0:
		return fmt.Sprintf("not known yet: %s met every objective", pass)
	case a.FailPerS > 0:
		return fmt.Sprintf("not known yet: no rate down to %s passed", fail)
	}
	return "not known yet"
}

// votes summarizes the probes of the highest rate that passed.
func votes(r *capacity.Report, a capacity.Ended) string {
	all, by := 0, map[string]int{}
	for i := range r.Probes {
		if p := &r.Probes[i]; p.N == a.N && p.RatePerS == a.PassPerS {
			all++
			by[p.Judgement]++
		}
	}
	text := fmt.Sprintf("%d of %s of %s met every objective", by[capacity.Passed.String()], quantity.Counted(uint64(all), "probe", "probes"), quantity.Rate(a.PassPerS))
	for _, of := range []struct {
		judgement capacity.Judgement
		words     string
	}{
		{capacity.Failed, ", %d did not"},
		{capacity.Undecided, ", %d could not decide"},
		{capacity.Limited, ", in %d the generator or its host was the limit"},
	} {
		if n := by[of.judgement.String()]; n > 0 {
			text += fmt.Sprintf(of.words, n)
		}
	}
	return text
}

// inTheWay says what kept a rate from passing when the system did not fail it.
func inTheWay(by capacity.Judgement) string {
	if by == capacity.Undecided {
		return "the probes are too short to decide the objectives"
	}
	return "the generator or its host was the limit, not the system"
}

const mostProbes = 2000

// HTML writes Drawn for a browser. It returns the error of w.
func (s *Search) HTML(w io.Writer) error {
	page := browser(s.name())
	page.Footer = "The figures are in capacity.json. " +
		aboutScript
	return page.Write(w, s.Drawn())
}

// Drawn returns the page of a search: its result, latency against load with the objectives, and each probe.
func (s *Search) Drawn() *layout.Page {
	p, r := new(layout.Page), s.Report
	p.Heading(s.name())
	p.Line(layout.Strong.Of("capacity"), plain(": "+Came(r, answer(r))))
	for _, o := range r.Over[:min(len(r.Over), mostProbes)] {
		of := ""
		if r.Plan.Over != nil {
			of = " " + r.Plan.Over.Of
		}
		p.Bullet(fmt.Sprintf("with %d%s: %s", o.N, of, Came(r, o)))
	}
	s.drawn(p, true, s.Link)
	return p
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

// figureOr writes a percentile of a probe, or instead if there is none.
func figureOr(f *capacity.Figure, instead string) string {
	if f == nil {
		return instead
	}
	return f.Value().Text(timeText)
}

// promisedPercentiles returns the response percentiles of a search's objectives, ascending; the 50th and
// the 99th where there are none.
func promisedPercentiles(r *capacity.Report, of string) []float64 {
	var percents []float64
	for _, expr := range r.Promise[:min(len(r.Promise), mostColours)] {
		o, err := judge.ParseObjective(expr)
		if err != nil {
			continue
		}
		p, ok := o.Percentile()
		if name, service := o.Latency(); ok && name == of && !service {
			percents = append(percents, p)
		}
	}
	if len(percents) == 0 {
		return []float64{50, 99}
	}
	slices.Sort(percents)
	return slices.Compact(percents)
}

func dotOf(p *capacity.Probed, f *capacity.Figure) plot.Form {
	switch {
	case p.Judgement == capacity.Limited.String():
		return plot.Square
	case p.Judgement == capacity.Undecided.String():
		return plot.Cross
	case f.AtLeast:
		return plot.Upward
	case p.Judgement == capacity.Passed.String():
		return plot.Full
	}
	return plot.Hollow
}

// describes reports whether a probe's latency represents the system at that rate.
func describes(p *capacity.Probed, f *capacity.Figure) bool {
	return !f.AtLeast && p.Verdict != result.Invalid && (p.Judgement == capacity.Passed.String() || p.Judgement == capacity.Failed.String())
}

// howToReadLoad explains the picture of a search.
const howToReadLoad = "A full dot passed, a hollow one failed, a square one says nothing because of the generator or its host, " +
	"and a cross was not decided. An arrow is a lower bound. The line through a dot is its 95 % interval; none: not known. " +
	"Probes of one rate stand side by side. Medians of the rates that passed or failed are joined."

// beside moves the n-th dot of a rate aside, so that no interval hides another: to the right, to the left, and
// further.
func beside(n int) float64 {
	const apart = 0.012
	return apart * float64((n+1)/2) * float64(1-n%2*2) * -1
}

// end is the end of an interval on a chart, infinite on its side if it is not known.
func end(ns *int64, side int) float64 {
	if ns == nil {
		return math.Inf(side)
	}
	return float64(*ns)
}

// loaded plots the percentiles of the objectives against the rate, for a search over several values at the
// value of the answer. It returns nil if fewer than two rates have a latency.
func loaded(r *capacity.Report, all []capacity.Probed) *layout.Chart {
	of, with := "", answer(r).N
	all = slices.DeleteFunc(slices.Clone(all), func(x capacity.Probed) bool {
		if with > 0 && x.N != with || !(x.RatePerS > 0) || of != "" && x.Of != "" && x.Of != of {
			return true
		}
		of = cmp.Or(of, x.Of)
		return false
	})
	f := &layout.Chart{
		Caption: howToReadLoad, Chart: plot.Chart{ID: "load", Title: of + " response against the load", Desc: "The table below has the values.", Height: high, Heads: []string{"rate_per_s", "ns", "low_ns", "high_ns"}},
	}
	if with > 0 && r.Plan.Over != nil {
		f.Title += fmt.Sprintf(" with %d %s", with, r.Plan.Over.Of)
	}
	rates := map[float64]bool{}
	last := math.Inf(-1)
	var without []string // rates of probes that measured no latency
	for i := range all {
		x := &all[i]
		last = max(last, x.RatePerS)
		if !slices.ContainsFunc(promisedPercentiles(r, of), func(p float64) bool { return x.Figure(p) != nil }) {
			text := quantity.Rate(x.RatePerS) + ": no latency, " + x.Judgement
			f.Marks = append(f.Marks, plot.Mark{X: x.RatePerS, Text: text, Class: "event", Tall: true})
			rates[x.RatePerS] = true
			if !slices.Contains(without, text) {
				without = append(without, text)
			}
		}
	}
	for i, p := range promisedPercentiles(r, of) {
		line := plot.Line{Class: fmt.Sprintf("s%d", i+1), Series: i + 1}
		dots := plot.Line{Class: line.Class, Series: i + 1, Dots: true}
		at, drawn := map[float64][]float64{}, map[float64]int{}
		for j := range all {
			x := &all[j]
			figure := x.Figure(p)
			if figure == nil {
				continue
			}
			y := float64(figure.NS)
			if describes(x, figure) {
				at[x.RatePerS] = append(at[x.RatePerS], y)
			}
			text := quantity.Rate(x.RatePerS) + ": " + headOf(p) + " " + figureOr(figure, "")
			dot := plot.Point{X: x.RatePerS * (1 + beside(drawn[x.RatePerS])), Y: y, Form: dotOf(x, figure), Row: plot.Row(x.RatePerS, y, known(figure.LoNS), known(figure.HiNS))}
			if between := quantity.TimeRange(figure.LoNS, figure.HiNS); between != "" {
				text += " (95 %: " + between + ")"
				dot.Low, dot.High = end(figure.LoNS, -1), end(figure.HiNS, 1)
			}
			dot.Text = text + ", " + x.Judgement
			drawn[x.RatePerS]++
			dots.Points = append(dots.Points, dot, plot.Point{X: x.RatePerS, Y: math.NaN()})
			rates[x.RatePerS] = true
		}
		for rate, y := range at {
			slices.Sort(y)
			line.Points = append(line.Points, plot.Point{X: rate, Y: y[len(y)/2], Form: plot.Undotted})
		}
		slices.SortFunc(line.Points, func(a, b plot.Point) int { return cmp.Compare(a.X, b.X) })
		f.Lines = append(f.Lines, line, dots)
		f.Legend = append(f.Legend, layout.Key{Class: line.Class, Text: headOf(p)})
	}
	least, most := ends(f.Lines)
	if len(rates) < 2 || !(most > 0) {
		return nil
	}
	for _, expr := range r.Promise[:min(len(r.Promise), mostColours)] {
		o, err := judge.ParseObjective(expr)
		if err != nil {
			continue
		}
		if name, service := o.Latency(); name == of && !service && o.Limit() > 0 && o.Limit() < most*farOff && o.Limit() > least/farOff {
			least, most = min(least, o.Limit()), max(most, o.Limit())
			ruled(f, o.Limit(), expr, "")
		}
	}
	if pass, fail := r.Answer.PassPerS, r.Answer.Fail().System(); pass > 0 && pass <= last && r.Answer.Stop != capacity.Doubtful {
		text := "objectives met up to " + quantity.Rate(pass)
		f.Spans = append(f.Spans, plot.Span{To: pass, Text: "objectives met", Class: "kept"})
		f.Caption = "Shaded green: the operating range, " + text
		if fail > pass && fail <= last {
			f.Spans = append(f.Spans, plot.Span{From: pass, To: fail, Text: "capacity"})
			f.Caption += ". Grey: the capacity lies between it and " + quantity.Rate(fail)
			if p := limit(r); p != nil && p.Judgement == capacity.Failed.String() {
				f.Caption += ", where the system failed (" + p.Why + ")"
			}
		} else if by := r.Answer.Fail(); by.System() == 0 && pass < last {
			f.Spans = append(f.Spans, plot.Span{From: pass, To: last * 1.05, Text: "not known", Class: "open"})
			f.Caption += ". Beyond it the capacity is not known"
			switch {
			case by.By == capacity.Undecided:
				f.Caption += ": " + inTheWay(by.By)
			case by.By == capacity.Limited || r.Answer.Stop == capacity.Generator:
				f.Caption += ": " + inTheWay(capacity.Limited)
			}
		}
		f.Caption += ". " + howToReadLoad
	}
	if len(without) > 0 {
		f.Caption += " A red line is a probe without a latency: " + strings.Join(without[:min(len(without), mostNamed)], "; ") + "."
	}
	f.X = plot.Linear(0, last*1.05, 6, "rate", quantity.Rate)
	f.Y = plot.Log(least, most*max(2, math.Pow(most/least, 0.12)), "latency", short) // the label of the range stands above the objective
	return f
}
