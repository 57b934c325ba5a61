package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// Schema names the format of a Report. File and FileReport are the files of a suite that is
// run, and MostBytes bounds the report.
const (
	Schema     = "weir.suite/v1"
	File       = "suite.yaml"
	FileReport = "suite.json"
	MostBytes  = 16 << 20
)

// ParseReport reads a Report from what its file holds.
func ParseReport(b []byte) (*Report, error) {
	r := new(Report)
	if err := userfile.JSON(b, Schema, r); err != nil {
		return nil, err
	}
	return r, nil
}

// A Report is what suite.json holds: the table of a suite that was run, or a part of it.
type Report struct {
	Schema    string   `json:"schema"`
	Suite     Article  `json:"suite"`
	Scale     float64  `json:"scale"`             // of times and counts; 1: those of the article
	Drivers   []string `json:"drivers,omitempty"` // that were chosen; nil: the suite's
	Chosen    []string `json:"chosen,omitempty"`  // rows; nil: all
	Weir      string   `json:"weir"`
	StartedAt string   `json:"started_at"`
	Planned   int      `json:"planned"` // runs
	Rows      []Line   `json:"rows"`
}

// An Article is what a suite stems from.
type Article struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Source string   `json:"source"`
	Setup  string   `json:"setup,omitempty"`
	Notes  []string `json:"notes,omitempty"`

	Chances *Chances `json:"chances,omitempty"`
	Charts  []Chart  `json:"charts,omitempty"`
}

// A Line is one row against one system.
type Line struct {
	Row     string   `json:"row"`
	System  string   `json:"system"`
	Driver  string   `json:"driver"`
	Dir     string   `json:"dir,omitempty"`     // the run's result, below the folder of the suite; "": it gave none
	Verdict string   `json:"verdict,omitempty"` // "": the run gave no figures
	Why     string   `json:"why,omitempty"`     // what went wrong; "": nothing
	Host    string   `json:"host,omitempty"`
	Server  string   `json:"server,omitempty"` // as the running system says
	Differs []string `json:"differs"`          // from what the article did
	Figures []Figure `json:"figures"`

	// Processors is GOMAXPROCS of the run; 0: not known, as of an older weir.
	Processors int `json:"processors,omitempty"`
	// Over has the values of the keys that charts are drawn over.
	Over   map[string]string `json:"over,omitempty"`
	Curves []Drawing         `json:"curves,omitempty"` // absent where the row has none drawn
}

// A Figure is one of ours, with what the article printed beside it.
type Figure struct {
	Figure  string   `json:"figure"`
	Unit    string   `json:"unit,omitempty"` // ns, messages, per_s or ratio; "": the run has no such figure
	Value   float64  `json:"value"`
	AtLeast bool     `json:"at_least,omitempty"` // the true value is not below Value
	Lo      *float64 `json:"lo,omitempty"`       // the 95 % interval; nil where nothing bounds it
	Hi      *float64 `json:"hi,omitempty"`
	Why     string   `json:"why,omitempty"` // what is missing of the figure or of an end

	Published *Print `json:"published,omitempty"` // nil: the article gives none
}

// A Print is what the article has.
type Print struct {
	Value float64 `json:"value"` // in the unit of the figure beside it
	Text  string  `json:"text"`
	As    string  `json:"as,omitempty"`
}

// Begin returns the report of a suite that has run nothing yet.
func (s *Suite) Begin(c Choice, planned int) *Report {
	r := &Report{
		Schema: Schema, Scale: c.Scale, Drivers: c.Drivers, Chosen: c.Rows, Planned: planned, Rows: []Line{},
		Suite: Article{Name: s.Name, Title: s.Title, Source: s.Source, Setup: s.Setup, Notes: s.Notes, Charts: s.Charts},
	}
	if len(s.Chances.Percentiles) > 0 {
		r.Suite.Chances = &s.Chances
	}
	return r
}

// Done reports whether the run of a row against a system gave figures.
func (r *Report) Done(i *Item) bool {
	return slices.ContainsFunc(r.Rows, func(l Line) bool { return l.Verdict != "" && l.is(i) })
}

func (l *Line) is(i *Item) bool { return l.Row == i.Row.Name && l.System == i.System.Name }

// Add takes what a run came to; it replaces what an earlier attempt did.
func (r *Report) Add(i *Item, l Line) {
	if l.Verdict != "" {
		l.Over = over(r.Suite.Charts, i)
	}
	r.Rows = append(slices.DeleteFunc(r.Rows, func(l Line) bool { return l.is(i) }), l)
}

// Failed returns the line of an item that gave no figures.
func (i *Item) Failed(why string) Line {
	return Line{Row: i.Row.Name, System: i.System.Name, Driver: i.System.Driver, Why: why, Differs: []string{}, Figures: []Figure{}}
}

// Measured returns the line of an item with a result. around is the environment of the
// run; dir is the result's folder below that of the suite.
func (i *Item) Measured(res *result.Result, around *result.Environment, dir string, scale float64) Line {
	l := i.Failed("")
	l.Dir, l.Verdict = dir, string(res.Verdict.Status)
	l.Server = strings.TrimSpace(res.System.Server.Name + " " + res.System.Server.Version)
	if len(around.Hosts) > 0 {
		h := around.Hosts[0]
		l.Processors = h.GOMAXPROCS
		l.Host = strings.TrimSpace(fmt.Sprintf("%s, %s", h.CPUModel, quantity.Counted(h.Cores, "core", "cores")))
	}
	switch {
	case i.System.Was == "":
	case l.Server == "":
		l.Differs = append(l.Differs, "was "+i.System.Was)
	default:
		l.Differs = append(l.Differs, l.Server+", was "+i.System.Was)
	}
	if scale != 1 {
		l.Differs = append(l.Differs, "scaled by "+factor(scale))
	}
	for _, name := range i.Row.Figures {
		o, err := objective(name)
		if err != nil {
			continue // Parse refuses it
		}
		found := o.Judge(res)
		f := Figure{Figure: name, Unit: found.Unit, Value: found.Value, AtLeast: found.AtLeast, Lo: found.Lo, Hi: found.Hi, Why: found.Why}
		for _, p := range i.Row.Published {
			if p.System == i.System.Name && p.Figure == name {
				f.Published = p.print(scale)
			}
		}
		l.Figures = append(l.Figures, f)
	}
	l.Curves = i.Row.drawings(&res.Latency)
	return l
}

// print is the figure beside that of a run which is shortened by scale.
func (p *Published) print(scale float64) *Print {
	if !p.Scales || scale == 1 {
		return &Print{Value: p.Value, Text: p.Text, As: p.As}
	}
	as := p.Text + " at full length"
	if p.As != "" {
		as += "; " + p.As
	}
	return &Print{Value: p.Value * scale, Text: shown("ns", p.Value*scale), As: as}
}

func factor(scale float64) string { return strconv.FormatFloat(scale, 'g', -1, 64) }

// Page lays the report out: what the article did and where ours differs, and the table.
func (r *Report) Page() *layout.Page {
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
	known := 0 // on how many processors the first run was that says so
	processors := slices.ContainsFunc(r.Rows, func(l Line) bool {
		known = cmp.Or(known, l.Processors)
		return l.Processors != 0 && l.Processors != known
	})
	var missing []string
	for i := 0; i < len(r.Rows); {
		n := i + 1
		for n < len(r.Rows) && r.Rows[n].Row == r.Rows[i].Row {
			n++
		}
		row(p, r.Rows[i:n], processors)
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

// scaled says of runs that were shortened that they are not the article's.
func (r *Report) scaled(p *layout.Page) {
	if r.Scale != 1 {
		p.Labelled("scaled", layout.Bad.Of("times and counts are "+factor(r.Scale)+" of the article's: these are not the article's runs"))
	}
}

// notRun says how many runs are missing, where some are.
func (r *Report) notRun(p *layout.Page) {
	if n := r.Planned - len(r.Rows); n > 0 {
		p.Labelled("not run", layout.Doubtful.Of(fmt.Sprintf("%d of %d", n, r.Planned)))
	}
}

// heading is the title of the page, with the scale in it.
func (r *Report) heading() string {
	if r.Scale == 1 {
		return "suite " + r.Suite.Name
	}
	return "suite " + r.Suite.Name + ", scaled by " + factor(r.Scale)
}

// hosts are what the runs were on, each once.
func (r *Report) hosts() []string {
	var all []string
	for _, l := range r.Rows {
		if l.Host != "" && !slices.Contains(all, l.Host) {
			all = append(all, l.Host)
		}
	}
	return all
}

// row puts what the systems came to in one row of the suite on the page: a table, and
// below it what differs from the article; with processors on how many of them too.
func row(p *layout.Page, all []Line, processors bool) {
	p.Gap()
	p.Chapter(all[0].Row)
	p.Gap()
	t := layout.Listing("system", "figure", "ours", "95 %", "article", "verdict")
	t.Columns[2].Kind, t.Columns[3].Kind, t.Columns[4].Kind, t.Columns[5].Kind = layout.Number, layout.Number, layout.Prose, layout.Word
	var notes []string // each once, in the order of the systems
	of := map[string][]string{}
	for _, l := range all {
		lines(t, &l)
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

// lines adds what a run came to: a row of the table for each figure.
func lines(t *layout.Table, l *Line) {
	if l.Verdict == "" {
		t.Row(l.System, "", "", "", "", "none")
		return
	}
	for i, f := range l.Figures {
		cells := []string{"", f.Figure, f.Shown(), f.interval(), "", ""}
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

// Shown is the figure for people; "not known" where the run does not have it.
func (f *Figure) Shown() string {
	if f.Unit == "" {
		return "not known"
	}
	return f.value().Text(func(v float64) string { return shown(f.Unit, v) })
}

func (f *Figure) value() result.Value { return result.Bound(f.Value, f.AtLeast) }

// interval is that of a figure that is an estimate.
func (f *Figure) interval() string {
	end := func(v *float64) string {
		if v == nil {
			return ""
		}
		return shown(f.Unit, *v)
	}
	switch {
	case f.Unit == "" || f.Lo == nil && f.Hi == nil || f.Lo != nil && f.Hi != nil && *f.Lo == *f.Hi:
		return ""
	}
	return end(f.Lo) + ".." + end(f.Hi)
}

func shown(unit string, v float64) string {
	switch unit {
	case "ns":
		return quantity.Time(int64(v))
	case "per_s":
		return quantity.Rate(v)
	case "ratio":
		return strconv.FormatFloat(v*100, 'g', 4, 64) + " %"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
