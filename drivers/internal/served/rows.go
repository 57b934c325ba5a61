//go:build unix

package served

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
)

// A Given is how a recipe can produce a row of a driver's guarantee table.
type Given struct {
	Row      driver.Confirmation
	With     With
	Nodes    int
	Replicas int
	Options  map[string]string // client options
}

// Rows returns, for each row of a driver's table, how one of its recipes, or the named one,
// produces it, and the rows that none produces, formatted by Name.
func Rows(def driver.Definition, recipe string) (given []Given, none []string, err error) {
	recipes, err := broker.Recipes(def)
	if err != nil {
		return nil, nil, err
	}
	if recipe != "" {
		recipes = slices.DeleteFunc(recipes, func(r *broker.Recipe) bool { return r.Name != recipe })
	}
	for _, row := range def.Confirmations {
		if g, ok := rowBy(def, recipes, row); ok {
			given = append(given, g)
		} else {
			none = append(none, Name(row))
		}
	}
	return given, none, nil
}

// Name formats a row as one line.
func Name(row driver.Confirmation) string {
	return strings.TrimSuffix(row.Guarantee.String()+": "+row.When.String(), ": ")
}

func rowBy(def driver.Definition, recipes []*broker.Recipe, row driver.Confirmation) (Given, bool) {
	for _, r := range recipes {
		if r.Install == nil {
			continue
		}
		for others := range 3 {
			for _, set := range choices(def, r, row.When, others) {
				for _, n := range slices.Sorted(slices.Values(r.Nodes)) {
					g := Given{Row: row, Nodes: n, Replicas: 1, Options: map[string]string{}, With: With{Recipe: r.Name, Settings: map[string]string{}}}
					if def.Capabilities.Replicas {
						g.Replicas = n
					}
					if g.set(def, r, set) {
						return g, true
					}
				}
			}
		}
	}
	return Given{}, false
}

// choices returns ways to set the options of a row, plus up to that many options named in other
// rows.
func choices(def driver.Definition, r *broker.Recipe, when driver.Conditions, others int) []map[string]string {
	with := func(sets []map[string]string, name string, values []string) (longer []map[string]string) {
		for _, set := range sets {
			if _, twice := set[name]; twice {
				continue
			}
			for _, value := range values {
				set = maps.Clone(set)
				set[name] = value
				longer = append(longer, set)
			}
		}
		return longer
	}
	options := driver.Options(def.New())
	all := []map[string]string{{}}
	for _, c := range when {
		if slices.ContainsFunc(options, func(o driver.Option) bool { return o.Name == c.Name }) {
			all = append(all, with(all, c.Name, c.Examples())...)
		}
	}
	for range others {
		var more []map[string]string
		for _, o := range options {
			if !named(def.Confirmations, o.Name) {
				continue
			}
			values := append(o.Allowed, r.Settings[strings.TrimPrefix(o.Name, driver.ServerPrefix)].Allowed...)
			if o.Type == "yes/no" {
				values = []string{"no", "yes"}
			}
			more = append(more, with(all, o.Name, values)...)
		}
		all = more
	}
	return all
}

// named reports whether a row names an option.
func named(cs driver.Confirmations, option string) bool {
	return slices.ContainsFunc(cs, func(row driver.Confirmation) bool {
		return slices.ContainsFunc(row.When, func(c driver.Condition) bool { return c.Name == option })
	})
}

// set applies the options, and reports whether the table then yields the row.
func (g *Given) set(def driver.Definition, r *broker.Recipe, set map[string]string) bool {
	cfg := def.New()
	for name, value := range set {
		if driver.SetOption(cfg, name, value) != nil {
			return false
		}
		setting, server := strings.CutPrefix(name, driver.ServerPrefix)
		if !server {
			if _, states := r.Connect.Options[def.Name][name]; states {
				return false // the recipe decides this for its servers
			}
			g.Options[name] = value
			continue
		}
		i := slices.IndexFunc(driver.Options(cfg), func(o driver.Option) bool { return o.Name == name })
		value = driver.Options(cfg)[i].Default // in the driver's format: yes is true
		if r.CheckSetting(setting, value) != nil {
			return false
		}
		g.With.Settings[setting] = value
	}
	for name, values := range r.Known(def.Name, g.Nodes, g.With.Settings) {
		if _, given := set[name]; !given && driver.SetOption(cfg, name, values...) != nil {
			return false
		}
	}
	f, ok := cfg.(driver.GuaranteePredictor)
	if driver.Check(cfg) != nil || !ok && len(def.Confirmations) > 1 {
		return false
	}
	var k driver.Known
	if ok {
		k = f.Known(driver.Servers{Nodes: g.Nodes, Replicas: g.Replicas})
	}
	return def.Confirmations.AtMost(k) == g.Row.Confirms && holds(def, g.Row, k)
}

// holds reports whether the table selects the row.
func holds(def driver.Definition, row driver.Confirmation, k driver.Known) bool {
	only := driver.Confirmations{{}, row}
	return only.AtMost(k) == row.Confirms
}

// Guarantees starts servers for each row of the driver's guarantee table that a recipe produces,
// and compares it with Facts. none names the rows that no recipe produces. If shared is not nil, it
// provides the servers with the default recipe's own settings.
func Guarantees(t *testing.T, def driver.Definition, shared *Shared, recipe string, none ...string) {
	given, left, err := Rows(def, recipe)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(none, left); d != "" {
		t.Errorf("rows that no recipe gives (-want +got):\n%s", d)
	}
	groups := map[string][]Given{}
	for _, g := range given {
		key := fmt.Sprintf("%s %d nodes %q", g.With.Recipe, g.Nodes, g.With.Settings)
		groups[key] = append(groups[key], g)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		t.Run(key, func(t *testing.T) {
			first := groups[key][0]
			var s *System
			if r, err := broker.RecipeOf(def, ""); err == nil && shared != nil && len(first.With.Settings) == 0 && first.With.Recipe == r.Name {
				s = shared.Up(t, first.Nodes)
			} else {
				s = Up(t, def, first.Nodes, first.With)
			}
			for i, g := range groups[key] {
				t.Run(Name(g.Row), func(t *testing.T) { g.ask(t, def, s, fmt.Sprint("row", i)) })
			}
		})
	}
}

// ask compares a row with the running servers' facts.
func (g *Given) ask(t *testing.T, def driver.Definition, s *System, id string) {
	cfg := def.New()
	options := maps.Clone(s.Options)
	for name, value := range g.Options {
		options[name] = []string{value}
	}
	for name, values := range options {
		if err := driver.SetOption(cfg, name, values...); err != nil {
			t.Fatal(err)
		}
	}
	c, err := driver.Open(t.Context(), def, cfg, driver.Run{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: g.Replicas}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(c.Delete(ctx, d), c.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	if err := c.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f, err := c.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g.Row.Confirms, f.Confirms); diff != "" {
		t.Errorf("confirms (-page +servers):\n%s%v", diff, f.Settings)
	}
	if f.Version == "" {
		t.Errorf("no version: %+v", f)
	}
}
