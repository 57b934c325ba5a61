package scenario

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// prefix is the common prefix of variables that set keys.
const prefix = "WEIR_"

// A variable is an environment variable that sets a key.
type variable struct{ name, path string }

// VariableOf returns the name of the environment variable that sets the key or
// option at path: "load.rate" is WEIR_LOAD_RATE, "in-flight", a short form, is
// WEIR_IN_FLIGHT.
func VariableOf(path string) string {
	return prefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(path))
}

// variables returns every variable that sets a key, in the order of a file: for each key that of its
// path and that of its short form, for each option of any driver one, and WEIR_ADDRESS.
func variables(drivers *driver.Registry) []variable {
	var out []variable
	for _, k := range Keys() {
		switch {
		case k.Path == "system.options":
			out = append(out, variable{VariableOf("address"), k.Path + ".address"})
			for _, o := range allOptions(drivers) {
				out = append(out, variable{VariableOf(tree.Join(k.Path, o)), tree.Join(k.Path, o)})
			}
		case k.FileOnly:
		default:
			out = append(out, variable{VariableOf(k.Path), k.Path})
			if k.Short != "" && k.Short != k.Path {
				out = append(out, variable{VariableOf(k.Short), k.Path})
			}
		}
	}
	return out
}

// allOptions returns the distinct names of all drivers' options, sorted.
func allOptions(drivers *driver.Registry) []string {
	seen := map[string]bool{}
	for _, name := range drivers.Names() {
		if def, err := drivers.Lookup(name); err == nil {
			for _, o := range driver.Options(def.New()) {
				seen[o.Name] = true
			}
		}
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// Variables returns the settings from the environment: WEIR_LOAD_RATE and WEIR_RATE for load.rate,
// WEIR_SYSTEM_OPTIONS_STORAGE for a driver option, WEIR_ADDRESS for the option address. An empty
// variable counts as unset. lookup has the semantics of os.LookupEnv.
func Variables(lookup func(name string) (string, bool), drivers *driver.Registry) []Override {
	var out []Override
	for _, v := range variables(drivers) {
		if value, ok := lookup(v.name); ok && value != "" {
			out = append(out, Override{Flag: v.name, Path: v.path, Value: value})
		}
	}
	return out
}

// Misspelt returns a line for each variable of environ ("NAME=value" each) that starts with weir's
// prefix, sets nothing, and resembles one that does, or one of others, the caller's own variables. The
// lines contain no values.
func Misspelt(environ []string, drivers *driver.Registry, others ...string) []string {
	known := slices.Clone(others)
	for _, v := range variables(drivers) {
		known = append(known, v.name)
	}
	for i := range known {
		known[i] = strings.TrimPrefix(known[i], prefix) // the common prefix must not count as similarity
	}
	var out []string
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		rest, ours := strings.CutPrefix(name, prefix)
		if !ours || value == "" || slices.Contains(known, rest) {
			continue
		}
		if near := driver.Nearest(rest, known); near != "" {
			out = append(out, fmt.Sprintf("%s sets nothing, did you mean %s?", name, prefix+near))
		}
	}
	sort.Strings(out)
	return out
}
