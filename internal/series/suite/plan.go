package suite

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// An Item is one row against one system: a run.
type Item struct {
	Row      *Row
	System   *System
	Scenario *scenario.Scenario
}

// Name is the name of its run and of its folder, unique in the suite.
func (i *Item) Name() string { return i.Scenario.Name }

// Percentiles returns the percentiles that a result needs for the row's figures, besides the usual ones;
// nil if the usual ones suffice.
func (i *Item) Percentiles() []float64 {
	usual := judge.Percentiles()
	all := slices.DeleteFunc(slices.Clone(usual), func(p float64) bool { return p >= 100 })
	for _, f := range i.Row.Figures {
		if o, err := objective(f); err == nil {
			if p, ok := o.Percentile(); ok && !slices.Contains(usual, p) {
				all = append(all, p)
			}
		}
	}
	if len(i.Row.Curves) > 0 {
		all = append(all, drawnAt()...)
	}
	if len(all) < len(usual) {
		return nil
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A Choice selects the part of a suite to run, and its duration.
type Choice struct {
	Drivers []string // systems of the suite, or drivers; nil: all systems of the suite
	Rows    []string // names of rows; nil: all
	Scale   float64  // factor on times and message counts, above 0; 1: as in the article
}

// A ChoiceError is an error in a choice: drivers, rows or scale.
type ChoiceError struct {
	Of  string
	Err error
}

// Error returns the error, after the name of its subject.
func (e *ChoiceError) Error() string { return e.Of + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ChoiceError) Unwrap() error { return e.Err }

// ParseScale parses a Choice's Scale.
func ParseScale(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(v >= 0.0001 && v <= 1) {
		return 0, fmt.Errorf("%q does not fit (0.0001 to 1, such as 0.1)", text)
	}
	return v, nil
}

// Plan creates the runs of a suite, row by row. in says how to resolve scenarios; its file and text are not
// used. The error is scenario.Faults if it is about the file, and a ChoiceError if it is about the choice.
// Plan starts nothing.
func (s *Suite) Plan(in scenario.Inputs, c Choice) ([]Item, error) {
	systems, err := s.chosen(in.Drivers, c.Drivers)
	if err != nil {
		return nil, err
	}
	var rows []string
	for _, r := range s.Rows {
		rows = append(rows, r.Name)
	}
	for i, name := range c.Rows {
		if !slices.Contains(rows, name) {
			return nil, &ChoiceError{"rows", fmt.Errorf("%s has no row %q (%s)", s.Name, name, strings.Join(rows, ", "))}
		}
		if slices.Contains(c.Rows[:i], name) {
			return nil, &ChoiceError{"rows", fmt.Errorf("%s is given twice (once)", name)}
		}
	}
	var items []Item
	for r := range s.Rows {
		for x := range systems {
			row := &s.Rows[r]
			if (c.Rows == nil || slices.Contains(c.Rows, row.Name)) && (len(row.Systems) == 0 || slices.Contains(row.Systems, systems[x].Name)) {
				items = append(items, Item{Row: row, System: &systems[x]})
			}
		}
	}
	if len(items) == 0 {
		return nil, &ChoiceError{"drivers", fmt.Errorf("no row of %s is for %s (%s)", s.Name, strings.Join(c.Drivers, ", "), strings.Join(s.systems(), ", "))}
	}
	if err := s.resolve(in, items, 1); err != nil || c.Scale == 1 {
		return items, err
	}
	return items, s.resolve(in, items, c.Scale)
}

// chosen returns the named systems, in that order.
func (s *Suite) chosen(registry *driver.Registry, names []string) ([]System, error) {
	if names == nil {
		return s.Systems, nil
	}
	var all []System
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, &ChoiceError{"drivers", fmt.Errorf("%s is given twice (once)", name)}
		}
		had := len(all)
		for _, x := range s.Systems {
			if (x.Name == name || x.Driver == name) && !slices.ContainsFunc(all, func(y System) bool { return y.Name == x.Name }) {
				all = append(all, x)
			}
		}
		if len(all) > had {
			continue
		}
		def, err := registry.Lookup(name)
		if err != nil {
			return nil, &ChoiceError{"drivers", err}
		}
		all = append(all, strange(def))
	}
	if len(all) == 0 {
		return nil, &ChoiceError{"drivers", errors.New("is empty (names of drivers, separated by commas)")}
	}
	return all, nil
}

// strange returns a system that is not in the suite. Its servers are started if there is a recipe, as with
// --start process.
func strange(def driver.Definition) System {
	x := System{Name: def.Name, Driver: def.Name, run: &tree.Node{Shape: tree.Mapping}}
	r, err := broker.RecipeOf(def, "")
	if err == nil && r.Install != nil && def.Serve == nil {
		x.run = x.run.With([]string{"system", "start"}, said(scenario.StartProcess.String(), x.at))
	}
	return x
}

// said is a text node that weir inserts at a position of the file.
func said(text string, at tree.Position) *tree.Node {
	return &tree.Node{Shape: tree.Text, Text: text, At: at}
}

// copied is a deep copy of n.
func copied(n *tree.Node) *tree.Node {
	c := *n
	c.Items, c.Fields = slices.Clone(n.Items), slices.Clone(n.Fields)
	for i := range c.Items {
		c.Items[i] = copied(c.Items[i])
	}
	for i := range c.Fields {
		c.Fields[i].Value = copied(c.Fields[i].Value)
	}
	return &c
}

// resolve resolves the scenarios of all items. With a scale other than 1 they have been resolved before,
// and their lengths are known.
func (s *Suite) resolve(in scenario.Inputs, items []Item, scale float64) error {
	root := copied(s.run).With([]string{"weir"}, said("1", s.run.At))
	list := &tree.Node{Shape: tree.List, At: s.run.At}
	for _, i := range items {
		one := copied(tree.Overlay(i.Row.run, i.System.run))
		name := i.Row.Name + "-" + i.System.Name
		one = one.With([]string{"name"}, said(name, i.Row.at)).With([]string{"system", "driver"}, said(i.System.Driver, cmp.Or(i.System.at, i.Row.at)))
		if scale != 1 {
			var err error
			if one, err = shortened(one, i.Scenario, scale); err != nil {
				return &ChoiceError{"scale", fmt.Errorf("%s: %w", name, err)}
			}
		}
		list.Items = append(list.Items, one)
	}
	in.File, in.Text, in.Tree = s.file, nil, root.With([]string{"scenarios"}, list)
	all, err := scenario.Resolve(in)
	if err != nil {
		return err
	}
	if len(all) != len(items) {
		return fmt.Errorf("%s: makes %d runs of %d rows (a row makes one)", s.file, len(all), len(items))
	}
	for i := range items {
		items[i].Scenario = all[i]
	}
	return nil
}

// place is where a scenario has an option: under a name with dots, or in a mapping.
func place(n *tree.Node, option string) []string {
	at := []string{"system", "options"}
	if sys := n.Field("system"); sys != nil && sys.Field("options") != nil && sys.Field("options").Field(option) != nil {
		return append(at, option)
	}
	return append(at, strings.Split(option, ".")...)
}

// shortest is the minimum length of a shortened window.
const shortest = 10 * time.Millisecond

// shortened is the tree of a scenario with scaled times and message counts.
func shortened(n *tree.Node, s *scenario.Scenario, scale float64) (*tree.Node, error) {
	part := func(d time.Duration) *tree.Node {
		return said(max(shortest, time.Duration(float64(d)*scale).Round(time.Millisecond)).String(), n.At)
	}
	if s.WarmUp > 0 {
		n = n.With([]string{"warmup"}, part(s.WarmUp))
	}
	switch {
	case s.Messages > 0:
		n = n.With([]string{"messages"}, said(strconv.FormatFloat(max(1, math.Round(float64(s.Messages)*scale)), 'f', 0, 64), n.At))
	case s.Measure > 0:
		n = n.With([]string{"measure"}, part(s.Measure))
	default:
		return nil, errors.New("a profile or a trace is not scaled (leave it out)")
	}
	for _, o := range driver.Options(s.System.Config) {
		if d, err := time.ParseDuration(o.Default); err == nil && d > 0 && slices.Contains(driver.TimedOptions(s.System.Config), o.Name) {
			n = n.With(place(n, o.Name), part(d))
		}
	}
	if s.Consume.Churn > 0 {
		n = n.With([]string{"consume", "churn"}, said(max(100*time.Millisecond, time.Duration(float64(s.Consume.Churn)*scale)).String(), n.At))
	}
	if p := s.Consume.Pause; p.Wanted() {
		short := &tree.Node{Shape: tree.Mapping, At: n.At}
		short = short.With([]string{"at"}, part(p.At))
		if p.For > 0 {
			short = short.With([]string{"for"}, part(p.For))
		} else { // as many as arrive in a shorter time
			short = short.With([]string{"until"}, said(strconv.FormatFloat(max(1, math.Round(float64(p.Waiting)*scale)), 'f', 0, 64), n.At))
		}
		n = n.With([]string{"consume", "pause"}, short)
	}
	if len(s.Faults) > 0 { // what is counted in messages ends sooner, too
		list := &tree.Node{Shape: tree.List, At: n.At}
		for _, f := range s.Faults {
			list.Items = append(list.Items, said(f.Scaled(scale).Text(), n.At))
		}
		n = n.With([]string{"faults"}, list)
	}
	return n, nil
}
