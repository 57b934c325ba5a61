package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
)

// maxRuns is the largest number of runs in a file, without repeats. It is far more than anybody would
// wait for, and low enough to reject a typo in a matrix.
const maxRuns = 1000

// A variant is one scenario of a file before its matrix is expanded: the file itself, or one of
// `scenarios:` merged over the rest of the file.
type variant struct {
	d     *decoder   // its tree, with environment and flags applied
	index int        // index in `scenarios:`, -1 if the file has no such list
	name  *tree.Node // its own name, or nil
	dims  []dimension
}

// label names the file's scenario; "" if there is only one.
func (v *variant) label() string {
	if v.index < 0 {
		return ""
	}
	return fmt.Sprintf("scenarios[%d]", v.index)
}

// Resolve reads the file and the overrides, fills in every default, and checks that the values are
// compatible and supported by the driver. It reads only the files that the scenario names. It returns
// the file's runs in order, at least one: for each of `scenarios:` the members of its matrix. The
// error is Faults, with every fault.
func Resolve(in Inputs) ([]*Scenario, error) {
	root := &tree.Node{Shape: tree.Mapping}
	var whole Faults // of the whole file
	switch {
	case in.Tree != nil:
		root = in.Tree
	case in.File != "":
		if root, whole = tree.Parse(in.File, in.Text); root == nil {
			return nil, whole.Done()
		}
	}
	s := &suite{in: in.remembering(), faults: whole}
	s.split(root)
	s.bound()
	return s.resolve()
}

// A suite is a file being expanded into runs.
type suite struct {
	in       Inputs
	faults   Faults
	at       Position // of `scenarios:`
	variants []*variant
}

func (s *suite) fault(at Position, path, format string, args ...any) {
	s.faults.Add(at, path, format, args...)
}

// split creates the variants.
func (s *suite) split(root *tree.Node) {
	const allowed = "a list of scenarios, each overriding the rest of the file"
	several := root.Field("scenarios")
	rest := root.Without("scenarios")
	if several == nil {
		s.variant(rest, -1, rest.Field("name"))
		return
	}
	s.at = several.At
	n := len(several.Items)
	switch {
	case several.Shape != tree.List:
		s.fault(s.at, "scenarios", "is %s (%s)", several.Shape, allowed)
	case n == 0:
		s.fault(s.at, "scenarios", "holds none (%s)", allowed)
	case n > maxRuns:
		s.fault(s.at, "scenarios", "holds %d (at most %d)", n, maxRuns)
	}
	if several.Shape != tree.List || n == 0 || n > maxRuns {
		s.variant(rest, -1, rest.Field("name")) // to report the faults of the rest
		return
	}
	for i, item := range several.Items {
		path := fmt.Sprintf("scenarios[%d]", i)
		if item.Shape != tree.Mapping {
			s.fault(item.At, path, "is %s (a mapping of the keys that differ from the rest of the file)", item.Shape)
			continue
		}
		item.Mark(path)
		for _, f := range item.Fields {
			if f.Key == "weir" || f.Key == "scenarios" {
				s.fault(f.At, tree.Join(path, f.Key), "stands at the top of the file only (leave it out)")
				item = item.Without(f.Key)
			}
		}
		s.variant(lay(rest, item), i, item.Field("name"))
	}
}

// variant applies environment and flags to one tree.
func (s *suite) variant(root *tree.Node, index int, name *tree.Node) {
	v := &variant{d: &decoder{root: root, flags: map[string]string{}}, index: index, name: name}
	v.d.contradictions()
	v.d.layer(s.in.Environ, nil)
	v.d.exclusive(s.in.Environ)
	v.d.layer(v.d.once(s.in.Overrides))
	if n := v.d.find("name"); n != nil && n.At.Line == 0 {
		v.name = n
	}
	v.dims = v.d.dimensions()
	s.faults = append(s.faults, v.d.faults...)
	s.variants = append(s.variants, v)
}

// bound rejects an unreasonable number of runs before any is created, and then keeps one of each
// variant so that other faults are found.
func (s *suite) bound() {
	total, known := 0, true
	for _, v := range s.variants {
		product := runsOf(v.dims)
		if product.IsInt64() && product.Int64() <= maxRuns {
			total += int(product.Int64())
			continue
		}
		known = false
		s.fault(v.d.at("matrix"), "matrix", "makes %v runs (at most %d)", product, maxRuns)
	}
	switch {
	case known && total <= maxRuns:
		return
	case known:
		s.fault(s.at, "scenarios", "make %d runs with their matrix (at most %d)", total, maxRuns)
	}
	for _, v := range s.variants {
		for i := range v.dims {
			v.dims[i].values = v.dims[i].values[:1]
		}
	}
}

// A member is one run being resolved.
type member struct {
	variant *variant
	d       *decoder
	values  []*tree.Node // of the matrix, one per dimension of the variant
	run     *Scenario
}

// resolve expands every variant and reads its members.
func (s *suite) resolve() ([]*Scenario, error) {
	var members []*member
	for _, v := range s.variants {
		for values := range combinations(v.dims) {
			m := &member{variant: v, values: values}
			root := v.d.root.Without("matrix")
			for i, dim := range v.dims {
				root = root.With(keyParts(dim.path), values[i])
			}
			m.d = &decoder{in: s.in, root: root, flags: v.d.flags, varies: func(path string) bool { return unvaried(path) == "" }}
			m.run = m.d.scenario()
			members = append(members, m)
		}
	}
	s.names(members)
	faults := s.collect(members)
	if len(faults) > 0 {
		return nil, faults.Done()
	}
	runs := make([]*Scenario, len(members))
	for i, m := range members {
		m.run.sources = m.d.sources(m)
		runs[i] = m.run
	}
	return runs, s.readable(runs)
}

// readable rejects a run whose rendered file would exceed the limits of a file, and so could not be
// run again.
func (s *suite) readable(runs []*Scenario) error {
	var longest []byte
	for _, r := range runs {
		if text := r.YAML(); len(text) > len(longest) {
			longest = text
		}
	}
	if len(longest) <= tree.MaxTokens { // a token has at least one byte
		return nil
	}
	if _, faults := tree.Parse(s.in.File, longest); len(faults) > 0 {
		return Faults{{At: Position{Source: s.in.File}, Message: "written out with its defaults " + faults[0].Message}}
	}
	return nil
}

// collect merges the members' faults into one list: a fault that all share, or several at one
// position, once; a fault of only some members, unless its position identifies them, with the first
// that has it.
func (s *suite) collect(members []*member) Faults {
	out := s.faults
	type tally struct {
		members int
		first   *member
	}
	tallies := map[Fault]*tally{}
	var order []Fault
	for _, m := range members {
		mine := map[Fault]bool{}
		for _, f := range m.d.faults {
			if mine[f] {
				continue
			}
			mine[f] = true
			if tallies[f] == nil {
				tallies[f] = &tally{first: m}
				order = append(order, f)
			}
			tallies[f].members++
		}
	}
	own := map[Position]bool{}
	for _, v := range s.variants {
		v.d.root.Walk(func(n *tree.Node) {
			if n.From != "" {
				own[n.At] = true
			}
			for _, f := range n.Fields {
				own[f.At] = own[f.At] || f.Value.From != ""
			}
		})
	}
	for _, f := range order {
		t := tallies[f]
		if t.members < len(members) && !own[f.At] {
			f.Message += ", in " + t.first.label()
		}
		out = append(out, f)
	}
	for _, v := range s.variants {
		out = wholeKeys(out, v.dims)
	}
	return out
}

// label identifies the run m in the file, for a fault whose position does not.
func (m *member) label() string {
	var words []string
	if l := m.variant.label(); l != "" {
		words = append(words, l)
	}
	for i, dim := range m.variant.dims {
		if strings.HasPrefix(dim.path, "system.options.") {
			// Its value may be a secret that must not be shown.
			words = append(words, fmt.Sprintf("%s[%d]", dim.path, slices.Index(dim.values, m.values[i])))
			continue
		}
		words = append(words, fmt.Sprintf("%s %s", dim.path, cut(m.values[i].Flow())))
	}
	return strings.Join(words, " with ")
}
