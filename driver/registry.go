package driver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Registry is a set of drivers by name.
type Registry struct {
	defs   map[string]Definition
	absent []Absent
	where  string // the program that has the absent drivers, and the command that runs it
}

// NewRegistry returns the registry of defs. Duplicate names, and definitions without a name or New,
// are errors.
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

// An Absent is a driver that another program contains.
type Absent struct {
	Name    string
	Title   string
	Recipes []string // their names
}

// Lacks makes Lookup report where absent drivers are: the program, and the command that runs it. A
// driver in the registry is not absent.
func (r *Registry) Lacks(where string, absent ...Absent) {
	r.where, r.absent = where, slices.DeleteFunc(slices.Clone(absent), func(a Absent) bool {
		_, ok := r.defs[a.Name]
		return ok
	})
}

// Absent returns an error that says where an absent driver is, given its name or that of its
// recipe; nil if there is none.
func (r *Registry) Absent(name string) error {
	for _, a := range r.absent {
		if a.Name == name || slices.Contains(a.Recipes, name) {
			return fmt.Errorf("driver %q is in %s", a.Name, r.where)
		}
	}
	return nil
}

// Names returns the names, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.defs)) }

// Known returns the names of registered and absent drivers, sorted.
func (r *Registry) Known() []string {
	names := r.Names()
	for _, a := range r.absent {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}

// Lookup returns the driver of that name. The error for an unknown name suggests the nearest known
// one.
func (r *Registry) Lookup(name string) (Definition, error) {
	if d, ok := r.defs[name]; ok {
		return d, nil
	}
	if slices.ContainsFunc(r.absent, func(a Absent) bool { return a.Name == name }) {
		return Definition{}, r.Absent(name)
	}
	names := r.Known()
	if alike := r.alike(name); len(alike) > 0 {
		return Definition{}, fmt.Errorf("unknown driver %q, did you mean %s? (%s)", name, strings.Join(alike, " or "), strings.Join(names, ", "))
	}
	if near := Nearest(name, names); near != "" {
		return Definition{}, fmt.Errorf("unknown driver %q, did you mean %q? (%s)", name, near, strings.Join(names, ", "))
	}
	return Definition{}, fmt.Errorf("unknown driver %q (%s)", name, strings.Join(names, ", "))
}

// alike returns the drivers that another name may mean, quoted: the name is a prefix of theirs, a
// word of their title, a prefix of their protocol, or the name of their recipe.
func (r *Registry) alike(name string) []string {
	var out []string
	name = strings.ToLower(name)
	consider := func(n, title, protocol string, recipe bool) {
		words := strings.FieldsFunc(strings.ToLower(title), func(c rune) bool { return strings.ContainsRune(" ()", c) })
		if len(name) >= 3 && (strings.HasPrefix(n, name) || slices.Contains(words, name) || strings.EqualFold(protocol, name) || recipe) {
			out = append(out, strconv.Quote(n))
		}
	}
	for n, d := range r.defs {
		protocol, _, _ := strings.Cut(d.Features.Protocol, " ")
		consider(n, d.Title, protocol, slices.Contains(strings.Split(string(d.Recipe), "\n"), "name: "+name))
	}
	for _, a := range r.absent {
		consider(a.Name, a.Title, "", slices.Contains(a.Recipes, name))
	}
	slices.Sort(out)
	return out
}
