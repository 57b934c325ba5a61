package broker

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
)

// An Entry is a system that a recipe brings up, with the driver that asks whether
// it answers.
type Entry struct {
	Recipe     *Recipe
	Definition driver.Definition
	Drivers    []string // all that have the recipe, sorted
}

// Catalog returns every system that a driver of the registry has a recipe for,
// sorted by name. A recipe that cannot be read, or two of one name, are errors.
func Catalog(drivers *driver.Registry) ([]Entry, error) {
	var out []Entry
	for _, name := range drivers.Names() {
		def, err := drivers.Lookup(name)
		if err != nil {
			return nil, err
		}
		rs, err := Recipes(def)
		if err != nil {
			return nil, err
		}
		for _, r := range rs {
			i := slices.IndexFunc(out, func(e Entry) bool { return e.Recipe.Name == r.Name })
			if i < 0 {
				out = append(out, Entry{r, def, []string{name}})
				continue
			}
			if !reflect.DeepEqual(out[i].Recipe, r) {
				return nil, fmt.Errorf("the drivers %s and %s have different recipes of one name, %s", out[i].Drivers[0], name, r.Name)
			}
			out[i].Drivers = append(out[i].Drivers, name)
			if r.Ready.Driver == name {
				out[i].Definition = def
			}
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Recipe.Name, b.Recipe.Name) })
	return out, nil
}

// Recipes returns those of one driver; none where it has no recipe.
func Recipes(def driver.Definition) ([]*Recipe, error) {
	if len(def.Recipe) == 0 {
		return nil, nil
	}
	return ParseRecipes("recipe of "+def.Name, def.Recipe)
}

// Find returns a driver's definition, and its recipe of a name as RecipeOf takes it.
// One that there is not is driver.ErrUnsupported.
func Find(drivers *driver.Registry, name, recipe string) (driver.Definition, *Recipe, error) {
	def, err := drivers.Lookup(name)
	if err != nil {
		return def, nil, err
	}
	r, err := RecipeOf(def, recipe)
	return def, r, err
}

// RecipeOf returns a driver's recipe of a name; "" is the first. NAME@VERSION is the
// recipe with another of its versions. One that there is not is driver.ErrUnsupported.
func RecipeOf(def driver.Definition, name string) (*Recipe, error) {
	name, version, _ := strings.Cut(name, "@")
	rs, err := Recipes(def)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range rs {
		if name == "" || r.Name == name {
			return versionOf(def, r, version)
		}
		names = append(names, r.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: weir has no recipe for servers of %s (give the address of a running one)", driver.ErrUnsupported, def.Name)
	}
	return nil, fmt.Errorf("%w: %s has no recipe %q (%s)", driver.ErrUnsupported, def.Name, name, strings.Join(names, ", "))
}

// Forming returns the name of a driver's first recipe that weir installs and that
// forms a system of so many nodes, 1 or more; "" where none does.
func Forming(def driver.Definition, nodes int) string {
	rs, err := Recipes(def)
	if err != nil {
		return ""
	}
	for _, r := range rs {
		if r.Install != nil && slices.Contains(r.Nodes, nodes) {
			return r.Name
		}
	}
	return ""
}

// Versioned returns the recipe of a driver that has a version, among several the first that
// weir installs and that forms a system of so many nodes; 0 for any number. A version that
// none has is driver.ErrUnsupported.
func Versioned(def driver.Definition, version string, nodes int) (*Recipe, error) {
	rs, err := Recipes(def)
	if err != nil {
		return nil, err
	}
	var found *Recipe
	var have []string
	for _, r := range rs {
		all := append([]string{r.Version}, r.Versions...)
		have = append(have, fmt.Sprintf("%s: %s", r.Name, strings.Join(all, ", ")))
		if !slices.Contains(all, version) {
			continue
		}
		if r.Install != nil && (nodes == 0 || slices.Contains(r.Nodes, nodes)) {
			return versionOf(def, r, version)
		}
		if found == nil {
			found = r
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no recipe of %s has version %q (%s)", driver.ErrUnsupported, def.Name, version, strings.Join(have, "; "))
	}
	return versionOf(def, found, version)
}

// Named returns the system of that name, or the first of the driver of that name. With
// NAME@VERSION it has that version, if need be by another recipe of the driver. An unknown
// name is refused with the nearest known one.
func Named(entries []Entry, drivers *driver.Registry, name string) (Entry, error) {
	name, version, _ := strings.Cut(name, "@")
	at := func(e Entry, def driver.Definition) (Entry, error) {
		r, err := versionOf(def, e.Recipe, version)
		if err != nil && def.Name == name {
			r, err = Versioned(def, version, 0)
		}
		if err != nil {
			return Entry{}, err
		}
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Recipe.Name == r.Name })
		return Entry{r, def, entries[i].Drivers}, nil
	}
	var names []string
	for _, e := range entries {
		if e.Recipe.Name == name {
			return at(e, e.Definition)
		}
		names = append(names, e.Recipe.Name)
	}
	if def, err := drivers.Lookup(name); err == nil {
		r, err := RecipeOf(def, "")
		if err != nil {
			return Entry{}, err
		}
		for _, e := range entries {
			if e.Recipe.Name == r.Name {
				return at(e, def)
			}
		}
	}
	if err := drivers.Absent(name); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	if near := driver.Nearest(name, names); near != "" {
		return Entry{}, fmt.Errorf("%w: no recipe is named %q, did you mean %q? (%s)", driver.ErrUnsupported, name, near, strings.Join(names, ", "))
	}
	return Entry{}, fmt.Errorf("%w: no recipe is named %q (%s)", driver.ErrUnsupported, name, strings.Join(names, ", "))
}

// Source names where the programs of the recipe come from: go, maven, apt, pypi,
// or docker where there is no package of them.
func (r *Recipe) Source() string {
	switch in := r.Install; {
	case in == nil:
	case in.Go != nil:
		return "go"
	case in.Maven != nil:
		return "maven"
	case in.Apt != nil:
		return "apt"
	case in.PyPI != nil:
		return "pypi"
	}
	return "docker"
}
