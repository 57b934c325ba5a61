package scenario

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// The part of a scenario about servers that weir starts from a recipe.

// recipe reads which recipe to use, if the scenario has weir start one.
func (d *decoder) recipe(sys *System) {
	start := d.find("system.start")
	if start == nil || !start.Is(StartProcess.String()) {
		d.excluded("is for start: process, and here weir starts no server by a recipe", "system.recipe", "system.version")
		return
	}
	name, _, named := d.scalar("system.recipe", "the name of a recipe of the driver")
	nodes := 1
	if n := d.find("system.nodes"); !named && n != nil && n.Shape == tree.Text {
		if given, err := strconv.Atoi(strings.TrimSpace(n.Text)); err == nil {
			nodes = given
			name = broker.Forming(sys.Definition, nodes) // "": then report the first recipe's numbers
		}
	}
	r, err := broker.RecipeOf(sys.Definition, name)
	at, path := start.At, "system.start"
	if named := d.find("system.recipe"); named != nil {
		at, path = named.At, "system.recipe"
	}
	if version, n, _ := d.scalar("system.version", "a version that the recipe lists"); err == nil && version != "" {
		at, path = n.At, "system.version"
		if named {
			r, err = broker.RecipeOf(sys.Definition, r.Name+"@"+version)
		} else {
			r, err = broker.Versioned(sys.Definition, version, nodes)
		}
	}
	if err != nil {
		d.fault(at, path, "%s", strings.TrimPrefix(err.Error(), driver.ErrUnsupported.Error()+": "))
		return
	}
	if r.Install == nil {
		d.fault(at, path, "no package installs %s, and weir starts no containers: weir broker up %s --via docker writes a compose file, and --address says where it runs", r.Name, r.Name)
		return
	}
	sys.Recipe = r
	for _, s := range slices.Sorted(maps.Keys(r.Settings)) {
		if o := driver.ServerPrefix + s; !slices.Contains(d.optionNames, o) {
			d.optionNames = append(d.optionNames, o)
		}
	}
}

// process checks the keys that accompany start: process.
func (d *decoder) process(sys *System) {
	if sys.given("address") {
		d.fault(d.later("system.start", "system.options"), "system.start", "process and an address exclude one another (one of them)")
	}
	if sys.Recipe != nil { // otherwise already rejected
		sys.Start = StartProcess
	}
}

// setting sets a setting of the recipe, and the driver's own option of that name, if any, which then
// defines the allowed values.
func (d *decoder) setting(sys *System, in Inputs, g given, name, kind string) {
	path := tree.Join("system.options", g.name)
	fail := func(err error) {
		if e := (*driver.OptionError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		d.fault(g.value.At, path, "%s", strings.TrimPrefix(err.Error(), driver.ErrUnsupported.Error()+": "))
	}
	o := Option{Name: g.name}
	values, err := d.optionValue(&o, in, g.value, "text")
	if err == nil && len(values) != 1 {
		err = errors.New("is a list (one text)")
	}
	if err != nil {
		fail(err)
		return
	}
	value := values[0]
	if kind != "" {
		if err := driver.SetOption(sys.Config, g.name, value); err != nil {
			fail(err)
			return
		}
		for _, own := range driver.Options(sys.Config) {
			if own.Name == g.name {
				value = own.Default // as the driver writes it: yes is true
			}
		}
	}
	if err := sys.Recipe.CheckSetting(name, value); err != nil {
		fail(err)
		return
	}
	if o.Reference == "" {
		o.Values = []string{value}
	}
	if sys.ForRecipe == nil {
		sys.ForRecipe = map[string]string{}
	}
	sys.ForRecipe[name] = value
	sys.Options = append(sys.Options, o)
}
