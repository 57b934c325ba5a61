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

// A Suite is the experiments of one article. Nothing changes it once it is read.
type Suite struct {
	Name    string
	Title   string
	Source  string   // where the article is to be found
	Setup   string   // what the article ran on
	Notes   []string // on the method
	Chances Chances  // the zero value: none
	Charts  []Chart  // of figures over what rows differ in
	Systems []System
	Rows    []Row
	Text    []byte // the file

	file string // its name, for messages
	run  *tree.Node
}

// A System is one that the article measured, or one that stands in for it.
type System struct {
	Name   string // unique in the suite
	Driver string
	Was    string // what the article ran, "Redis 2.8.4"; "" where it does not say

	at  tree.Position
	run *tree.Node
}

// A Row is one experiment, which is run against each system.
type Row struct {
	Name      string
	About     string
	Systems   []string // the names of those that it is for; nil: all
	Figures   []string // of ours that stand in the table, as objectives name them
	Published []Published
	Curves    []Curve // that are drawn over each other

	at  tree.Position
	run *tree.Node
}

// Chances ask how likely a page of several requests meets a percentile.
type Chances struct {
	Percentiles []float64 `json:"percentiles"`
	Requests    int       `json:"requests"` // of the largest page
}

// A Curve is a distribution that a row has drawn, percentile by percentile.
type Curve struct {
	Of string // one of distributions
	As string // what it is in words
}

// A Published figure is one that the article printed.
type Published struct {
	System string  // the name of the system
	Figure string  // the figure of ours that stands beside it
	Text   string  // as the article has it, "1.2 ms"
	Value  float64 // the same in the figure's unit: ns, messages, messages a second, or a part of 1
	As     string  // what the article calls it, where that differs from Figure
	Scales bool    // it is a time of the run: a shortened run has that much less of it
}

// Names returns those of the suites that weir has, sorted.
func Names() []string {
	files, err := builtin.ReadDir("suites")
	if err != nil {
		return nil // there is no such folder
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Named returns the suite that weir has under a name. The error lists the names.
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

// Open reads the suite of that name, or from the file at path where the name is that of a YAML
// file.
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

// Bounds of a suite.
const (
	mostSystems = 40
	mostRows    = 200
	mostFigures = 12
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$`)

// Parse reads a suite. The error is scenario.Faults, with every fault of the file that
// needs no driver to be seen; Plan finds the others.
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

// check looks for names that are given twice, or that nothing has.
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

// systems are the names.
func (s *Suite) systems() []string {
	var names []string
	for _, x := range s.Systems {
		names = append(names, x.Name)
	}
	return names
}

// A reader reads the parts of a suite and collects what is wrong.
type reader struct{ faults tree.Faults }

func (r *reader) fault(at tree.Position, path, format string, args ...any) {
	r.faults.Add(at, path, format, args...)
}

// keys refuses keys that n, a mapping, may not have.
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

// text reads a text of n.
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

// texts reads a list of texts.
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

// name reads the name of a suite, a system or a row, which becomes part of a folder's.
func (r *reader) name(n *tree.Node, path string) string {
	const allowed = "at most 50 letters, digits, - _ . and a letter or digit first"
	name := r.text(n, path, "name", true)
	if name != "" && !nameForm.MatchString(name) {
		r.fault(n.Field("name").At, tree.Join(path, "name"), "%q is not a name (%s)", name, allowed)
	}
	return name
}

// list reads a list of at least one.
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

// ours are the keys of a scenario that a suite sets itself.
var ours = [...]string{"weir", "name", "scenarios", "matrix", "repeat", "slo", "fleet"}

// run reads the keys of a scenario; where there are none, an empty mapping.
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

// system reads one of the systems.
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

// row reads one of the rows.
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

// published reads a figure of the article.
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

// objective returns one about a figure, with a limit that no run comes near.
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

// Flow is what a system has that others have not, in one line of YAML.
func (x *System) Flow() string { return x.run.Flow() }

// Flow is what a row has of its own, in one line of YAML.
func (row *Row) Flow() string { return row.run.Flow() }

// Sends returns how many bytes of messages a run of a row sends, without its warm-up; 0
// where the row does not fix it.
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
