package tree

import (
	"slices"
	"strings"
)

// With returns n with value at the path, creating mappings on the way. If the path leads through
// something that is not a mapping, it returns n: that fault is reported elsewhere.
func (n *Node) With(path []string, value *Node) *Node {
	if n.Shape != Mapping {
		return n
	}
	key := path[0]
	i := slices.IndexFunc(n.Fields, func(f Field) bool { return f.Key == key })
	if len(path) > 1 {
		inner := &Node{Shape: Mapping, At: value.At, From: value.From}
		if i >= 0 {
			inner = n.Fields[i].Value
		}
		value = inner.With(path[1:], value)
	}
	c := *n
	c.Fields = slices.Clone(n.Fields)
	switch {
	case i < 0:
		c.Fields = append(c.Fields, Field{key, value.At, value})
	case len(path) > 1:
		c.Fields[i].Value = value
	default:
		c.Fields[i] = Field{key, value.At, value}
	}
	return &c
}

// Without returns n with nothing at the path.
func (n *Node) Without(path ...string) *Node {
	if n.Shape != Mapping {
		return n
	}
	i := slices.IndexFunc(n.Fields, func(f Field) bool { return f.Key == path[0] })
	if i < 0 {
		return n
	}
	c := *n
	c.Fields = slices.Clone(n.Fields)
	if len(path) > 1 {
		c.Fields[i].Value = c.Fields[i].Value.Without(path[1:]...)
	} else {
		c.Fields = slices.Delete(c.Fields, i, i+1)
	}
	return &c
}

// Overlay merges top over base: mappings are merged, everything else is replaced.
func Overlay(base, top *Node) *Node {
	if base.Shape != Mapping || top.Shape != Mapping {
		return top
	}
	c := *base
	c.Fields = slices.Clone(base.Fields)
	for _, f := range top.Fields {
		i := slices.IndexFunc(c.Fields, func(b Field) bool { return b.Key == f.Key })
		if i < 0 {
			c.Fields = append(c.Fields, f)
			continue
		}
		c.Fields[i] = Field{f.Key, f.At, Overlay(c.Fields[i].Value, f.Value)}
	}
	return &c
}

// Mark records for n and its descendants which part of the file they are from. Use it only on a tree
// just read.
func (n *Node) Mark(from string) {
	if n.From != "" {
		from += ", " + n.From
	}
	n.From = from
	for _, i := range n.Items {
		i.Mark(from)
	}
	for _, f := range n.Fields {
		f.Value.Mark(from)
	}
}

// Walk calls visit with n and all below it.
func (n *Node) Walk(visit func(*Node)) {
	visit(n)
	for _, i := range n.Items {
		i.Walk(visit)
	}
	for _, f := range n.Fields {
		f.Value.Walk(visit)
	}
}

// Flow returns n in YAML's flow style, for messages and comparisons.
func (n *Node) Flow() string {
	switch n.Shape {
	case Text:
		return strings.TrimSpace(n.Text)
	case List:
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			parts[i] = item.Flow()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Mapping:
		parts := make([]string, len(n.Fields))
		for i, f := range n.Fields {
			parts[i] = f.Key + ": " + f.Value.Flow()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}

// Source returns n's source on one line.
func (n *Node) Source() string {
	s := n.At.String()
	if n.From != "" {
		s += " (" + n.From + ")"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, s)
}
