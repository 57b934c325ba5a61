package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/schedule"
)

const longestName = 100

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// names gives each run a unique name, even on a case-insensitive file system: the variant's, followed
// by the values of the matrix.
func (s *suite) names(members []*member) {
	s.ownNames()
	taken := map[string]bool{}
	for _, m := range members {
		if len(m.variant.dims) == 0 && m.variant.name != nil {
			taken[strings.ToLower(m.d.baseName(m, len(s.variants)))] = true
		}
	}
	for _, m := range members {
		given := len(m.variant.dims) == 0 && m.variant.name != nil
		name := m.d.baseName(m, len(s.variants))
		for i, v := range m.values {
			name += "-" + valueWord(m.variant.dims[i].path, v)
		}
		name = strings.Trim(name[:min(len(name), longestName)], "-")
		if !given {
			name = apart(name, taken)
		}
		taken[strings.ToLower(name)] = true
		m.run.Name = name
	}
}

// apart returns name, with a number appended if it is taken.
func apart(name string, taken map[string]bool) string {
	candidate := name
	for n := 2; taken[strings.ToLower(candidate)]; n++ {
		number := fmt.Sprintf("-%d", n)
		candidate = name[:min(len(name), longestName-len(number))] + number
	}
	return candidate
}

// ownNames checks the names given by the file and the flags.
func (s *suite) ownNames() {
	const allowed = "1 to 100 letters, digits, - _ . beginning with a letter or digit"
	first := map[string]int{}
	for i, v := range s.variants {
		n := v.name
		if n == nil {
			continue
		}
		v.d.faults = nil // earlier faults are already recorded in the suite
		w, ok := v.d.textOf(n, "name", allowed)
		switch at, twice := first[strings.ToLower(w)]; {
		case !ok:
		case !nameForm.MatchString(w):
			v.d.fault(n.At, "name", "%q is not a name (%s)", cut(w), allowed)
		case n.At.Line == 0 && len(s.variants) > 1:
			v.d.fault(n.At, "name", "names one run, and the file holds %d scenarios (leave it out)", len(s.variants))
		case twice:
			v.d.fault(n.At, "name", "%q is the name of %s too (a name of its own)", w, s.variants[at].label())
		default:
			first[strings.ToLower(w)] = i
		}
		s.faults = append(s.faults, v.d.faults...)
	}
}

// baseName returns the name of a run without the values of its matrix.
func (d *decoder) baseName(m *member, variants int) string {
	if m.variant.name != nil {
		return strings.TrimSpace(m.variant.name.Text)
	}
	if n := d.find("name"); n != nil && n.Shape == tree.Text {
		if variants == 1 {
			return strings.TrimSpace(n.Text)
		}
		return fmt.Sprintf("%s-%d", strings.TrimSpace(n.Text), m.variant.index+1)
	}
	var parts []string
	add := func(path, word string) {
		if !slices.ContainsFunc(m.variant.dims, func(dim dimension) bool { return dim.path == path }) {
			parts = append(parts, word)
		}
	}
	s := m.run
	add("system.driver", s.System.Definition.Name)
	add("message.size", sizeWord(s.Message.Sizes))
	switch {
	case d.has("load.profile"):
		add("load.profile", "profile")
	case s.Load.Arrival.Kind == schedule.Trace:
		add("load.arrival", "trace")
	case s.Load.Closed:
		add("load.rate", "max")
	default:
		add("load.rate", shortRate(s.Load.Rate))
	}
	return strings.Join(parts, "-")
}

func sizeWord(sizes []schedule.WeightedSize) string {
	if len(sizes) != 1 {
		return "mixed"
	}
	return strings.ToLower(driver.FormatSize(int64(sizes[0].Bytes)))
}

// shortRate formats a rate for a name: 20000/s is 20k, 100/m is 100-m.
func shortRate(r schedule.Rate) string {
	s := r.String()
	n, isSeconds := strings.CutSuffix(s, "/s")
	for _, u := range []struct{ zeros, letter string }{{"000000", "m"}, {"000", "k"}} {
		if short, ok := strings.CutSuffix(n, u.zeros); ok && isSeconds && short != "" {
			return short + u.letter
		}
	}
	if isSeconds {
		return n
	}
	return strings.ReplaceAll(s, "/", "-")
}

var (
	unsafe  = regexp.MustCompile(`[^A-Za-z0-9_.]+`)
	bareFit = regexp.MustCompile(`^[A-Za-z]`)
)

// longestWord limits how much of a value a name contains.
const longestWord = 24

// valueWord formats a matrix value for a name. A value that means nothing alone, a number or yes,
// follows the last part of its key.
func valueWord(path string, n *tree.Node) string {
	w := n.Flow()
	switch path {
	case "load.rate":
		if r, err := schedule.ParseRate(w); err == nil {
			return shortRate(r)
		}
	case "message.size":
		w = strings.ToLower(w)
	}
	w = strings.Trim(unsafe.ReplaceAllString(w, "-"), "-._")
	w = strings.Trim(w[:min(len(w), longestWord)], "-._")
	last := path[strings.LastIndexByte(path, '.')+1:]
	vague := slices.Contains([]string{"true", "false", "yes", "no", "none"}, w)
	switch {
	case w == "":
		return unsafe.ReplaceAllString(last, "-")
	case path != "message.size" && (vague || !bareFit.MatchString(w)):
		return unsafe.ReplaceAllString(last, "-") + "-" + w
	}
	return w
}
