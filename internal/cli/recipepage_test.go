package cli

import (
	"slices"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

// TestRecipesParseAndMatchTheirDrivers: a setting that a driver has an
// option for means the same by both, or a scenario written out would be another.
func TestRecipesParseAndMatchTheirDrivers(t *testing.T) {
	registry := must.Get(driver.NewRegistry(all.Definitions()...))(t)
	entries := must.Get(broker.Catalog(registry))(t)
	if len(entries) == 0 {
		t.Error("there is no recipe")
	}
	for _, def := range all.Definitions() {
		recipes, err := broker.Recipes(def)
		if err != nil {
			t.Error(err)
		}
		for _, r := range recipes {
			for _, o := range driver.Options(def.New()) {
				for name, s := range r.Settings {
					impossible := len(s.Allowed) > 0 && !slices.Contains(s.Allowed, o.Default) // of a newer server that lacks it
					if o.Name == driver.ServerPrefix+name && o.Default != s.Default && !impossible {
						t.Errorf("%s: the default of %s is %q, and the recipe of %s has %q", def.Name, o.Name, o.Default, r.Name, s.Default)
					}
				}
			}
		}
		if len(recipes) > 0 {
			if _, err := registry.Lookup(recipes[0].Ready.Driver); recipes[0].Ready.Driver != "" && err != nil {
				t.Errorf("recipe of %s: %v", def.Name, err)
			}
		}
	}
}
