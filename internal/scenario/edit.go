package scenario

import (
	"slices"
	"strings"
)

// Trees are never changed once they are read: what differs between runs of a
// file is a copy that shares everything else, so that a thousand runs of a long
// file cost little more than one.

// with returns n with value at the path, mappings made on the way. Where the
// way leads through something that is not a mapping, it returns n: that is a fault
// of its own.
func (n *node) with(path []string, value *node) *node {
	if n.shape != mapping {
		return n
	}
	key := path[0]
	i := slices.IndexFunc(n.fields, func(f field) bool { return f.key == key })
	if len(path) > 1 {
		inner := &node{shape: mapping, at: value.at, from: value.from}
		if i >= 0 {
			inner = n.fields[i].value
		}
		value = inner.with(path[1:], value)
	}
	c := *n
	c.fields = slices.Clone(n.fields)
	switch {
	case i < 0:
		c.fields = append(c.fields, field{key, value.at, value})
	case len(path) > 1:
		c.fields[i].value = value
	default:
		c.fields[i] = field{key, value.at, value}
	}
	return &c
}

// without returns n with nothing at the path.
func (n *node) without(path ...string) *node {
	if n.shape != mapping {
		return n
	}
	i := slices.IndexFunc(n.fields, func(f field) bool { return f.key == path[0] })
	if i < 0 {
		return n
	}
	c := *n
	c.fields = slices.Clone(n.fields)
	if len(path) > 1 {
		c.fields[i].value = c.fields[i].value.without(path[1:]...)
	} else {
		c.fields = slices.Delete(c.fields, i, i+1)
	}
	return &c
}

// overlay lays top over base: mappings are merged, everything else is replaced.
func overlay(base, top *node) *node {
	if base.shape != mapping || top.shape != mapping {
		return top
	}
	c := *base
	c.fields = slices.Clone(base.fields)
	for _, f := range top.fields {
		i := slices.IndexFunc(c.fields, func(b field) bool { return b.key == f.key })
		if i < 0 {
			c.fields = append(c.fields, f)
			continue
		}
		c.fields[i] = field{f.key, f.at, overlay(c.fields[i].value, f.value)}
	}
	return &c
}

// mark notes of n and all below it where in the file they are from. It is for a
// tree that was just read.
func (n *node) mark(from string) {
	if n.from != "" {
		from += ", " + n.from
	}
	n.from = from
	for _, i := range n.items {
		i.mark(from)
	}
	for _, f := range n.fields {
		f.value.mark(from)
	}
}

// positions calls visit with n and all below it.
func (n *node) positions(visit func(*node)) {
	visit(n)
	for _, i := range n.items {
		i.positions(visit)
	}
	for _, f := range n.fields {
		f.value.positions(visit)
	}
}

// flow returns n in YAML's flow style, for messages and to compare by.
func (n *node) flow() string {
	switch n.shape {
	case text:
		return strings.TrimSpace(n.text)
	case list:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = item.flow()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapping:
		parts := make([]string, len(n.fields))
		for i, f := range n.fields {
			parts[i] = f.key + ": " + f.value.flow()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}

// keyParts takes a path of a key apart. A driver's option has one name, whatever
// dots are in it.
func keyParts(path string) []string {
	if option, ok := strings.CutPrefix(path, "system.options."); ok {
		return []string{"system", "options", option}
	}
	return strings.Split(path, ".")
}
