package broker

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
)

// An Entry is a system that a recipe can start, and the driver used to check that it answers.
type Entry struct {
	Recipe     *Recipe
	Definition driver.Definition
	Drivers    []string // all drivers with this recipe, sorted
}

// Catalog returns every system for which a driver of the registry has a recipe, sorted by name. An
// unreadable recipe or a duplicate name is an error.
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

// Recipes returns the recipes of a driver, if any.
func Recipes(def driver.Definition) ([]*Recipe, error) {
	if len(def.Recipe) == 0 {
		return nil, nil
	}
	return ParseRecipes("recipe of "+def.Name, def.Recipe)
}

// Find returns a driver's definition and the recipe that RecipeOf returns for the given name. An
// unknown driver or recipe returns driver.ErrUnsupported.
func Find(drivers *driver.Registry, name, recipe string) (driver.Definition, *Recipe, error) {
	def, err := drivers.Lookup(name)
	if err != nil {
		return def, nil, err
	}
	r, err := RecipeOf(def, recipe)
	return def, r, err
}

// RecipeOf returns a driver's recipe by name; "" is the first one. NAME@VERSION selects another
// version of the recipe. An unknown name or version returns driver.ErrUnsupported.
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

// Forming returns the name of a driver's first recipe that weir can install and that supports the
// given number of nodes (at least 1), or "" if there is none.
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

// Versioned returns a driver's recipe with the given version. If several have it, the first that weir
// can install and that supports the given number of nodes (0: any) wins. A version that no recipe has
// returns driver.ErrUnsupported.
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

// Named returns the system with the given name, or the first system of the driver with that name.
// NAME@VERSION selects a version, if necessary from another recipe of the driver. The error for an
// unknown name suggests the nearest known one.
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

// Source returns where the recipe's programs come from: go, maven, apt or pypi, or docker if there is
// no package.
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
