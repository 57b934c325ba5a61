package driver

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// A Registry is a set of drivers by name.
type Registry struct{ defs map[string]Definition }

// NewRegistry returns the registry of defs. Two of one name, or one without a
// name or a New, are an error.
func NewRegistry(defs ...Definition) (*Registry, error) {
	r := &Registry{defs: make(map[string]Definition, len(defs))}
	for _, d := range defs {
		if d.Name == "" || d.New == nil {
			return nil, fmt.Errorf("driver %q: incomplete definition", d.Name)
		}
		if _, ok := r.defs[d.Name]; ok {
			return nil, fmt.Errorf("two drivers have the name %q: rename one", d.Name)
		}
		r.defs[d.Name] = d
	}
	return r, nil
}

// Names returns the names, sorted.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.defs))
	for n := range r.defs {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Lookup returns the driver of that name. An unknown name is refused with the
// nearest known one.
func (r *Registry) Lookup(name string) (Definition, error) {
	if d, ok := r.defs[name]; ok {
		return d, nil
	}
	names := r.Names()
	if alike := r.alike(name); len(alike) > 0 {
		return Definition{}, fmt.Errorf("unknown driver %q, did you mean %s? (%s)", name, strings.Join(alike, " or "), strings.Join(names, ", "))
	}
	if near := Nearest(name, names); near != "" {
		return Definition{}, fmt.Errorf("unknown driver %q, did you mean %q? (%s)", name, near, strings.Join(names, ", "))
	}
	return Definition{}, fmt.Errorf("unknown driver %q (%s)", name, strings.Join(names, ", "))
}

// alike returns the drivers that another name may stand for, quoted: it begins their names,
// it is a word of what their makers call the system, or begins what is spoken on the wire,
// or a recipe has it.
func (r *Registry) alike(name string) []string {
	var out []string
	name = strings.ToLower(name)
	for _, n := range r.Names() {
		words := strings.FieldsFunc(strings.ToLower(r.defs[n].Title), func(c rune) bool { return strings.ContainsRune(" ()", c) })
		protocol, _, _ := strings.Cut(r.defs[n].Features.Protocol, " ")
		recipe := slices.Contains(strings.Split(string(r.defs[n].Recipe), "\n"), "name: "+name)
		if len(name) >= 3 && (strings.HasPrefix(n, name) || slices.Contains(words, name) || strings.EqualFold(protocol, name) || recipe) {
			out = append(out, strconv.Quote(n))
		}
	}
	return out
}
