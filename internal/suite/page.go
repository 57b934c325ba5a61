package suite

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/result"
)

// List lays out the suites that weir has.
func List() (*layout.Page, error) {
	p, t := new(layout.Page), layout.Listing("suite", "rows", "systems", "article")
	for _, name := range Names() {
		s, err := Named(name)
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

// Page lays out what a suite would run, and what the article printed.
func (s *Suite) Page() *layout.Page {
	p := new(layout.Page)
	p.Heading("suite " + s.Name)
	p.Labelled("article", layout.Plain.Of(s.Title+" ("+s.Source+")"))
	if s.Setup != "" {
		p.Labelled("there", layout.Plain.Of(s.Setup))
	}
	if f := s.run.Flow(); f != "{}" {
		p.Labelled("all rows", layout.Plain.Of(f))
	}
	p.Gap()
	t := layout.Listing("system", "driver", "the article ran", "settings")
	t.Columns[2].Kind = layout.Prose
	for _, x := range s.Systems {
		t.Row(x.Name, x.Driver, x.Was, x.run.Flow())
	}
	p.Table(t)
	p.Gap()
	t = layout.Listing("row", "what", "the article's figures")
	t.Columns[1].Kind = layout.Prose
	for _, row := range s.Rows {
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
			about = row.run.Flow()
		}
		if b := s.sends(&row); b >= tellsFrom {
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

// tellsFrom is from how many bytes a page tells what a row sends: a host may lack the room.
const tellsFrom = 1 << 30

// sends returns how many bytes of messages a run of a row sends, without its warm-up; 0
// where the row does not fix it.
func (s *Suite) sends(row *Row) float64 {
	run := tree.Overlay(s.run, row.run)
	text := func(path ...string) string {
		n := run
		for _, key := range path {
			if n = n.Field(key); n == nil {
				return ""
			}
		}
		return n.Text
	}
	size, err := quantity.Size(text("message", "size"))
	if err != nil {
		return 0
	}
	if n, ok := quantity.Whole(text("messages")); ok {
		return float64(size) * float64(n)
	}
	digits, perSecond := strings.CutSuffix(text("load", "rate"), "/s")
	rate, ok := quantity.Whole(digits)
	d, err := quantity.Duration(text("measure"))
	if !perSecond || !ok || err != nil {
		return 0
	}
	return float64(size) * float64(rate) * d.Seconds()
}

// HTML is Drawn for a browser.
func (r *Report) HTML() ([]byte, error) {
	var page bytes.Buffer
	html := layout.HTML{Title: "suite " + r.Suite.Name, Schema: result.SchemaReport, Footer: "This page is a picture of suite.json. The folder of each run has a page of its own."}
	err := html.Write(&page, r.Drawn())
	return page.Bytes(), err
}

// Drawn is Page with pictures, for browsers: each figure that the article gives too, ours
// and the article's beside it, on a logarithmic axis. Figures of one unit are one picture.
func (r *Report) Drawn() *layout.Page {
	p := r.Page()
	var order []string
	pairs := map[string][]pair{}
	for _, l := range r.Rows {
		for _, f := range l.Figures {
			if f.Published == nil || f.Unit == "" || f.Value <= 0 || f.Published.Value <= 0 {
				continue
			}
			key := f.Unit
			if pairs[key] == nil {
				order = append(order, key)
			}
			pairs[key] = append(pairs[key], pair{l.Row + ", " + l.System, f})
		}
	}
	for i, key := range order {
		p.Gap()
		p.Chart(drawing(fmt.Sprintf("pairs%d", i), key, pairs[key], r.heading()))
	}
	r.charts(p)
	r.curves(p)
	r.Suite.Chances.chart(p)
	return p
}

// A pair is one of our figures with that of the article.
type pair struct {
	of     string
	figure Figure
}

// drawing is the chart of figures of one unit.
func drawing(id, unit string, all []pair, heading string) *layout.Chart {
	low, high := math.Inf(1), 0.0
	ours, theirs := plot.Line{Class: "s1 broad", Dots: true}, plot.Line{Class: "s2 broad", Dots: true}
	var said []string
	for i, x := range all {
		at, f := float64(i+1), x.figure
		article := f.Published.Text
		text := fmt.Sprintf("%s, %s: ours %s, article %s", x.of, f.Figure, f.Shown(), article)
		said = append(said, text)
		low, high = min(low, f.Value, f.Published.Value), max(high, f.Value, f.Published.Value)
		form := plot.Full
		if f.AtLeast {
			form = plot.Upward
		}
		// A point that stands alone is between two gaps.
		gap := plot.Point{X: at, Y: math.NaN(), Form: plot.Undotted}
		ours.Points = append(ours.Points, plot.Point{X: at, Y: f.Value, Text: text, Form: form}, gap)
		theirs.Points = append(theirs.Points, plot.Point{X: at, Y: f.Published.Value, Text: text, Form: plot.Hollow}, gap)
	}
	number := func(v float64) string { return fmt.Sprint(int(v)) }
	c := &layout.Chart{Caption: heading + ": ours and the article's, in the order of the table. Point at a dot for its row.", Legend: []layout.Key{{Class: "s1", Text: "ours"}, {Class: "s2", Text: "the article's"}}}
	c.Chart = plot.Chart{
		ID: id, Title: heading + ": ours and the article's", Desc: strings.Join(said, "; "), Height: 320,
		X:     plot.Linear(0, float64(len(all)+1), 20, "pairs in the order of the table", number),
		Y:     plot.Log(low/2, high*2, "", func(v float64) string { return shown(unit, v) }),
		Lines: []plot.Line{ours, theirs},
	}
	return c
}

// Ends puts on a page what the runs of a suite in a folder came to, and which command helps
// most after them. name is how the suite was asked for; "": by the folder.
func (r *Report) Ends(p *layout.Page, dir, name string) {
	counts, doubted := map[string]int{}, map[string]string{} // by verdict: how many, and the first's folder
	for _, l := range r.Rows {
		if l.Verdict == "" {
			continue
		}
		if counts[l.Verdict]++; counts[l.Verdict] == 1 {
			doubted[l.Verdict] = filepath.Join(dir, l.Dir)
		}
	}
	var says []string
	command := "weir suite show " + view.Quoted(dir)
	if r.Scale != 1 && name != "" {
		command = "weir suite run " + view.Quoted(name) + "  # as long as the article's runs"
	}
	for _, v := range []result.Status{result.Valid, result.Suspect, result.Invalid} {
		word := string(v)
		if counts[word] == 0 {
			continue
		}
		says = append(says, fmt.Sprintf("%d %s", counts[word], strings.ToUpper(word)))
		if v != result.Valid {
			command = "weir report " + view.Quoted(doubted[word]) + "  # says why"
		}
	}
	if len(r.Rows) < r.Planned {
		command = "weir suite run --resume " + view.Quoted(dir) + "  # does the rest"
	}
	p.Labelled("runs", layout.Plain.Of(cmp.Or(strings.Join(says, ", "), "none with figures")))
	p.Add(layout.Block{Form: layout.Labelled, Mark: layout.Plain.Of("next"), Spans: []layout.Span{layout.Plain.Of(command)}, Whole: true})
	p.Verbatim("written to " + dir + ", with a folder for each run")
}

// mostLines is how many runs of a suite a screen has.
const mostLines = 10

// Screen is Page in short, a line for each run with the figure that stands first, and what
// Ends says.
func (r *Report) Screen(dir, name string) *view.Screen {
	s := new(view.Screen)
	s.Add(0, func(p *layout.Page) {
		p.Heading(r.heading())
		r.scaled(p)
	})
	s.Gap()
	s.Add(0, func(p *layout.Page) {
		t := &layout.Table{Columns: layout.Columns(layout.Word, layout.Plain, "row", "system", "figure", "ours", "article", "verdict")}
		t.Columns[3].Kind, t.Columns[4].Kind = layout.Number, layout.Number
		for _, l := range r.Rows[:min(len(r.Rows), mostLines)] {
			cells := []string{layout.Shortened(l.Row, 20), l.System, "", "", "", "none"}
			if l.Verdict != "" {
				cells[5] = strings.ToUpper(l.Verdict)
			}
			if f := l.first(); f != nil {
				cells[2], cells[3] = f.Figure, f.Shown()
				if f.Published != nil {
					cells[4] = f.Published.Text
				}
			}
			t.Row(cells...)
		}
		p.Table(t)
		if n := len(r.Rows) - mostLines; n > 0 {
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
		p.Add(layout.Block{Form: layout.Labelled, Mark: layout.Plain.Of("all figures"), Spans: []layout.Span{layout.Plain.Of("weir suite show " + view.Quoted(dir))}, Whole: true})
	})
	return s
}

// first is the figure of a line that stands for it: the first that the article has too.
func (l *Line) first() *Figure {
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
