package suite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/userfile"
)

//go:embed suites/*.yaml
var builtin embed.FS

// A Suite is the experiments of one article. It is immutable once parsed.
type Suite struct {
	Name    string
	Title   string
	Source  string   // where to find the article
	Setup   string   // the article's test environment
	Notes   []string // on the method
	Chances Chances  // zero: none
	Charts  []Chart  // of figures over what distinguishes rows
	Systems []System
	Rows    []Row
	Text    []byte // the file

	file string // its name, for errors
	run  *tree.Node
}

// A System is a system that the article measured, or a substitute for it.
type System struct {
	Name   string // unique in the suite
	Driver string
	Was    string // what the article used, "Redis 2.8.4"; "" if not stated

	at  tree.Position
	run *tree.Node
}

// A Row is one experiment, run against each system.
type Row struct {
	Name      string
	About     string
	Systems   []string // names of the systems it applies to; nil: all
	Figures   []string // our figures in the table, in the syntax of objectives
	Published []Published
	Curves    []Curve // drawn in one chart

	at  tree.Position
	run *tree.Node
}

// Chances ask how likely a page of several requests meets a percentile.
type Chances struct {
	Percentiles []float64 `json:"percentiles"`
	Requests    int       `json:"requests"` // of the largest page
}

// A Curve is a distribution to draw, percentile by percentile.
type Curve struct {
	Of string // one of distributions
	As string // its description
}

// A Published is a figure that the article printed.
type Published struct {
	System string  // the name of the system
	Figure string  // our corresponding figure
	Text   string  // as printed, "1.2 ms"
	Value  float64 // in the figure's unit: ns, messages, messages a second, or a fraction
	As     string  // the article's name for it, if different from Figure
	Scales bool    // a time of the run, which shrinks with the scale
}

// Names returns the names of the built-in suites, sorted.
func Names() []string {
	files, err := builtin.ReadDir("suites")
	if err != nil {
		return nil // no such folder
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Named returns a built-in suite. The error lists the names.
func Named(name string) (*Suite, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("unknown suite %q (%s, or the path of a file that ends in .yaml)", name, strings.Join(Names(), ", "))
	}
	b, err := builtin.ReadFile(path.Join("suites", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the suite %s: %w", name, err)
	}
	return Parse(name+".yaml", b)
}

// Open returns the built-in suite of that name, or parses the file at path if name is a YAML file's.
func Open(name, path string) (*Suite, error) {
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".yaml" && ext != ".yml" {
		return Named(name)
	}
	b, err := userfile.Read(path, scenario.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such file (%s, or the path of a file)", name, strings.Join(Names(), ", "))
	case err != nil:
		return nil, fmt.Errorf("reading the suite: %w", err)
	}
	return Parse(name, b)
}

// Limits of a suite.
const (
	mostSystems = 40
	mostRows    = 200
	mostFigures = 12
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$`)

// Parse parses a suite. The error is scenario.Faults, with every fault that is visible without the drivers;
// Plan finds the others.
func Parse(file string, text []byte) (*Suite, error) {
	root, faults := tree.Parse(file, text)
	for i := range faults {
		faults[i].Message = strings.NewReplacer("a scenario begins with weir: 1", "a suite begins with weir-suite: 1", "a scenario", "a suite").Replace(faults[i].Message)
	}
	if root == nil {
		return nil, faults.Done()
	}
	r := &reader{faults: faults}
	s := &Suite{Text: text, file: file}
	r.keys(root, "", "weir-suite", "name", "title", "source", "setup", "notes", "chances", "charts", "run", "systems", "rows")
	if v := root.Field("weir-suite"); v == nil || !v.Is("1") {
		r.fault(root.At, "weir-suite", "is missing, or not 1 (1, the version of the format)")
	}
	s.Name = r.name(root, "")
	s.Title, s.Source, s.Setup = r.text(root, "", "title", true), r.text(root, "", "source", true), r.text(root, "", "setup", false)
	s.Notes = r.texts(root, "", "notes")
	s.Chances = r.chances(root)
	s.Charts = r.charts(root)
	s.run = r.run(root, "")
	for i, n := range r.list(root, "systems", mostSystems) {
		s.Systems = append(s.Systems, r.system(n, fmt.Sprintf("systems[%d]", i)))
	}
	for i, n := range r.list(root, "rows", mostRows) {
		s.Rows = append(s.Rows, r.row(n, fmt.Sprintf("rows[%d]", i)))
	}
	s.check(r)
	if err := r.faults.Done(); err != nil {
		return nil, err
	}
	return s, nil
}

// check looks for duplicate and unknown names.
func (s *Suite) check(r *reader) {
	seen := map[string]bool{}
	for i, x := range s.Systems {
		if seen[x.Name] {
			r.fault(x.at, fmt.Sprintf("systems[%d].name", i), "%q is given twice (once)", x.Name)
		}
		seen[x.Name] = true
	}
	s.checkCharts(r)
	rows := map[string]bool{}
	for i, row := range s.Rows {
		at := fmt.Sprintf("rows[%d]", i)
		if rows[row.Name] {
			r.fault(row.at, at+".name", "%q is given twice (once)", row.Name)
		}
		rows[row.Name] = true
		for _, name := range row.Systems {
			if !seen[name] {
				r.fault(row.at, at+".systems", "%q is not a system of the suite (%s)", name, strings.Join(s.systems(), ", "))
			}
		}
		for _, p := range row.Published {
			if !seen[p.System] {
				r.fault(row.at, at+".published", "%q is not a system of the suite (%s)", p.System, strings.Join(s.systems(), ", "))
			}
			if !slices.Contains(row.Figures, p.Figure) {
				r.fault(row.at, at+".published", "%s is not one of the row's figures (%s)", p.Figure, strings.Join(row.Figures, ", "))
			}
		}
	}
}

// systems returns the names of the systems.
func (s *Suite) systems() []string {
	var names []string
	for _, x := range s.Systems {
		names = append(names, x.Name)
	}
	return names
}

// A reader parses the parts of a suite and collects errors.
type reader struct{ faults tree.Faults }

func (r *reader) fault(at tree.Position, path, format string, args ...any) {
	r.faults.Add(at, path, format, args...)
}

// keys refuses unknown keys of the mapping n.
func (r *reader) keys(n *tree.Node, path string, allowed ...string) bool {
	if n.Shape != tree.Mapping {
		r.fault(n.At, path, "is %s (a mapping of %s)", n.Shape, strings.Join(allowed, ", "))
		return false
	}
	for _, f := range n.Fields {
		if !slices.Contains(allowed, f.Key) {
			r.fault(f.At, tree.Join(path, f.Key), "unknown key (%s)", strings.Join(allowed, ", "))
		}
	}
	return true
}

// text parses a text of n.
func (r *reader) text(n *tree.Node, path, key string, needed bool) string {
	v := n.Field(key)
	switch {
	case v == nil && needed:
		r.fault(n.At, tree.Join(path, key), "is missing (a text)")
	case v == nil:
	case v.Shape != tree.Text || strings.TrimSpace(v.Text) == "":
		r.fault(v.At, tree.Join(path, key), "is %s (a text)", v.Shape)
	default:
		return strings.Join(strings.Fields(v.Text), " ")
	}
	return ""
}

// texts parses a list of texts.
func (r *reader) texts(n *tree.Node, path, key string) []string {
	v := n.Field(key)
	if v == nil {
		return nil
	}
	if v.Shape != tree.List {
		r.fault(v.At, tree.Join(path, key), "is %s (a list of texts)", v.Shape)
		return nil
	}
	var all []string
	for _, i := range v.Items {
		if i.Shape != tree.Text {
			r.fault(i.At, tree.Join(path, key), "is %s (a text)", i.Shape)
			continue
		}
		all = append(all, strings.Join(strings.Fields(i.Text), " "))
	}
	return all
}

// name parses the name of a suite, a system or a row, which becomes part of a folder's.
func (r *reader) name(n *tree.Node, path string) string {
	const allowed = "at most 50 letters, digits, - _ . and a letter or digit first"
	name := r.text(n, path, "name", true)
	if name != "" && !nameForm.MatchString(name) {
		r.fault(n.Field("name").At, tree.Join(path, "name"), "%q is not a name (%s)", name, allowed)
	}
	return name
}

// list parses a non-empty list.
func (r *reader) list(n *tree.Node, key string, most int) []*tree.Node {
	v := n.Field(key)
	switch {
	case v == nil:
		r.fault(n.At, key, "is missing (a list)")
	case v.Shape != tree.List || len(v.Items) == 0 || len(v.Items) > most:
		r.fault(v.At, key, "does not fit (a list of 1 to %d)", most)
	default:
		return v.Items
	}
	return nil
}

// ours are the scenario keys that a suite sets itself.
var ours = [...]string{"weir", "name", "scenarios", "matrix", "repeat", "slo", "fleet"}

// run parses the keys of a scenario; an empty mapping if there are none.
func (r *reader) run(n *tree.Node, path string) *tree.Node {
	v := n.Field("run")
	if v == nil {
		return &tree.Node{Shape: tree.Mapping, At: n.At}
	}
	path = tree.Join(path, "run")
	if v.Shape != tree.Mapping {
		r.fault(v.At, path, "is %s (a mapping of keys of a scenario)", v.Shape)
		return &tree.Node{Shape: tree.Mapping, At: n.At}
	}
	for _, f := range v.Fields {
		if slices.Contains(ours[:], f.Key) {
			r.fault(f.At, tree.Join(path, f.Key), "does not belong into a suite (leave it out)")
		}
	}
	return v
}

// system parses one system.
func (r *reader) system(n *tree.Node, path string) System {
	x := System{at: n.At, run: &tree.Node{Shape: tree.Mapping, At: n.At}}
	if !r.keys(n, path, "name", "driver", "was", "run") {
		return x
	}
	x.Driver, x.Was, x.run = r.text(n, path, "driver", true), r.text(n, path, "was", false), r.run(n, path)
	if x.Name = x.Driver; n.Field("name") != nil {
		x.Name = r.name(n, path)
	}
	return x
}

// row parses one row.
func (r *reader) row(n *tree.Node, path string) Row {
	x := Row{at: n.At, run: &tree.Node{Shape: tree.Mapping, At: n.At}}
	if !r.keys(n, path, "name", "about", "systems", "run", "figures", "published", "curves") {
		return x
	}
	x.Name, x.About, x.Systems, x.run = r.name(n, path), r.text(n, path, "about", false), r.texts(n, path, "systems"), r.run(n, path)
	x.Figures = r.texts(n, path, "figures")
	if len(x.Figures) == 0 || len(x.Figures) > mostFigures {
		r.fault(n.At, tree.Join(path, "figures"), "does not fit (a list of 1 to %d figures, such as e2e.p99)", mostFigures)
	}
	for _, f := range x.Figures {
		if _, err := objective(f); err != nil {
			r.fault(n.Field("figures").At, tree.Join(path, "figures"), "%v", err)
		}
	}
	v := n.Field("published")
	if v != nil && v.Shape != tree.List {
		r.fault(v.At, tree.Join(path, "published"), "is %s (a list)", v.Shape)
	} else if v != nil {
		for i, item := range v.Items {
			x.Published = append(x.Published, r.published(item, fmt.Sprintf("%s.published[%d]", path, i)))
		}
	}
	x.Curves = r.curves(n, path)
	return x
}

// published parses a figure of the article.
func (r *reader) published(n *tree.Node, path string) Published {
	var p Published
	if !r.keys(n, path, "system", "figure", "value", "as", "scales") {
		return p
	}
	p = Published{System: r.text(n, path, "system", true), Figure: r.text(n, path, "figure", true), Text: r.text(n, path, "value", true), As: r.text(n, path, "as", false)}
	if p.Figure == "" || p.Text == "" {
		return p
	}
	o, err := judge.ParseObjective(p.Figure + " <= " + p.Text)
	if err != nil {
		r.fault(n.At, path, "%v", err)
		return p
	}
	p.Value = o.Limit()
	if v := n.Field("scales"); v != nil && !v.Is("yes") && !v.Is("no") {
		r.fault(v.At, tree.Join(path, "scales"), "does not fit (yes or no)")
	} else if p.Scales = v != nil && v.Is("yes"); p.Scales && !isTime(o) {
		r.fault(v.At, tree.Join(path, "scales"), "%s is not a time (leave it out)", p.Figure)
	}
	return p
}

// isTime reports whether an objective is about a time.
func isTime(o judge.Objective) bool {
	name, _ := o.Latency()
	return name != ""
}

// objective returns an objective about a figure, with a limit that no run reaches.
func objective(figure string) (judge.Objective, error) {
	o, first := judge.ParseObjective(figure + " <= 1h")
	if first == nil {
		return o, nil
	}
	for _, limit := range []string{"1000000000/s", "1000000000000", "100%"} {
		if o, err := judge.ParseObjective(figure + " <= " + limit); err == nil {
			return o, nil
		}
	}
	return o, first
}

// Flow is what all rows have in common, in one line of YAML.
func (s *Suite) Flow() string { return s.run.Flow() }

// Flow is what is specific to a system, in one line of YAML.
func (x *System) Flow() string { return x.run.Flow() }

// Flow is what is specific to a row, in one line of YAML.
func (row *Row) Flow() string { return row.run.Flow() }

// Sends returns the bytes of messages that a run of a row sends, without its warm-up; 0 if the row does not
// fix it.
func (s *Suite) Sends(row *Row) float64 {
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
