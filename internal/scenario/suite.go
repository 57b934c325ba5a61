package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// maxRuns is how many runs a file may hold, repeats not counted. It is far
// above what anybody waits for, and low enough that a slip of the pen in a
// matrix is refused rather than begun.
const maxRuns = 1000

// A variant is one scenario of a file before its matrix is expanded: the file
// itself, or one of `scenarios:` laid over the rest of the file.
type variant struct {
	d     *decoder // its tree, with environment and flags applied
	index int      // in `scenarios:`, -1 where the file has no such list
	name  *node    // its own name, nil where it has none
	dims  []dimension
}

// label says which of the file's scenarios it is, "" where there is one only.
func (v *variant) label() string {
	if v.index < 0 {
		return ""
	}
	return fmt.Sprintf("scenarios[%d]", v.index)
}

// Resolve reads the file and the overrides, fills in every default and checks
// that the whole goes together and that the driver declares it. It reads the
// files that the scenario names and nothing else. It returns the runs of the
// file in its order, one or more: each of `scenarios:`, and of each the members
// of its matrix. The error is Faults, with every fault there is.
func Resolve(in Inputs) ([]*Scenario, error) {
	root := &node{shape: mapping}
	var whole Faults // of the file, whatever the run
	if in.File != "" {
		tree, faults := parse(in.File, in.Text)
		if tree == nil {
			return nil, faults.done()
		}
		root, whole = tree, faults
	}
	s := &suite{in: in.remembering(), faults: whole}
	s.split(root)
	s.bound()
	return s.resolve()
}

// A suite is a file on its way to its runs.
type suite struct {
	in       Inputs
	faults   Faults
	at       Position // of `scenarios:`
	variants []*variant
}

func (s *suite) fault(at Position, path, format string, args ...any) {
	s.faults = append(s.faults, Fault{at, path, fmt.Sprintf(format, args...)})
}

// split makes the variants.
func (s *suite) split(root *node) {
	const allowed = "a list of scenarios, each overriding the rest of the file"
	several := root.field("scenarios")
	rest := root.without("scenarios")
	if several == nil {
		s.variant(rest, -1, rest.field("name"))
		return
	}
	s.at = several.at
	n := len(several.items)
	switch {
	case several.shape != list:
		s.fault(s.at, "scenarios", "is %s (%s)", several.shape, allowed)
	case n == 0:
		s.fault(s.at, "scenarios", "holds none (%s)", allowed)
	case n > maxRuns:
		s.fault(s.at, "scenarios", "holds %d (at most %d)", n, maxRuns)
	}
	if several.shape != list || n == 0 || n > maxRuns {
		s.variant(rest, -1, rest.field("name")) // for the faults of the rest
		return
	}
	for i, item := range several.items {
		path := fmt.Sprintf("scenarios[%d]", i)
		if item.shape != mapping {
			s.fault(item.at, path, "is %s (a mapping of the keys that differ from the rest of the file)", item.shape)
			continue
		}
		item.mark(path)
		for _, f := range item.fields {
			if f.key == "weir" || f.key == "scenarios" {
				s.fault(f.at, join(path, f.key), "stands at the top of the file only (leave it out)")
				item = item.without(f.key)
			}
		}
		s.variant(lay(rest, item), i, item.field("name"))
	}
}

// variant applies environment and flags to one tree.
func (s *suite) variant(tree *node, index int, name *node) {
	v := &variant{d: &decoder{root: tree, flags: map[string]string{}}, index: index, name: name}
	v.d.contradictions()
	v.d.layer(s.in.Environ, nil)
	v.d.exclusive(s.in.Environ)
	v.d.layer(v.d.once(s.in.Overrides))
	if n := v.d.find("name"); n != nil && n.at.Line == 0 {
		v.name = n
	}
	v.dims = v.d.dimensions()
	s.faults = append(s.faults, v.d.faults...)
	s.variants = append(s.variants, v)
}

// bound refuses a number of runs that nobody means, before any is made, and
// leaves one of each variant, so that what else is wrong is found.
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

// A member is one run on its way.
type member struct {
	variant *variant
	d       *decoder
	values  []*node // of the matrix, one for each dimension of the variant
	run     *Scenario
}

// resolve expands every variant and reads its members.
func (s *suite) resolve() ([]*Scenario, error) {
	var members []*member
	for _, v := range s.variants {
		for values := range combinations(v.dims) {
			m := &member{variant: v, values: values}
			tree := v.d.root.without("matrix")
			for i, dim := range v.dims {
				tree = tree.with(keyParts(dim.path), values[i])
			}
			m.d = &decoder{in: s.in, root: tree, flags: v.d.flags}
			m.run = m.d.scenario()
			members = append(members, m)
		}
	}
	s.names(members)
	faults := s.collect(members)
	if len(faults) > 0 {
		return nil, faults.done()
	}
	runs := make([]*Scenario, len(members))
	for i, m := range members {
		m.run.sources = m.d.sources(m)
		runs[i] = m.run
	}
	return runs, s.readable(runs)
}

// readable refuses what grows beyond the bounds of a file when it is written
// out: nobody could run it again.
func (s *suite) readable(runs []*Scenario) error {
	var longest []byte
	for _, r := range runs {
		if text := r.YAML(); len(text) > len(longest) {
			longest = text
		}
	}
	if len(longest) <= maxTokens { // a word has a byte at least
		return nil
	}
	if _, faults := parse(s.in.File, longest); len(faults) > 0 {
		return Faults{{Position{Source: s.in.File}, "", "written out with its defaults " + faults[0].Message}}
	}
	return nil
}

// collect makes one list of the members' faults: one that all share, or several
// at one place, once; one that only some have and whose place does not say
// which, with the first that has it.
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
		v.d.root.positions(func(n *node) {
			if n.from != "" {
				own[n.at] = true
			}
			for _, f := range n.fields {
				own[f.at] = own[f.at] || f.value.from != ""
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

// label says which run of the file m is, for a fault whose place does not.
func (m *member) label() string {
	var words []string
	if l := m.variant.label(); l != "" {
		words = append(words, l)
	}
	for i, dim := range m.variant.dims {
		if strings.HasPrefix(dim.path, "system.options.") {
			// Its value may be a secret that should not stand there.
			words = append(words, fmt.Sprintf("%s[%d]", dim.path, slices.Index(dim.values, m.values[i])))
			continue
		}
		words = append(words, fmt.Sprintf("%s %s", dim.path, cut(m.values[i].flow())))
	}
	return strings.Join(words, " with ")
}
