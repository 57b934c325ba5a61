package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/outliers"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// A curve is one line of a chart over time.
type curve struct {
	track, name, class string
}

// latencies are the lines of a chart of latencies.
func latencies(of string) []curve {
	return []curve{{of + ".p50", "p50", "s1"}, {of + ".p99", "p99", "s2"}, {of + ".p99.9", "p99.9", "s3"}, {of + ".max", "max", "s4"}}
}

// overTime adds the run's course: charts one below the other with the same time axis.
func (t *single) overTime() {
	c := t.Course
	if c == nil || len(c.tracks) == 0 {
		return
	}
	t.Gap()
	t.Chapter("the run, second by second")
	t.Say(t.overTimeSays())
	if t.o.lone && len(c.marks)+len(c.stalls) > 0 {
		t.Embed("events", c.told())
	}
	what := t.counted()
	t.over("rates", "messages per second", "", high, layout.PerSecond, []curve{
		{"sent", "sent", "s3 wide"}, {"confirmed", "confirmed", "s1"}, {"received", arrived(t.r), "s2 over"},
	})
	never := func(of string, d *result.Dist) string {
		if d == nil || d.Censored == 0 {
			return ""
		}
		is := uncompleted[of]
		return " " + quantity.Counted(d.Censored, "message "+strings.Replace(is, "were", "was", 1)+" and is", "messages "+is+" and are") +
			" in no second. The table, the percentiles and the heat map include all messages."
	}
	l := t.r.Latency
	t.over("send-time", "send "+what, "Of what was confirmed in each second."+never("send", cmp.Or(l.Send.Response, l.Send.Service)), high, layout.Nanoseconds, latencies("send"))
	t.over("rtt-time", "rtt "+what, "Of what was answered in each second."+never("rtt", cmp.Or(l.RTT.Response, l.RTT.Service)), high, layout.Nanoseconds, latencies("rtt"))
	t.over("e2e-time", "e2e "+what, "Of what was delivered first in each second."+never("e2e", cmp.Or(l.E2E.Response, l.E2E.Service)), high, layout.Nanoseconds, latencies("e2e"))
	if !t.o.lone {
		return // its own page has the others
	}
	t.over("backlog", "backlog", "Confirmed messages that may still come, at the end of each second; of several subscriptions the largest.", low, layout.Numbers,
		[]curve{{"backlog", "backlog", "s1"}})
	t.over("lateness-time", "lateness", "How late the generator itself was. This delay is the generator's fault, and the verdict judges it.", low, layout.Nanoseconds, latencies("lateness"))
	t.over("blocked-time", "blocked", "How long messages waited for room: no free slot, or the client library refused. That is the system's limit, or the client's.", low, layout.Nanoseconds, latencies("blocked"))
}

// overTimeSays explains what all charts over time have in common.
func (t *single) overTimeSays() string {
	c := t.Course
	says := "0 is the end of the warm-up. Warm-up and drain are shaded. A step is a second, and what was counted in it. A gap in a line is a second with too few samples for that percentile, not a zero."
	if len(t.happenings(true)) > 0 {
		says = strings.Replace(says, "are shaded.", "are shaded, and so are the faults, pauses or stages that the first chart names.", 1)
	}
	var kinds []string
	if len(c.marks) > 0 {
		for _, m := range c.marks {
			if !slices.Contains(kinds, m.kind) && (m.kind != outliers.Hiccup || len(c.stalls) == 0) {
				kinds = append(kinds, m.kind)
			}
		}
	}
	if len(kinds) > 0 {
		says += " Strokes, short or through the chart, are events: " + strings.Join(kinds, ", ") + "."
	}
	if len(c.stalls) > 0 {
		says += " The strip under the time axis has the host's longest stalls, measured by a thread that sleeps for a millisecond at a time."
	}
	if c.unmarked > 0 {
		says += fmt.Sprintf(" %s further events are in events.jsonl only.", quantity.Count(c.unmarked))
	}
	if c.seconds > 2*mostBins {
		says += fmt.Sprintf(" The run has %s seconds: drawn are the lowest and the highest value of each of %d parts of it.", quantity.Count(uint64(c.seconds)), mostBins)
	}
	return says
}

func timeText(v float64) string  { return quantity.Time(int64(v)) }
func countText(v float64) string { return quantity.Count(uint64(max(0, v))) }

// over draws a chart of messages or their latencies over time.
func (t *single) over(id, title, caption string, height int, unit layout.Unit, curves []curve) {
	t.drawOver(id, title, caption, height, func(least, most float64) plot.Axis {
		switch {
		case unit == layout.Nanoseconds:
			return plot.Log(least, most, "latency", short)
		case id == "rates":
			return plot.Linear(0, 1.15*most, 6, "per second", countText)
		}
		return plot.Linear(0, 1.15*most, 4, "messages", countText)
	}, unit, curves)
}

// drawOver draws any chart over time; axis gets the least value above 0 and the greatest.
func (t *single) drawOver(id, title, caption string, height int, axis func(least, most float64) plot.Axis, unit layout.Unit, curves []curve) {
	c, log, text := t.Course, unit == layout.Nanoseconds, textOf(unit)
	curves = slices.DeleteFunc(curves, func(x curve) bool { return len(c.tracks[x.track].points) == 0 })
	rates := id == "rates"
	if rates { // of directions that occur
		curves = slices.DeleteFunc(curves, func(x curve) bool { return c.most(x.track) == 0 })
	}
	least, most, zero := math.Inf(1), 0.0, false
	for _, x := range curves {
		most = max(most, c.most(x.track))
		for _, p := range c.tracks[x.track].points {
			if p.Y > 0 {
				least = min(least, p.Y)
			}
			zero = zero || p.Y == 0
		}
	}
	if len(curves) == 0 || most == 0 {
		return // no values
	}
	f := &layout.Chart{Caption: caption, Chart: plot.Chart{ID: t.o.drawn + id, Title: title + " over time", Height: height}}
	for _, s := range c.spans {
		if word := map[string]string{"warmup": "warm-up", "drain": "drain"}[s.Text]; word != "" {
			f.Spans = append(f.Spans, plot.Span{From: s.From, To: s.To, Text: word})
		}
	}
	f.Spans = append(f.Spans, t.happenings(rates)...)
	if rates {
		if line, says, highest := t.offered(c); highest > 0 {
			most = max(most, highest)
			f.Legend = append(f.Legend, layout.Key{Class: line.Class, Text: says})
			line.Series = len(f.Legend)
			f.Lines = append(f.Lines, line)
		}
	}
	for _, x := range curves {
		f.Legend = append(f.Legend, layout.Key{Class: x.class, Text: x.name})
		f.Lines = append(f.Lines, plot.Line{Class: x.class, Points: c.tracks[x.track].points, Series: len(f.Legend)})
		if at := c.limited[x.track]; len(at) > 0 {
			f.Lines = append(f.Lines, c.squares(x, at, text, len(f.Legend)))
			f.Caption += " A square: over half of the p99 of that second is as much as the generator's own lateness has at p99, so it says more of the host than of the system."
		}
	}
	of, _, is := strings.Cut(id, "-time")
	if is && log {
		least, most = promises(f, t.r.Verdict.SLO, of, least, most, t.r.Run.Loop == result.LoopClosed)
	}
	if rates {
		numberSpans(f)
	}
	f.X = seconds(c.from, c.to)
	if log && zero {
		f.Caption += noZero
	}
	f.Y = axis(least, most)
	f.Columns = c.tell(curves, text)
	f.Marks = c.strokes()
	if t.o.lone && (log || unit == layout.Numbers || rates) { // of messages: charts of the host need not repeat it
		f.Under = c.stalled()
	}
	f.Desc = c.describe(curves, text)
	f.Timed = &layout.Timed{Unit: unit}
	if t.o.lone && c.mosaics[of] != nil {
		f.Timed.Of = of
	}
	if !t.o.lone { // a page of many runs would become too large
		for i := range f.Lines {
			f.Lines[i].Points = plot.Thin(f.Lines[i].Points, fewBins)
		}
	}
	t.Chart(f)
}

// fewBins is mostBins for a run among several.
const fewBins = 60

// happenings are the faults, the pause and the stages of a run, to be shaded; named says that this chart has
// their names.
func (t *single) happenings(named bool) (all []plot.Span) {
	add := func(from, to int64, class, text string) {
		s := plot.Span{From: t.Course.origin.seconds(from), To: t.Course.origin.seconds(to), Class: class}
		if named {
			s.Text = text
		}
		if len(all) < mostSpans {
			all = append(all, s)
		}
	}
	if len(t.r.Stages) > 1 {
		for i := range t.r.Stages {
			g := &t.r.Stages[i]
			add(g.FromNS, g.ToNS, "stage", layout.Shortened(g.Plan, 40))
		}
	}
	for i := range t.r.Faults {
		f := &t.r.Faults[i]
		until := f.BeganNS
		if f.UndoneNS != nil {
			until = *f.UndoneNS
		}
		add(f.BeganNS, until, "fault", faulted(f).Text)
	}
	if x := t.r.Pause; x != nil {
		add(x.BeganNS, x.ResumedNS, "fault", "consumers paused")
	}
	return all
}

// numberSpans names faults, pauses and stages in the legend, each name once: in the chart they have no room.
func numberSpans(f *layout.Chart) {
	for i := range f.Spans {
		s := &f.Spans[i]
		key := layout.Key{Class: s.Class, Text: s.Text}
		s.Series = slices.Index(f.Legend, key) + 1
		if s.Class != "" && s.Series == 0 && len(f.Legend) < layout.MostSeries {
			f.Legend = append(f.Legend, key)
			s.Series = len(f.Legend)
		}
	}
}

func textOf(unit layout.Unit) func(float64) string {
	return map[layout.Unit]func(float64) string{
		layout.Nanoseconds: timeText, layout.PerSecond: quantity.Rate, layout.Numbers: countText, layout.Octets: quantity.Bytes, layout.Cores: coresText,
	}[unit]
}

// squares marks the seconds of mostly lateness of a line.
func (c *Course) squares(x curve, at []float64, text func(float64) string, series int) plot.Line {
	l := plot.Line{Class: "host " + x.class, Series: series, Dots: true}
	for _, p := range c.tracks[x.track].points {
		if slices.Contains(at, p.X) && !math.IsNaN(p.Y) {
			l.Points = append(l.Points, plot.Point{X: p.X + p.Wide/2, Y: p.Y, Form: plot.Square, Text: x.name + " " + text(p.Y) + ", mostly lateness"}, plot.Point{X: p.X + p.Wide/2, Y: math.NaN()})
		}
	}
	return l
}

// farOff is the largest ratio between a limit and the measured values at which a chart shows both.
const farOff = 100

// promises draws the limits of a direction's objectives, and returns axis ends that include them. A chart
// may have limits of responses or of services.
func promises(f *layout.Chart, all []result.SLO, of string, least, most float64, services bool) (float64, float64) {
	drawn := map[float64]bool{}
	for i := range all {
		s := &all[i]
		o, err := judge.ParseObjective(s.Expr)
		if err != nil {
			continue
		}
		name, service := o.Latency()
		limit := o.Limit()
		if name == "" || name != of || service != services || drawn[limit] || len(drawn) == mostColours {
			continue
		}
		drawn[limit] = true
		if limit > most*farOff || limit < least/farOff || limit <= 0 {
			f.Caption += " The objective " + s.Expr + " lies outside the chart."
			continue
		}
		least, most = min(least, limit), max(most, limit)
		outcome := s.Outcome()
		ruled(f, limit, s.Expr+": "+string(outcome), map[result.Outcome]string{result.Pass: " pass", result.Fail: " fail"}[outcome])
	}
	return least, most
}

// ruled draws the limit of an objective.
func ruled(f *layout.Chart, limit float64, says, class string) {
	f.Legend = append(f.Legend, layout.Key{Class: "rule" + class, Text: "objective " + says})
	f.Rules = append(f.Rules, plot.Rule{Y: limit, Text: says, Class: strings.TrimSpace(class), Series: len(f.Legend)})
}

// A toldEvent is an event for the script of a page.
type toldEvent struct {
	At   float64 `json:"at"`
	To   float64 `json:"to"`
	Text string  `json:"text"`
}

// told returns the first events of each kind in order, and the longest stalls of the host, for the script.
func (c *Course) told() (all []toldEvent) {
	round := func(s float64) float64 { return math.Round(s*1000) / 1000 }
	for _, m := range c.marks {
		if len(all) < mostEvents && m.kind != outliers.Hiccup && m.kind != "gc" {
			all = append(all, toldEvent{round(m.at), round(m.at), layout.Printable(layout.Shortened(m.kind+": "+m.text, 120))})
		}
	}
	stalls := slices.SortedFunc(slices.Values(c.stalls), func(a, b stall) int { return cmp.Compare(b.length, a.length) })
	for _, s := range stalls[:min(len(stalls), mostRows)] {
		all = append(all, toldEvent{round(s.at), round(s.at + s.length), "stall of the host: " + quantity.Time(int64(s.length*1e9))})
	}
	slices.SortStableFunc(all, func(a, b toldEvent) int { return cmp.Compare(a.At, b.At) })
	return all
}

// stalled returns the host's scheduling stalls, as marks under the time axis; nil if unknown.
func (c *Course) stalled() []plot.Mark {
	var out []plot.Mark
	for _, s := range c.stalls {
		out = append(out, plot.Mark{X: s.at, To: s.at + s.length, Class: "stall", Text: "stall of the host at " + seconded(s.at) + ": " + quantity.Time(int64(s.length*1e9))})
	}
	return out
}

// most is the highest value of a track.
func (c *Course) most(name string) float64 {
	most := 0.0
	for _, r := range c.tracks[name].ranges {
		if r[1] > most {
			most = r[1]
		}
	}
	return most
}

// between formats the lowest and the highest of a range.
func between(r [2]float64, text func(float64) string) string {
	switch {
	case math.IsNaN(r[0]):
		return "-"
	case text(r[0]) == text(r[1]):
		return text(r[0])
	}
	return text(r[0]) + " to " + text(r[1])
}

// tell describes the values in each column.
func (c *Course) tell(curves []curve, text func(float64) string) []plot.Column {
	n := c.columns()
	out := make([]plot.Column, n)
	at := func(i int) float64 { return c.from + (c.to-c.from)*float64(i)/float64(n) }
	for i := range out {
		parts := make([]string, len(curves))
		for k, x := range curves {
			parts[k] = x.name + " " + between(c.tracks[x.track].ranges[i], text)
		}
		out[i] = plot.Column{From: at(i), To: at(i + 1), Text: fmt.Sprintf("%s to %s: %s", seconded(at(i)), seconded(at(i+1)), strings.Join(parts, ", "))}
	}
	return out
}

// seconded formats a time of the run.
func seconded(s float64) string {
	if math.Abs(s) < 0.05 {
		s = 0 // not -0.0
	}
	return quantity.Commas(fmt.Sprintf("%.1f", s)) + " s"
}

// describe says in words what a chart shows.
func (c *Course) describe(curves []curve, text func(float64) string) string {
	says := make([]string, len(curves))
	for k, x := range curves {
		all := [2]float64{math.NaN(), math.NaN()}
		for _, r := range c.tracks[x.track].ranges {
			switch {
			case math.IsNaN(r[0]):
			case math.IsNaN(all[0]):
				all = r
			default:
				all = [2]float64{min(all[0], r[0]), max(all[1], r[1])}
			}
		}
		says[k] = x.name + " " + between(all, text)
	}
	return fmt.Sprintf("From %s to %s of the run: %s.", seconded(c.from), seconded(c.to), strings.Join(says, "; "))
}

// strokes returns the events as marks; frequent events get short ones.
func (c *Course) strokes() []plot.Mark {
	var out []plot.Mark
	for _, h := range c.marks {
		if h.kind == outliers.Hiccup && len(c.stalls) > 0 {
			continue // shown under the axis
		}
		m := plot.Mark{X: h.at, Class: "event", Tall: true, Text: h.kind + " at " + seconded(h.at) + ": " + h.text}
		if h.kind == "gc" || h.kind == "hiccup" {
			m.Class, m.Tall = "often", false
		}
		if h.count > 1 {
			m.Text += " (" + quantity.Count(h.count) + " events then)"
		}
		out = append(out, m)
	}
	return out
}

// seconds is an axis of time.
func seconds(from, to float64) plot.Axis {
	step := 1.0
	for _, s := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 48 * 3600, 7 * 24 * 3600} {
		if step = s; (to-from)/s <= 12 {
			break
		}
	}
	label := "time of the run"
	if from < 0 {
		label = "time since the end of the warm-up"
	}
	return plot.Stepped(from, to, step, label, clock)
}
