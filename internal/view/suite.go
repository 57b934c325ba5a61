package view

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// Suites returns a page of the built-in suites.
func Suites() (*layout.Page, error) {
	p, t := new(layout.Page), layout.Listing("suite", "rows", "systems", "article")
	for _, name := range suite.Names() {
		s, err := suite.Named(name)
		if err != nil {
			return nil, err
		}
		t.Row(s.Name, strconv.Itoa(len(s.Rows)), strconv.Itoa(len(s.Systems)), s.Title)
	}
	p.Table(t)
	p.Gap()
	p.Say("weir suite show NAME lists the rows of one")
	return p, nil
}

// SuitePlan returns a page of what a suite would run, and of the article's figures.
func SuitePlan(s *suite.Suite) *layout.Page {
	p := new(layout.Page)
	p.Heading("suite " + s.Name)
	p.Labelled("article", layout.Plain.Of(s.Title+" ("+s.Source+")"))
	if s.Setup != "" {
		p.Labelled("there", layout.Plain.Of(s.Setup))
	}
	if f := s.Flow(); f != "{}" {
		p.Labelled("all rows", layout.Plain.Of(f))
	}
	p.Gap()
	t := layout.Listing("system", "driver", "the article ran", "settings")
	t.Columns[2].Kind = layout.Prose
	for i := range s.Systems {
		x := &s.Systems[i]
		t.Row(x.Name, x.Driver, x.Was, x.Flow())
	}
	p.Table(t)
	p.Gap()
	t = layout.Listing("row", "what", "the article's figures")
	t.Columns[1].Kind = layout.Prose
	for i := range s.Rows {
		row := &s.Rows[i]
		var printed []string
		for _, x := range row.Published {
			text := fmt.Sprintf("%s %s %s", x.System, x.Figure, x.Text)
			if x.As != "" {
				text += " (" + x.As + ")"
			}
			printed = append(printed, text)
		}
		about := row.About
		if about == "" {
			about = row.Flow()
		}
		if b := s.Sends(row); b >= tellsFrom {
			about += fmt.Sprintf(" (sends %.3g GiB in all)", b/(1<<30))
		}
		t.Row(row.Name, about, strings.Join(printed, ", "))
	}
	p.Table(t)
	if len(s.Notes) > 0 {
		p.Gap()
	}
	for _, n := range s.Notes {
		p.Bullet(n)
	}
	return p
}

// tellsFrom is the number of bytes from which a page mentions what a row sends, since a host may lack the
// room.
const tellsFrom = 1 << 30

// A SuiteReport is the page of a suite's runs, or of some of them.
type SuiteReport struct{ *suite.Report }

// HTML is Drawn for a browser.
func (r SuiteReport) HTML() ([]byte, error) {
	var page bytes.Buffer
	html := browser("suite " + r.Suite.Name)
	html.Footer = "The figures are in suite.json. The folder of each run has a page of its own."
	err := html.Write(&page, r.Drawn())
	return page.Bytes(), err
}

// Drawn is Page with charts, for HTML: each figure that the article also gives, ours beside the article's,
// in a row on a logarithmic axis. Figures of one unit share a chart.
func (r SuiteReport) Drawn() *layout.Page {
	p := r.Page()
	var order []string
	pairs := map[string][]suitePair{}
	for _, l := range r.Rows {
		for _, f := range l.Figures {
			if f.Published == nil || f.Unit == "" || f.Value <= 0 || f.Published.Value <= 0 {
				continue
			}
			key := f.Unit
			if pairs[key] == nil {
				order = append(order, key)
			}
			pairs[key] = append(pairs[key], suitePair{l.Row + ", " + l.System, f})
		}
	}
	for i, key := range order {
		p.Gap()
		p.Chart(pairsChart(fmt.Sprintf("pairs%d", i), key, pairs[key], r.heading()))
	}
	r.charts(p)
	r.curves(p)
	chancesChart(r.Suite.Chances, p)
	return p
}

// A suitePair is one of our figures with the article's.
type suitePair struct {
	of     string
	figure suite.Figure
}

// Limits of a chart of pairs, and the height of a row in its units.
const (
	mostPairs = 60
	pairHigh  = 34
)

// pairsChart draws a row for each pair: ours and the article's on one axis, joined, with their ratio.
func pairsChart(id, unit string, all []suitePair, heading string) *layout.Chart {
	title := heading + ": ours and the article's"
	c := &layout.Chart{Caption: "A square is the article's figure, a dot is ours. Each row says ours as a multiple of the article's.", Legend: []layout.Key{{Class: "s1 round", Text: "ours"}, {Class: "s2 box", Text: "the article's"}}}
	if n := len(all); n > mostPairs {
		c.Caption += fmt.Sprintf(" The first %d of %d are drawn.", mostPairs, n)
		all = all[:mostPairs]
	}
	low, high := math.Inf(1), 0.0
	ours, theirs := plot.Line{Class: "s1", Series: 1, Dots: true, Loose: true}, plot.Line{Class: "s2", Series: 2, Dots: true, Loose: true}
	rows := float64(len(all))
	y := plot.Axis{Min: 0, Max: rows, Inside: true}
	var said []string
	for i, x := range all {
		at, f := rows-float64(i)-0.8, x.figure
		ratio := quantity.Significant(f.Value/f.Published.Value, false)
		if f.AtLeast {
			ratio = ">= " + ratio
		}
		name := fmt.Sprintf("%s, %s: %s times the article's", x.of, f.Figure, ratio)
		text := fmt.Sprintf("%s, %s: ours %s, article %s", x.of, f.Figure, f.Shown(), f.Published.Text)
		said = append(said, text)
		low, high = min(low, f.Value, f.Published.Value), max(high, f.Value, f.Published.Value)
		form := plot.Full
		if f.AtLeast {
			form = plot.Upward
		}
		y.Ticks = append(y.Ticks, plot.Tick{At: at, Text: layout.Shortened(name, 90)})
		c.Lines = append(c.Lines, plot.Line{Class: "s5", Points: []plot.Point{{X: f.Published.Value, Y: at}, {X: f.Value, Y: at}}})
		ours.Points = append(ours.Points, plot.Point{X: f.Value, Y: at, Text: text, Form: form})
		theirs.Points = append(theirs.Points, plot.Point{X: f.Published.Value, Y: at, Text: text, Form: plot.Square})
	}
	c.Lines = append(c.Lines, theirs, ours)
	c.Chart = plot.Chart{
		ID: id, Title: title, Desc: strings.Join(said, "; "), Height: 80 + pairHigh*len(all),
		X: plot.Log(low/2, high*2, "", func(v float64) string { return suite.Shown(unit, v) }), Y: y, Lines: c.Lines,
	}
	return c
}

// Ends writes the result of a suite's runs in a folder, and the most useful next command. name is how the
// user named the suite; "": by the folder.
func (r SuiteReport) Ends(p *layout.Page, dir, name string) {
	counts, doubted := map[string]int{}, map[string]string{} // by verdict: the number, and the first folder
	for _, l := range r.Rows {
		if l.Verdict == "" {
			continue
		}
		if counts[l.Verdict]++; counts[l.Verdict] == 1 {
			doubted[l.Verdict] = filepath.Join(dir, l.Dir)
		}
	}
	var says []string
	command := "weir suite show " + Quoted(dir)
	if r.Scale != 1 && name != "" {
		command = "weir suite run " + Quoted(name) + "  # as long as the article's runs"
	}
	for _, v := range []result.Status{result.Valid, result.Suspect, result.Invalid} {
		word := string(v)
		if counts[word] == 0 {
			continue
		}
		says = append(says, fmt.Sprintf("%d %s", counts[word], strings.ToUpper(word)))
		if v != result.Valid {
			command = "weir report " + Quoted(doubted[word]) + "  # says why"
		}
	}
	if len(r.Rows) < r.Planned {
		command = "weir suite run --resume " + Quoted(dir) + "  # does the rest"
	}
	p.Labelled("runs", layout.Plain.Of(cmp.Or(strings.Join(says, ", "), "none with figures")))
	p.Add(layout.Block{Form: layout.Labelled, Mark: layout.Plain.Of("next"), Spans: []layout.Span{layout.Plain.Of(command)}, Whole: true})
	p.Verbatim("written to " + dir + ", with a folder for each run")
}

const mostSuiteLines = 4

// Screen is Page in short, with a line for each run and its first figure, and the text of Ends.
func (r SuiteReport) Screen(dir, name string) *Screen {
	s := new(Screen)
	s.Add(0, func(p *layout.Page) { p.Heading(r.heading()) })
	s.Add(3, r.scaled)
	s.Gap()
	s.Add(0, func(p *layout.Page) {
		t := &layout.Table{Columns: layout.Columns(layout.Word, layout.Plain, "row", "system", "figure", "ours", "article", "verdict")}
		t.Columns[3].Kind, t.Columns[4].Kind = layout.Number, layout.Number
		for _, l := range r.Rows[:min(len(r.Rows), mostSuiteLines)] {
			cells := []string{layout.Shortened(l.Row, 20), l.System, "", "", "", "none"}
			if l.Verdict != "" {
				cells[5] = strings.ToUpper(l.Verdict)
			}
			if f := firstFigure(&l); f != nil {
				cells[2], cells[3] = f.Figure, f.Shown()
				if f.Published != nil {
					cells[4] = f.Published.Text
				}
			}
			t.Row(cells...)
		}
		p.Table(t)
		if n := len(r.Rows) - mostSuiteLines; n > 0 {
			p.Note(fmt.Sprintf("and %s", quantity.Counted(n, "more run", "more runs")))
		}
	})
	s.Add(2, func(p *layout.Page) {
		for _, l := range r.Rows {
			if l.Why != "" {
				p.Bullet(l.Row + ", " + l.System + ": " + l.Why)
				return
			}
		}
	})
	s.Gap()
	s.Add(0, r.notRun)
	s.Add(0, func(p *layout.Page) {
		r.Ends(p, dir, name)
		p.Add(layout.Block{Form: layout.Labelled, Mark: layout.Plain.Of("all figures"), Spans: []layout.Span{layout.Plain.Of("weir suite show " + Quoted(dir))}, Whole: true})
	})
	return s
}

// firstFigure is the figure that represents a line: the first that the article also has.
func firstFigure(l *suite.Line) *suite.Figure {
	for i := range l.Figures {
		if l.Figures[i].Published != nil {
			return &l.Figures[i]
		}
	}
	if len(l.Figures) == 0 {
		return nil
	}
	return &l.Figures[0]
}

func (r SuiteReport) charts(p *layout.Page) {
	for i, c := range r.Suite.Charts {
		unit, spots := r.spots(&c)
		if c.Over == "" {
			spots = bestOf(spots, unit)
		}
		f := Variation{ID: fmt.Sprintf("over%d", i), Title: c.Title, Key: c.Over, Spots: spots, Write: func(v float64) string { return suite.Shown(unit, v) }}
		if c.Over == "" {
			f.Key, f.Caption = "system", "The best of its rows. It ranks nothing: what a confirmation means differs, see each run."
		}
		if f.Title == "" {
			f.Title = strings.TrimSuffix(c.Figure+" over "+c.Over, " over ")
		}
		f.Title = r.heading() + ": " + f.Title
		if chart := f.Chart(); chart != nil {
			p.Gap()
			p.Chart(chart)
		}
	}
}

// spots returns the figures of a chart and their unit. An INVALID run has none; the article's are beside
// ours.
func (r SuiteReport) spots(c *suite.Chart) (unit string, spots []Spot) {
	for _, l := range r.Rows {
		key := l.Over[c.Over]
		if !c.Takes(l.Row) || c.Over != "" && key == "" {
			continue
		}
		if c.Over == "" {
			key = l.System
		}
		for _, f := range l.Figures {
			if f.Figure != c.Figure || f.Unit == "" {
				continue
			}
			unit = f.Unit
			if l.Verdict != string(result.Invalid) {
				spots = append(spots, Spot{Series: l.System, Key: key, Value: f.Bound()})
			}
			if f.Published != nil {
				spots = append(spots, Spot{Series: l.System, Key: key, Value: result.Exactly(f.Published.Value), Printed: true})
			}
		}
	}
	return unit, spots
}

// bestOf returns the best figure of each system, ours and the article's separately: the least of times, the
// highest of anything else.
func bestOf(spots []Spot, unit string) (best []Spot) {
	for _, s := range spots {
		s.Series = "best row"
		i := slices.IndexFunc(best, func(b Spot) bool { return b.Key == s.Key && b.Printed == s.Printed })
		if i < 0 {
			best = append(best, s)
			continue
		}
		_, lowest, highest := result.Spread([]result.Value{best[i].Value, s.Value})
		if best[i].Value = highest; unit == "ns" {
			best[i].Value = lowest
		}
	}
	return best
}

func (r SuiteReport) curves(p *layout.Page) {
	usual := judge.Percentiles() // these have dots
	for i, l := range r.Rows {
		if len(l.Curves) == 0 {
			continue
		}
		title := fmt.Sprintf("%s, %s: percentile by percentile, all of one run", l.Row, l.System)
		c := &layout.Chart{Caption: "An arrow: at least so much. Hollow: too few samples, do not quote; the last dot is the largest."}
		c.Chart = plot.Chart{ID: fmt.Sprintf("curves%d", i), Title: title, Height: high}
		end := 1.0
		var said []string
		for n, d := range l.Curves {
			line := plot.Line{Class: fmt.Sprintf("s%d", n+1), Dots: true}
			c.Legend = append(c.Legend, layout.Key{Class: line.Class, Text: d.As + " (" + d.Of + ")"})
			last := 0.0
			for _, x := range d.Points {
				at := last + 0.3 // place the largest to the right of this many samples
				if x.P < 100 {
					at = nines(x.P)
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
				text := fmt.Sprintf("%s, %s: %s", d.As, suitePercent(x.P), result.Bound(float64(x.NS), x.AtLeast).Text(timeText))
				line.Points = append(line.Points, plot.Point{X: at, Y: float64(x.NS), Text: text, Form: form})
				if x.P == 50 || x.P == 99 || x.P == 100 {
					said = append(said, text)
				}
				last, end = at, max(end, at)
			}
			c.Lines = append(c.Lines, line)
		}
		c.Desc = strings.Join(said, "; ")
		c.X = plot.Axis{Min: 0, Max: end, Label: "percentile, on a scale of nines"}
		for _, q := range [...]float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
			if at := nines(q); at <= end {
				c.X.Ticks = append(c.X.Ticks, plot.Tick{At: at, Text: suitePercent(q)})
			}
		}
		least, most := ends(c.Lines)
		c.Y = plot.Log(min(least, most), most, "latency", timeText)
		p.Gap()
		p.Chart(c)
	}
}

func suitePercent(p float64) string {
	return cmp.Or(map[float64]string{0: "least", 100: "largest"}[p], percent(p))
}

// chancesChart draws how likely a page of N requests meets a percentile: 1 - p^N.
func chancesChart(c *suite.Chances, p *layout.Page) {
	if c == nil || len(c.Percentiles) == 0 {
		return
	}
	const steps = 120
	title := "pages with a request that is slower than a percentile, by requests of a page"
	out := &layout.Chart{Caption: "1 - p^N, if requests are slow independently of one another. It needs no run."}
	out.Chart = plot.Chart{ID: "chances", Title: title, Height: high}
	var said []string
	for i, q := range c.Percentiles {
		line := plot.Line{Class: fmt.Sprintf("s%d", i+1), Dots: true}
		had := 0
		for k := range steps + 1 {
			n := int(math.Round(math.Pow(float64(c.Requests), float64(k)/steps))) // evenly spaced on a logarithmic axis
			if n == had {
				continue
			}
			had = n
			share := 100 * stats.SessionShare(q, uint64(n))
			line.Points = append(line.Points, plot.Point{X: float64(n), Y: share, Form: plot.Undotted})
		}
		half := int(math.Ceil(stats.SessionMessages(q, 0.5)))
		text := fmt.Sprintf("half of all pages of %s meet the %s", quantity.Counted(half, "request", "requests"), suitePercent(q))
		if half <= c.Requests {
			line.Points = insertAt(line.Points, plot.Point{X: float64(half), Y: 100 * stats.SessionShare(q, uint64(half)), Text: text})
		}
		said = append(said, text)
		out.Legend = append(out.Legend, layout.Key{Class: line.Class, Text: "the " + suitePercent(q)})
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

// insertAt inserts a point into a line, by X.
func insertAt(points []plot.Point, x plot.Point) []plot.Point {
	i, _ := slices.BinarySearchFunc(points, x.X, func(p plot.Point, at float64) int { return int(p.X - at) })
	return slices.Insert(points, i, x)
}

// Page returns the report: what the article did, how ours differs, and the table.
func (r SuiteReport) Page() *layout.Page {
	p := new(layout.Page)
	p.Heading(r.heading())
	p.Labelled("article", layout.Plain.Of(r.Suite.Title+" ("+r.Suite.Source+")"))
	if r.Suite.Setup != "" {
		p.Labelled("there", layout.Plain.Of(r.Suite.Setup))
	}
	if h := r.hosts(); len(h) > 0 {
		p.Labelled("here", layout.Plain.Of("generator and system on one host: "+strings.Join(h, "; ")))
	}
	r.scaled(p)
	known := 0 // processors of the first run that records them
	processors := slices.ContainsFunc(r.Rows, func(l suite.Line) bool {
		known = cmp.Or(known, l.Processors)
		return l.Processors != 0 && l.Processors != known
	})
	var missing []string
	for i := 0; i < len(r.Rows); {
		n := i + 1
		for n < len(r.Rows) && r.Rows[n].Row == r.Rows[i].Row {
			n++
		}
		suiteRow(p, r.Rows[i:n], processors)
		for _, l := range r.Rows[i:n] {
			for _, f := range l.Figures {
				if f.Why != "" && (f.Unit == "" || f.Published != nil) { // suite.json has the others
					missing = append(missing, fmt.Sprintf("%s, %s, %s: %s", l.Row, l.System, f.Figure, f.Why))
				}
			}
		}
		i = n
	}
	if r.Planned > len(r.Rows) {
		p.Gap()
		r.notRun(p)
	}
	notes := append(slices.Clone(r.Suite.Notes), missing...)
	if len(notes) > 0 {
		p.Gap()
	}
	for _, n := range notes {
		p.Bullet(n)
	}
	return p
}

// scaled notes that shortened runs are not the article's.
func (r SuiteReport) scaled(p *layout.Page) {
	if r.Scale != 1 {
		p.Labelled("scaled", layout.Bad.Of("times and counts are "+suite.Factor(r.Scale)+" of the article's: these are not the article's runs"))
	}
}

// notRun counts the missing runs, if any.
func (r SuiteReport) notRun(p *layout.Page) {
	if n := r.Planned - len(r.Rows); n > 0 {
		p.Labelled("not run", layout.Doubtful.Of(fmt.Sprintf("%d of %d", n, r.Planned)))
	}
}

func (r SuiteReport) heading() string {
	if r.Scale == 1 {
		return "suite " + r.Suite.Name
	}
	return "suite " + r.Suite.Name + ", scaled by " + suite.Factor(r.Scale)
}

func (r SuiteReport) hosts() []string {
	var all []string
	for _, l := range r.Rows {
		if l.Host != "" && !slices.Contains(all, l.Host) {
			all = append(all, l.Host)
		}
	}
	return all
}

// suiteRow writes the results of all systems in one row of the suite: a table, and below it the differences
// from the article; with processors also their number.
func suiteRow(p *layout.Page, all []suite.Line, processors bool) {
	p.Gap()
	p.Chapter(all[0].Row)
	p.Gap()
	t := layout.Listing("system", "figure", "ours", intervalHead, "article", "verdict")
	t.Columns[2].Kind, t.Columns[3].Kind, t.Columns[4].Kind, t.Columns[5].Kind = layout.Number, layout.Number, layout.Prose, layout.Word
	var notes []string // each once, in the order of the systems
	of := map[string][]string{}
	for _, l := range all {
		suiteLines(t, &l)
		note := strings.Join(l.Differs, "; ")
		if processors && l.Processors > 0 {
			note = strings.TrimPrefix(fmt.Sprintf("%s; GOMAXPROCS %d", note, l.Processors), "; ")
		}
		if l.Why != "" {
			note = strings.TrimPrefix(note+"; "+l.Why, "; ")
		}
		if note == "" {
			continue
		}
		if of[note] == nil {
			notes = append(notes, note)
		}
		of[note] = append(of[note], l.System)
	}
	p.Table(t)
	if len(notes) > 0 {
		p.Gap()
	}
	for _, note := range notes {
		p.Bullet(strings.Join(of[note], ", ") + ": " + note)
	}
}

// suiteLines adds a run's results: a row of the table for each figure.
func suiteLines(t *layout.Table, l *suite.Line) {
	if l.Verdict == "" {
		t.Row(l.System, "", "", "", "", "none")
		return
	}
	for i, f := range l.Figures {
		cells := []string{"", f.Figure, f.Shown(), suiteInterval(&f), "", ""}
		if i == 0 {
			cells[0], cells[5] = l.System, strings.ToUpper(l.Verdict)
		}
		if f.Published != nil {
			if cells[4] = f.Published.Text; f.Published.As != "" {
				cells[4] += " (" + f.Published.As + ")"
			}
		}
		t.Row(cells...)
	}
}

// suiteInterval is the interval of an estimated figure.
func suiteInterval(f *suite.Figure) string {
	end := func(v *float64) string {
		if v == nil {
			return ""
		}
		return suite.Shown(f.Unit, *v)
	}
	switch {
	case f.Unit == "" || f.Lo == nil && f.Hi == nil || f.Lo != nil && f.Hi != nil && *f.Lo == *f.Hi:
		return ""
	}
	return quantity.Range(end(f.Lo), end(f.Hi))
}
