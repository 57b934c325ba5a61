package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// A decoder reads typed values from a tree and collects what is wrong.
type decoder struct {
	in          Inputs
	root        *node
	faults      Faults
	flags       map[string]string // path to the flag that set it
	optionNames []string          // of the chosen driver
	places      map[string]*node  // the options given
	refused     []string          // paths of keys with a value that is not one
}

func (d *decoder) fault(at Position, path, format string, args ...any) {
	if at.Line == 0 && at.Source != "" && d.flags[path] == at.Source {
		path = "" // the flag's name says it
	}
	d.faults = append(d.faults, Fault{at, path, fmt.Sprintf(format, args...)})
}

// at returns where the value of path was written, the zero Position for a
// default.
func (d *decoder) at(path string) Position {
	if n := d.find(path); n != nil {
		return n.at
	}
	return Position{}
}

// find returns the value at path, nil where none is given.
func (d *decoder) find(path string) *node {
	n := d.root
	for part := range strings.SplitSeq(path, ".") {
		n = n.field(part)
	}
	return n
}

func (d *decoder) has(path string) bool { return d.find(path) != nil }

// took reports whether path has a value, and one that can be.
func (d *decoder) took(path string) bool { return d.has(path) && !slices.Contains(d.refused, path) }

// scalar returns the text at path.
func (d *decoder) scalar(path, allowed string) (string, *node, bool) {
	n := d.find(path)
	if n == nil {
		return "", nil, false
	}
	s, ok := d.textOf(n, path, allowed)
	return s, n, ok
}

func (d *decoder) textOf(n *node, path, allowed string) (string, bool) {
	if n.shape != text {
		d.fault(n.at, path, "is %s (%s)", n.shape, allowed)
		return "", false
	}
	return strings.TrimSpace(n.text), true
}

// only reports every key of the mapping n that is not in allowed, and every
// one of needed that is missing.
func (d *decoder) only(n *node, path string, needed ...string) bool {
	ok := true
	for _, f := range n.fields {
		if slices.Contains(needed, f.key) {
			continue
		}
		ok = false
		d.fault(f.at, join(path, f.key), "unknown key%s (%s)", meant(f.key, needed), strings.Join(needed, ", "))
	}
	for _, k := range needed {
		if n.field(k) == nil {
			d.fault(n.at, join(path, k), "is missing (%s)", strings.Join(needed, ", "))
			ok = false
		}
	}
	return ok
}
