package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotVaried is wrapped by By when the runs do not differ in a key.
var ErrNotVaried = errors.New("does not vary")

// By groups runs by a key of their scenarios, such as system.options.storage, or by name: one side for each
// value, in the order of the runs' file if there is one, else of the runs. Runs without the key form the
// side "none". The last word of a varying key is enough if it is unique: driver is system.driver. If all
// runs have the same value, the error is ErrNotVaried, and lists the keys that vary.
func By(runs []Run, key string) ([]Side, error) {
	k := keysOf(runs)
	values, vary := k.values, k.vary
	key = k.key(key)
	if len(vary[key]) < 2 {
		if len(k.names) == 0 {
			return nil, fmt.Errorf("%s %w in these runs, and no other key of their scenarios does", key, ErrNotVaried)
		}
		return nil, fmt.Errorf("%s %w in these runs (%s)", key, ErrNotVaried, strings.Join(k.names, ", "))
	}
	place := map[string]int{} // first position in the file of each value's scenarios
	for i, r := range runs {
		v := values[i].value(key)
		if p := place[v]; p == 0 || r.Result.Run.Place < p {
			place[v] = r.Result.Run.Place
		}
	}
	slices.SortStableFunc(vary[key], func(a, b string) int { return place[a] - place[b] })
	sides := make([]Side, len(vary[key]))
	for i, v := range vary[key] {
		sides[i].Given = key + "=" + v
	}
	for i, r := range runs {
		s := &sides[slices.Index(vary[key], values[i].value(key))]
		s.Runs = append(s.Runs, r)
	}
	return sides, nil
}

// scenarioFacts returns the scenario keys that say what was measured.
func scenarioFacts(r Run) facts {
	var f facts
	f.add("system.driver", r.Result.System.Driver)
	for _, x := range Settings(r.Scenario, oneLine) {
		if !immaterial(x.Name) {
			f.add(x.Name, x.Value)
		}
	}
	return f
}

// value is the value of a key, none if absent.
func (f facts) value(name string) string {
	for _, x := range f {
		if x.Name == name {
			return x.Value
		}
	}
	return "none"
}
