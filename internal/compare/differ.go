package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/weirmq/weir/internal/quantity"
)

// A Fact is a property of a run or of its conditions.
type Fact struct{ Name, Value string }

// RunFacts are what a run reports about itself.
type RunFacts struct {
	Facts   []Fact                 // each name once
	Reports func(name string) bool // whether the run records such facts
}

// of returns the value of a fact. With absent, a run that records such facts but lacks this one has "none".
func (t RunFacts) of(name string, absent bool) (value string, ok bool) {
	if i := slices.IndexFunc(t.Facts, func(f Fact) bool { return f.Name == name }); i >= 0 {
		return t.Facts[i].Value, true
	}
	return "none", absent && t.Reports(name)
}

// A VaryingFact is a fact that differs between runs.
type VaryingFact struct {
	Name    string
	Sides   [][]string // distinct values on each side, in order
	Unknown int        // runs that do not record such facts
}

// Differ returns the facts that differ between the runs of all sides, in the order of the first run that
// has them. A missing fact counts as "none", unless the run lacks it because of another driver, loop or
// mode, which have other options and settings.
func Differ(sides [][]RunFacts) []VaryingFact {
	runs := slices.Concat(sides...)
	find := func(name string, absent bool) (found VaryingFact, differs bool) {
		found.Name = name
		var all []string
		for _, side := range sides {
			values := []string{}
			for _, r := range side {
				if v, ok := r.of(name, absent); ok {
					values, all = with(values, v), with(all, v)
				}
			}
			found.Sides = append(found.Sides, values)
		}
		for _, r := range runs {
			if _, ok := r.of(name, false); !ok && !r.Reports(name) {
				found.Unknown++
			}
		}
		return found, len(all) > 1
	}
	alike := !slices.ContainsFunc([]string{"driver", "loop", "mode"}, func(name string) bool {
		_, differs := find(name, true)
		return differs
	})
	var names []string
	for _, r := range runs {
		for _, f := range r.Facts {
			names = with(names, f.Name)
		}
	}
	var out []VaryingFact
	for _, name := range names {
		if found, differs := find(name, alike); differs {
			out = append(out, found)
		}
	}
	return out
}

// with appends s unless it is there.
func with(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// Settings flattens a resolved scenario into keys such as "load.rate" and their values, each formatted by
// write. An unreadable scenario gives none, which does not affect its figures.
func Settings(scenario []byte, write func(string) string) []Fact {
	var tree yaml.MapSlice
	if yaml.UnmarshalWithOptions(scenario, &tree, yaml.UseOrderedMap()) != nil {
		return nil
	}
	var out []Fact
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(yaml.MapSlice); ok && len(m) > 0 {
			for _, x := range m {
				walk(strings.TrimPrefix(path+"."+fmt.Sprint(x.Key), "."), x.Value)
			}
			return
		}
		if path != "" {
			out = append(out, Fact{path, inline(v, write)})
		}
	}
	walk("", tree)
	return out
}

// inline formats a scenario's value in one line.
func inline(v any, write func(string) string) string {
	switch v := v.(type) {
	case nil:
		return ""
	case yaml.MapSlice:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = fmt.Sprint(x.Key) + ": " + inline(x.Value, write)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = inline(x, write)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	text := fmt.Sprint(v)
	if d, err := time.ParseDuration(text); err == nil && d.String() == text {
		text = quantity.Typed(d) // older versions wrote 1m0s
	}
	return write(text)
}
