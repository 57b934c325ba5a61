package view

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/view/layout"
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
type SuiteReport struct {
	*suite.Report
	To func(dir string) string // address of the page of the run in a folder of the suite's; "" or nil: none

	above bool // the page lies in the folder of the suite
}

// HTML is Drawn for a browser.
func (r SuiteReport) HTML(w io.Writer) error {
	html := browser("suite " + r.Suite.Name)
	html.Footer = "The figures are in suite.json. " + aboutScript
	return html.Write(w, r.Drawn())
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
	written := "written to " + dir
	if len(says) > 0 {
		written += ", with a folder for each run"
	}
	p.Verbatim(written)
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
		p.Add(layout.Block{Form: layout.Labelled, Mark: layout.Plain.Of("details"), Spans: []layout.Span{layout.Plain.Of("weir suite show " + Quoted(dir))}, Whole: true})
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

// Page returns the report: what the article did, how ours differs, and the table of each row.
func (r SuiteReport) Page() *layout.Page { return r.page(false) }

// Drawn is Page with charts.
func (r SuiteReport) Drawn() *layout.Page { return r.page(true) }

func (r SuiteReport) page(drawn bool) *layout.Page {
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
	r.notRun(p)
	if r.above {
		p.Labelled("files", layout.Span{Text: suite.File, Link: "./" + suite.File}, plain(", "), layout.Span{Text: suite.FileReport, Link: "./" + suite.FileReport})
	}
	if drawn {
		r.pairs(p)
		r.charts(p)
		chancesChart(r.Suite.Chances, p)
		p.Contents()
	}
	known := 0 // processors of the first run that records them
	processors := slices.ContainsFunc(r.Rows, func(l suite.Line) bool {
		known = cmp.Or(known, l.Processors)
		return l.Processors != 0 && l.Processors != known
	})
	var missing []string
	var names []string
	drawings := 0
	rows := map[string][]suite.Line{} // a run that was repeated stands last in the report
	for _, l := range r.Rows {
		if rows[l.Row] == nil {
			names = append(names, l.Row)
		}
		rows[l.Row] = append(rows[l.Row], l)
	}
	for _, name := range names {
		r.row(p, rows[name], processors)
		for _, l := range rows[name] {
			for _, f := range l.Figures {
				if f.Why != "" && (f.Unit == "" || f.Published != nil) { // suite.json has the others
					missing = append(missing, fmt.Sprintf("%s, %s, %s: %s", l.Row, l.System, f.Figure, f.Why))
				}
			}
			if drawn && len(l.Curves) > 0 {
				p.Gap()
				p.Chart(curves(fmt.Sprintf("curves%d", drawings), &l))
				drawings++
			}
		}
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

// row writes the results of all systems in one row of the suite: a table, and below it the differences
// from the article; with processors also their number.
func (r SuiteReport) row(p *layout.Page, all []suite.Line, processors bool) {
	p.Gap()
	p.Chapter(all[0].Row)
	p.Gap()
	t := layout.Listing("system", "figure", "ours", intervalHead, "article", "verdict")
	t.Cards = true
	t.Columns[2].Kind, t.Columns[3].Kind, t.Columns[4].Kind, t.Columns[5].Kind = layout.Number, layout.Number, layout.Prose, layout.Word
	var notes []string // each once, in the order of the systems
	of := map[string][]string{}
	for _, l := range all {
		r.lines(t, &l)
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

// lines adds a run's results: a row of the table for each figure. Its verdict leads to its page.
func (r SuiteReport) lines(t *layout.Table, l *suite.Line) {
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
		if i == 0 && l.Dir != "" && r.To != nil {
			t.Rows[len(t.Rows)-1][5].Link = r.To(l.Dir)
		}
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
