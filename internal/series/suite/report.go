package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// Schema names the format of a Report. File and FileReport are the files of a suite's folder, and MostBytes
// limits the report.
const (
	Schema     = "weir.suite/v1"
	File       = "suite.yaml"
	FileReport = "suite.json"
	MostBytes  = 16 << 20
)

// ParseReport parses the content of a report's file.
func ParseReport(b []byte) (*Report, error) {
	r := new(Report)
	if err := userfile.JSON(b, Schema, r); err != nil {
		return nil, err
	}
	return r, nil
}

// A Report is the content of suite.json: the table of a suite, or of a part of it.
type Report struct {
	Schema    string   `json:"schema"`
	Suite     Article  `json:"suite"`
	Scale     float64  `json:"scale"`             // on times and counts; 1: as in the article
	Drivers   []string `json:"drivers,omitempty"` // chosen ones; nil: the suite's
	Chosen    []string `json:"chosen,omitempty"`  // rows; nil: all
	Weir      string   `json:"weir"`
	StartedAt string   `json:"started_at"`
	Planned   int      `json:"planned"` // runs
	Rows      []Line   `json:"rows"`
}

// An Article is the source of a suite.
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
	Dir     string   `json:"dir,omitempty"`     // the run's folder within the suite's; "": no result
	Verdict string   `json:"verdict,omitempty"` // "": no figures
	Why     string   `json:"why,omitempty"`     // error of the run; "": none
	Host    string   `json:"host,omitempty"`
	Server  string   `json:"server,omitempty"` // reported by the running system
	Differs []string `json:"differs"`          // from the article
	Figures []Figure `json:"figures"`

	// Processors is the run's GOMAXPROCS; 0: unknown, as in older versions.
	Processors int `json:"processors,omitempty"`
	// Over has the values of the charts' keys.
	Over   map[string]string `json:"over,omitempty"`
	Curves []Drawing         `json:"curves,omitempty"` // absent if the row draws none
}

// A Figure is one of our figures, with the article's.
type Figure struct {
	Figure  string   `json:"figure"`
	Unit    string   `json:"unit,omitempty"` // ns, messages, per_s or ratio; "": the run lacks the figure
	Value   float64  `json:"value"`
	AtLeast bool     `json:"at_least,omitempty"` // Value is a lower bound
	Lo      *float64 `json:"lo,omitempty"`       // 95 % interval; nil if unbounded
	Hi      *float64 `json:"hi,omitempty"`
	Why     string   `json:"why,omitempty"` // why the figure or an end is missing

	Published *Print `json:"published,omitempty"` // nil: not in the article
}

// A Print is the article's figure.
type Print struct {
	Value float64 `json:"value"` // in the unit of our figure
	Text  string  `json:"text"`
	As    string  `json:"as,omitempty"`
}

// Begin returns the report of a suite without any runs yet.
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

// Add adds a run's line, in place of an earlier attempt's.
func (r *Report) Add(i *Item, l Line) {
	if l.Verdict != "" {
		l.Over = over(r.Suite.Charts, i)
	}
	r.Rows = append(slices.DeleteFunc(r.Rows, func(l Line) bool { return l.is(i) }), l)
}

// Failed returns the line of an item without figures.
func (i *Item) Failed(why string) Line {
	return Line{Row: i.Row.Name, System: i.System.Name, Driver: i.System.Driver, Why: why, Differs: []string{}, Figures: []Figure{}}
}

// Measured returns the line of an item with a result. around is the run's environment; dir is the result's
// folder within the suite's.
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
		l.Differs = append(l.Differs, "scaled by "+Factor(scale))
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

// print is the published figure for a run shortened by scale.
func (p *Published) print(scale float64) *Print {
	if !p.Scales || scale == 1 {
		return &Print{Value: p.Value, Text: p.Text, As: p.As}
	}
	as := p.Text + " at full length"
	if p.As != "" {
		as += "; " + p.As
	}
	return &Print{Value: p.Value * scale, Text: Shown("ns", p.Value*scale), As: as}
}

// Factor formats a scale.
func Factor(scale float64) string { return strconv.FormatFloat(scale, 'g', -1, 64) }

// Shown formats the figure for people; "not known" if the run lacks it.
func (f *Figure) Shown() string {
	if f.Unit == "" {
		return "not known"
	}
	return f.Bound().Text(func(v float64) string { return Shown(f.Unit, v) })
}

// Bound is the value, possibly a lower bound.
func (f *Figure) Bound() result.Value { return result.Bound(f.Value, f.AtLeast) }

// Shown formats a value in its unit.
func Shown(unit string, v float64) string {
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
