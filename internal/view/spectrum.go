package view

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Heights of the main charts and of the others.
const high, low = 330, 220

// A plotted is a distribution in a chart, with its name and result.
type plotted struct {
	name   string
	r      *result.Result
	c      distribution
	counts *measure.Counts // its samples; nil if unknown
	brief  bool            // only the percentiles of the table
}

// spectra draws the percentiles of each direction, the figures of the table.
func (t *single) spectra() {
	all := distributions(t.r)
	if !slices.ContainsFunc(all, func(c distribution) bool { return c.name != "settle" && c.name != "failed" }) {
		return // nothing to draw
	}
	t.Gap()
	t.Chapter("latency, percentile by percentile")
	says := howToRead(append([]string{"has too few samples"}, withheldBy(t.r)...))
	if len(t.Totals) > 0 {
		says = "A thin line has all samples, a thick one joins the percentiles of the table. " + says
	}
	if h := t.r.Host.Hiccups; h != nil && h.Count > 0 {
		says += " Beside the curves are the host's own stalls: how late a thread woke that sleeps a millisecond at a time. Where they come near a curve, the host caused part of it."
	}
	t.Line(layout.Faint.Of(says))
	of := func(group string, names ...string) (found []plotted) {
		for _, name := range names {
			for _, c := range all {
				if c.group == group && c.name == name {
					found = append(found, plotted{c.name, t.r, c, t.Totals[c.tag()], !t.o.lone})
				}
			}
		}
		return found
	}
	for _, group := range directions {
		t.spectrum(t.o.drawn+group, group, group+" by percentile", t.gapped(group), of(group, "response", "service"))
	}
	if !t.o.lone {
		return // its own page has it
	}
	t.spectrum(t.o.drawn+"delays", "", "waiting before the system had it, by percentile",
		"Lateness is the generator's own fault. Blocked is the system's, or the client library's: no free slot, or the library refused. The rest of a response is service.",
		of("", "blocked", "lateness"))
}

// directions are the kinds of latency, in page order.
var directions = [...]string{"send", "rtt", "e2e"}

// howToRead explains what all percentile charts of a run have in common. hollow are the reasons not to quote a figure.
func howToRead(hollow []string) string {
	return "Bands are 95 % intervals. A band without an upper end reaches the top; a gap has no interval. " +
		"Dashed, with hollow dots: do not quote it, because it " + strings.Join(hollow, ", or ") + "; the last dot is the largest of this run. " +
		"An arrow: at least so much, because messages that never came count with their age."
}

const mostColours = 6

// gapped is the note of a direction's chart.
func (t *single) gapped(group string) string {
	until := map[string]string{"send": "it was confirmed", "rtt": "its reply came", "e2e": "a consumer had it"}[group]
	if t.r.Run.Loop == result.LoopClosed {
		return "Closed loop: each producer sends when it may, so the run has no response. This is service, from the instant a message was handed to the client until " + until + ", at saturation."
	}
	return "Response counts from the instant a message was due until " + until + ", service only from the instant it was handed to the client. " +
		"The gap between the two lines is coordinated omission: the wait that a generator misses if it waits for the system before it sends again."
}

// spectrum draws distributions by percentile on an axis of nines, with the objectives of a direction and the
// host's scheduling stalls.
func (t *single) spectrum(id, group, title, caption string, of []plotted) {
	f := &layout.Chart{Caption: caption, Chart: plot.Chart{ID: id, Title: title, Height: high, Heads: []string{"percentile", "ns", "low_ns", "high_ns", "samples"}}}
	b := bounded{least: math.Inf(1), most: math.Inf(-1), first: nines(50), end: nines(90)}
	var says []string
	for i, x := range of {
		class := layout.Series(i + 1)
		key := class
		if i == 0 && len(of) == 2 {
			class += " broad" // both are visible where they coincide
		}
		f.Legend = append(f.Legend, layout.Key{Class: key, Text: x.name})
		band, lines := b.lines(class, len(f.Legend), x.curve())
		f.Bands = append(f.Bands, band)
		f.Lines = append(f.Lines, lines...)
		if fine := x.fine(key, len(f.Legend), &b); len(fine.Points) > 0 {
			f.Lines = append(f.Lines, fine)
		}
		says = append(says, x.name+": "+x.summary())
	}
	if slices.ContainsFunc(f.Lines, squared) {
		f.Caption += " Do not quote a square: something other than the system moved it by over a tenth."
	}
	if math.IsInf(b.most, -1) {
		return // nothing to draw
	}
	if b.zero {
		f.Caption += noZero
	}
	f.X = nined(&b)
	if line, text, ok := t.hiccups(&b); ok {
		f.Legend = append(f.Legend, layout.Key{Class: line.Class, Text: "stalls of the host"})
		line.Series = len(f.Legend)
		f.Lines = append(f.Lines, line)
		says = append(says, "stalls of the host: "+text)
	}
	f.Desc = "Latency by percentile. " + strings.Join(says, "; ") + "."
	least, most := promises(f, t.r.Verdict.SLO, group, min(b.least, b.most), b.most, t.r.Run.Loop == result.LoopClosed)
	f.Y = plot.Log(least, most, "latency", short)
	t.Chart(f)
}

// finest is the most points in a curve's fine line.
const finest = 400

// fine draws the curve from the least sample to the largest, as finely as the samples are known. It ends
// where samples are only lower bounds.
func (x plotted) fine(class string, series int, b *bounded) plot.Line {
	line := plot.Line{Class: class + " thin", Series: series}
	if x.counts == nil || x.brief || x.counts.Total() == 0 || x.c.d.MinNS == nil || x.c.d.MaxNS == nil {
		return line
	}
	n := float64(x.counts.Total()) + float64(x.c.d.Censored)
	end := math.Log10(n)
	if x.c.d.Censored > 0 {
		if row := slices.IndexFunc(x.c.d.Percentiles, func(p result.Percentile) bool { return p.AtLeast }); row > 0 {
			end = nines(x.c.d.Percentiles[row-1].P)
		} else {
			return line
		}
	}
	for i := range finest + 1 {
		at := end * float64(i) / finest
		rank := measure.Rank(100*(1-math.Pow(10, -at)), uint64(n))
		// A log has ends of buckets, a result the extremes: clamp, so that both give the same page.
		y := float64(max(*x.c.d.MinNS, min(x.counts.At(rank), *x.c.d.MaxNS)))
		switch {
		case i == 0:
			y = float64(*x.c.d.MinNS)
		case i == finest && x.c.d.Censored == 0:
			y = float64(*x.c.d.MaxNS)
		}
		line.Points = append(line.Points, plot.Point{X: at, Y: y})
		b.take(at, y)
	}
	return line
}

// squared reports whether a line has points that cannot be quoted.
func squared(l plot.Line) bool {
	return slices.ContainsFunc(l.Points, func(p plot.Point) bool { return p.Form == plot.Square })
}

// hiccups returns the host's scheduling stalls by percentile as a line, with a description; false if the
// run did not record them.
func (t *single) hiccups(b *bounded) (line plot.Line, text string, ok bool) {
	if t.r.Host.Hiccups == nil || t.r.Host.Hiccups.Count == 0 {
		return line, "", false
	}
	h := t.r.Host.Hiccups
	line = plot.Line{Class: "s5 thin", Dots: true}
	var says []string
	end := max(math.Log10(float64(h.Count)), nines(99.9))
	for _, x := range []struct {
		p  float64
		ns int64
	}{{50, h.P50NS}, {99, h.P99NS}, {99.9, h.P999NS}, {100, h.MaxNS}} {
		at := end
		if x.p < 100 {
			at = nines(x.p)
		}
		at = min(at, b.end)
		text := percent(x.p) + " " + quantity.Time(x.ns)
		says = append(says, text)
		line.Points = append(line.Points, plot.Point{X: at, Y: float64(x.ns), Text: "stalls of the host " + text, Row: plot.Row(x.p, float64(x.ns), math.NaN(), math.NaN(), float64(h.Count))})
		if x.ns > 0 {
			b.least, b.most = min(b.least, float64(x.ns)), max(b.most, float64(x.ns))
		}
	}
	return line, strings.Join(says, ", "), true
}

// bounded is the range of a chart's points.
type bounded struct {
	least, most, first, end float64
	zero                    bool // some value is 0
}

// noZero explains an axis without a zero.
const noZero = " A zero lies on the bottom line, because the scale is logarithmic."

// lines returns a curve's band and lines: one as far as its samples support it, and one for the rest.
func (b *bounded) lines(class string, series int, curve []curved) (band plot.Band, lines []plot.Line) {
	band = plot.Band{Class: class, Series: series}
	strong, faint := plot.Line{Class: class, Dots: true, Series: series}, plot.Line{Class: class + " dash", Dots: true, Series: series}
	blurred := faint
	for _, x := range curve {
		row := x.row
		low, high := known(row.LoNS), known(row.HiNS)
		if !row.Supported || row.P == 100 {
			low, high = math.NaN(), math.NaN() // as in the table
		}
		point := plot.Point{X: x.at, Y: float64(row.NS), Text: x.text, Row: plot.Row(row.P, float64(row.NS), low, high)}
		if x.samples > 0 {
			point.Row += "," + strconv.FormatUint(x.samples, 10)
		}
		b.take(x.at, point.Y)
		switch {
		case row.AtLeast:
			point.Form = plot.Upward
		case !row.Supported:
			point.Form = plot.Hollow
		case x.limited:
			point.Form = plot.Square
		}
		if row.UnsupportedBy != "" && len(strong.Points) == 0 { // below the clock uncertainty
			blurred.Points = append(blurred.Points, point)
			continue
		}
		if !row.Supported || row.P == 100 {
			if n := len(strong.Points); len(faint.Points) == 0 && n > 0 { // continues where the other ends
				joint := strong.Points[n-1]
				joint.Form = plot.Undotted
				faint.Points = append(faint.Points, joint)
			}
			faint.Points = append(faint.Points, point)
			continue
		}
		strong.Points = append(strong.Points, point)
		interval := plot.BandPoint{X: x.at, Hi: math.Inf(1)}
		if row.LoNS == nil && row.HiNS == nil {
			interval.Lo = math.NaN() // unknown: a gap
		}
		if row.LoNS != nil {
			interval.Lo = float64(*row.LoNS)
			b.take(x.at, interval.Lo)
		}
		if row.HiNS != nil {
			interval.Hi = float64(*row.HiNS)
			b.take(x.at, interval.Hi)
		}
		band.Points = append(band.Points, interval)
	}
	if len(blurred.Points) > 0 {
		return band, []plot.Line{strong, faint, blurred}
	}
	return band, []plot.Line{strong, faint}
}

// take widens the bounds to include a point. A logarithmic axis has no zero.
func (b *bounded) take(x, y float64) {
	b.first, b.end, b.most = min(b.first, x), max(b.end, x), max(b.most, y)
	if y > 0 {
		b.least = min(b.least, y)
	} else {
		b.zero = true
	}
}

// A curved is a percentile on the axis of nines.
type curved struct {
	at   float64
	row  *result.Percentile
	text string

	limited bool   // cannot be quoted
	samples uint64 // behind it; 0: it is of several runs
}

// curve returns the percentiles of a distribution as far as its samples reach, and its maximum at the end.
func (x plotted) curve() []curved {
	c := x.c
	var out []curved
	n := max(1, float64(c.d.Count)+float64(c.d.Censored))
	end := max(math.Log10(n), nines(50))
	for i := range c.d.Percentiles {
		row := &c.d.Percentiles[i]
		if row.P <= 0 || row.P > 100 || len(out) == mostPercentiles {
			continue
		}
		at := end
		if row.P < 100 {
			if at = nines(row.P); at >= end && !row.Supported { // the maximum, like everything beyond
				continue
			}
		}
		text := x.name + " " + percent(row.P) + ": " + c.figure(x.r, row.P).Text
		if between := c.between(row.P).Text; between != "" {
			text += " (95 %: " + between + ")"
		}
		samples := c.d.Count + c.d.Censored
		text += " of " + quantity.Count(samples)
		out = append(out, curved{at, row, text, strings.HasPrefix(c.figure(x.r, row.P).Text, "!"), samples})
	}
	return out
}

func (x plotted) summary() string {
	var says []string
	for _, p := range []float64{50, 99, 99.9, 100} {
		if x.c.d.Percentile(p) != nil {
			says = append(says, percent(p)+" "+x.c.figure(x.r, p).Text)
		}
	}
	return strings.Join(says, ", ")
}

// nines is the number of nines of a percentile: 1 for 90 %, 3 for 99.9 %.
func nines(p float64) float64 { return -math.Log10(1 - p/100) }

// short formats a duration on an axis, without decimals if whole.
func short(ns float64) string {
	return strings.Replace(strings.Replace(quantity.Time(int64(ns)), ".00 ", " ", 1), ".0 ", " ", 1)
}

// clock formats a time of the run on an axis.
func clock(s float64) string {
	if s == 0 {
		return "0"
	}
	if s < 0 {
		return "-" + clock(-s)
	}
	return quantity.Span(time.Duration(s * float64(time.Second)))
}
