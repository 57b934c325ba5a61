package compare

import (
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/stats"
)

// KeyName groups runs by the names of their scenarios.
const KeyName = "name"

// keyed has the values of keys in runs, and which keys vary.
type keyed struct {
	values []facts // per run
	names  []string
	vary   map[string][]string // the values of each key, in the order of the runs
}

func keysOf(runs []Run) keyed {
	k := keyed{values: make([]facts, len(runs)), vary: map[string][]string{}}
	for i, r := range runs {
		k.values[i] = scenarioFacts(r)
		for _, f := range k.values[i] {
			if !slices.Contains(k.names, f.Name) {
				k.names = append(k.names, f.Name)
			}
		}
	}
	for i, r := range runs { // last, since a key is more informative
		k.values[i].add(KeyName, scenarioName(r))
	}
	k.names = append(k.names, KeyName)
	for _, name := range k.names {
		for i := range runs {
			k.vary[name] = with(k.vary[name], k.values[i].value(name))
		}
	}
	k.names = slices.DeleteFunc(k.names, func(n string) bool { return len(k.vary[n]) < 2 })
	return k
}

// scenarioName is the name of a run's scenario, or of the repeated one.
func scenarioName(r Run) string {
	if s := r.Result.Run.Series; s != "" {
		return s
	}
	return r.Result.Run.Name
}

// key resolves a key: the last word of a varying one is enough if it is unique.
func (k keyed) key(given string) string {
	if len(k.vary[given]) > 1 {
		return given
	}
	meant := ""
	for _, n := range k.names {
		if !strings.HasSuffix(n, "."+given) {
			continue
		}
		if meant != "" {
			return given
		}
		meant = n
	}
	if meant == "" {
		return given
	}
	return meant
}

// Varied returns the keys that vary in runs, by which By can group them.
func Varied(runs []Run) []string { return keysOf(runs).names }

// Apart returns a key that separates the scenarios of runs, if the sides can be compared: each has enough
// usable runs, and the same was measured. It is "" if there is none.
func Apart(runs []Run) string {
	k := keysOf(runs)
	scenarios := k.vary[KeyName]
	if len(scenarios) < 2 || len(scenarios) > mostSides {
		return ""
	}
	sides, err := By(Recorded(runs), KeyName)
	if err != nil {
		return ""
	}
	used := make([][]Run, len(sides))
	for i, s := range sides {
		if _, used[i] = usable(letter(i), s); len(used[i]) < stats.MoreRuns(0, 0, usualAlpha, 1) {
			return ""
		}
	}
	if refused(differences(used)) != nil {
		return ""
	}
	for _, n := range k.names {
		if len(k.vary[n]) == len(scenarios) && k.parts(n) {
			return n
		}
	}
	return ""
}

// Usual returns the options of a comparison that a user has not set.
func Usual() Options { return Options{Alpha: usualAlpha, Band: usualBand} }

// usualBand is the default relative change that is no change.
const usualBand = 0.05

// usualAlpha is the default probability of a false claim.
const usualAlpha = 0.05

// parts reports whether all runs of a scenario have the same value of a key.
func (k keyed) parts(name string) bool {
	of := map[string]string{}
	for _, v := range k.values {
		scenario, value := v.value(KeyName), v.value(name)
		if was, ok := of[scenario]; ok && was != value {
			return false
		}
		of[scenario] = value
	}
	return true
}
