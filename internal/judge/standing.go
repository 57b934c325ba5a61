package judge

import (
	"strings"

	"github.com/weirmq/weir/result"
)

// standing says which percentiles are not touched by what spoils others, as the
// end of a sentence; "" where none is. Both are in the order of their percentiles.
func standing(stand, spoilt []result.Percentile) string {
	switch {
	case len(stand) == 0 || len(spoilt) == 0:
		return ""
	case stand[len(stand)-1].P < spoilt[0].P:
		return "; the percentiles below it hold"
	}
	names := make([]string, len(stand))
	for i := range stand {
		names[i] = name(stand[i].P)
	}
	return "; " + strings.Join(names, ", ") + " hold"
}

// below returns the percentiles of d that are figures, below p.
func below(d *result.Dist, p float64) []result.Percentile {
	var out []result.Percentile
	for _, x := range d.Percentiles {
		if x.P < p && x.Supported {
			out = append(out, x)
		}
	}
	return out
}
