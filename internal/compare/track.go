package compare

import "strings"

// Alike groups comparable runs: the same driver and scenario, and alike in everything that figures depend
// on. The groups are in the order of their first runs, and runs keep their order.
func Alike(runs []Run) [][]Run {
	place := map[string]int{}
	var out [][]Run
	for _, r := range Recorded(runs) {
		key := strings.Builder{}
		key.WriteString(r.Record.Scenario)
		for _, h := range r.Record.Facts {
			if f := h.Value(); f.Name == "driver" || meaningless(f.Name) {
				key.WriteString("\x00" + f.Name + "\x00" + f.Value)
			}
		}
		i, ok := place[key.String()]
		if !ok {
			i = len(out)
			place[key.String()], out = i, append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// Track reads the figures of comparable runs. Each figure has one side, with all runs in order. A figure
// that any run lacks is missing.
func Track(runs []Run) (figures []Figure, missing []Missing) {
	runs = Recorded(runs)
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
func Between(before, after Run) []Difference {
	return differences([][]Run{Recorded([]Run{before}), Recorded([]Run{after})})
}
