package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
)

// A DriverRecipe summarizes how to install and start real servers of a system.
type DriverRecipe struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Version string   `json:"version"`
	Others  []string `json:"versions,omitempty"` // further versions in the recipe
	Source  string   `json:"source"`             // go, maven, apt, pypi; docker if there is no package
	Nodes   []int    `json:"nodes"`              // supported numbers of nodes
	Images  []string `json:"images"`             // of the compose file
}

// addRecipes fills in a driver's recipes. Unreadable ones are skipped: starting them reports the error.
func (p *Driver) addRecipes(d driver.Definition) {
	p.Recipes = []DriverRecipe{}
	recipes, _ := broker.Recipes(d)
	for i, r := range recipes {
		p.Recipes = append(p.Recipes, RecipeOf(r))
		if i > 0 {
			continue // its settings may differ; weir broker status shows them
		}
		for _, o := range SettingsOf(r, driver.ServerPrefix) {
			if !slices.ContainsFunc(p.ServerOptions, func(x DriverOption) bool { return x.Name == o.Name }) {
				p.ServerOptions = append(p.ServerOptions, o)
			}
		}
	}
}

// SettingsOf returns a recipe's settings, with a prefix before the name of each.
func SettingsOf(r *broker.Recipe, prefix string) []DriverOption {
	out := []DriverOption{}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		s := r.Settings[name]
		out = append(out, DriverOption{Name: prefix + name, Type: "text", Default: s.Default, Help: s.Help, Allowed: s.Allowed})
	}
	return out
}

// RecipeOf returns a recipe in short.
func RecipeOf(r *broker.Recipe) DriverRecipe {
	p := DriverRecipe{Name: r.Name, Title: r.Title, Version: r.Version, Others: r.Versions, Source: r.Source(), Nodes: r.Nodes, Images: []string{}}
	for _, part := range r.Processes {
		if part.Docker != nil && !slices.Contains(p.Images, part.Docker.Image) {
			p.Images = append(p.Images, part.Docker.Image)
		}
	}
	return p
}

// String summarizes the recipe in one line.
func (p DriverRecipe) String() string {
	nodes := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Nodes), " ", ", "), "[]")
	version := p.Version
	if version == "distribution" {
		version = "the distribution's"
	}
	if len(p.Others) > 0 {
		version += " (or " + strings.Join(p.Others, ", ") + ")"
	}
	return fmt.Sprintf("%s: %s, version %s from %s, nodes %s", p.Name, p.Title, version, p.Source, nodes)
}
