package compare

import (
	"slices"
	"strings"
)

// Alike groups comparable runs: the same driver and scenario, and alike in everything that figures depend
// on. The groups are in the order of their first runs, and runs keep their order.
func Alike(runs []Run) [][]Run {
	var keys []string
	parts := map[string][]Run{}
	for _, r := range runs {
		key := strings.Builder{}
		key.WriteString(r.Result.Run.Scenario())
		for _, f := range factsOf(r).Facts {
			if f.Name == "driver" || meaningless(f.Name) {
				key.WriteString("\x00" + f.Name + "\x00" + f.Value)
			}
		}
		if k := key.String(); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		parts[key.String()] = append(parts[key.String()], r)
	}
	var out [][]Run
	for _, k := range keys {
		out = append(out, parts[k])
	}
	return out
}

// Track reads the figures of comparable runs. Each figure has one side, with all runs in order. A figure
// that any run lacks is missing.
func Track(runs []Run) (figures []Figure, missing []Missing) {
	for _, x := range readings(runs) {
		f, without := x.read([][]Run{runs})
		if without != nil {
			missing = append(missing, *without)
			continue
		}
		figures = append(figures, *f)
	}
	return figures, missing
}

// Between returns the differences of two runs, values of before first.
func Between(before, after Run) []Difference { return differences([][]Run{{before}, {after}}) }
