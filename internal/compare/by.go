package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotVaried is wrapped by By when the runs do not differ in a key.
var ErrNotVaried = errors.New("does not vary")

// By parts runs by a key of their scenarios, such as system.options.storage, or by name: a
// side for each value, in the order in which the file of the runs has them, or else in that
// of the runs. The side of a run without the key is that of none. The last word of a key
// will do where only one that varies ends so: driver is system.driver.
// Runs that all have one value are ErrNotVaried, and the error lists the keys that vary.
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
	place := map[string]int{} // of each value's scenario that comes first in the file
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

// scenarioFacts are the keys of a run's scenario that say what was measured.
func scenarioFacts(r Run) facts {
	var f facts
	f.add("system.driver", r.Result.System.Driver)
	for _, x := range Settings(r.Scenario, oneLine) {
		if !untold(x.Name) {
			f.add(x.Name, x.Value)
		}
	}
	return f
}

// value is that of a key, none where it is absent.
func (f facts) value(name string) string {
	for _, x := range f {
		if x.Name == name {
			return x.Value
		}
	}
	return "none"
}
