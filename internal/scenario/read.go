package scenario

import (
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
)

// A decoder reads typed values from a tree and collects faults.
type decoder struct {
	in          Inputs
	root        *tree.Node
	faults      Faults
	varies      func(path string) bool // whether a matrix may contain it
	flags       map[string]string      // path to the flag that set it
	optionNames []string               // of the chosen driver
	places      map[string]*tree.Node  // positions of the given options
	refused     []string               // paths of keys with invalid values
	login       login                  // login contained in the address
	loginFrom   string                 // describes the source of the address
}

func (d *decoder) fault(at Position, path, format string, args ...any) {
	if at.Line == 0 && at.Source != "" && d.flags[path] == at.Source {
		path = "" // the flag's name already gives it
	}
	d.faults.Add(at, path, format, args...)
}

// at returns the position of path's value; the zero Position for a default.
func (d *decoder) at(path string) Position {
	if n := d.find(path); n != nil {
		return n.At
	}
	return Position{}
}

// find returns the value at path, or nil if none is given.
func (d *decoder) find(path string) *tree.Node {
	n := d.root
	for part := range strings.SplitSeq(path, ".") {
		n = n.Field(part)
	}
	return n
}

func (d *decoder) has(path string) bool { return d.find(path) != nil }

// took reports whether path has a valid value.
func (d *decoder) took(path string) bool { return d.has(path) && !slices.Contains(d.refused, path) }

// scalar returns the text at path.
func (d *decoder) scalar(path, allowed string) (string, *tree.Node, bool) {
	n := d.find(path)
	if n == nil {
		return "", nil, false
	}
	s, ok := d.textOf(n, path, allowed)
	return s, n, ok
}

func (d *decoder) textOf(n *tree.Node, path, allowed string) (string, bool) {
	if n.Shape != tree.Text {
		hint := d.sweep(n, path)
		if section := sectionFor(path); n.Shape == tree.Mapping && section != "" {
			hint = section
		}
		d.fault(n.At, path, "is %s (%s)%s", n.Shape, allowed, hint)
		return "", false
	}
	return strings.TrimSpace(n.Text), true
}

// only reports every key of the mapping n that is not allowed, and every needed one that is missing.
func (d *decoder) only(n *tree.Node, path string, needed ...string) bool {
	ok := true
	for _, f := range n.Fields {
		if slices.Contains(needed, f.Key) {
			continue
		}
		ok = false
		d.fault(f.At, tree.Join(path, f.Key), "unknown key%s (%s)", meant(f.Key, needed), strings.Join(needed, ", "))
	}
	for _, k := range needed {
		if n.Field(k) == nil {
			d.fault(n.At, tree.Join(path, k), "is missing (%s)", strings.Join(needed, ", "))
			ok = false
		}
	}
	return ok
}
