package quantity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MostPercentiles is the maximum for Percentiles.
const MostPercentiles = 50

// Percentiles parses a list such as "50,99,99.9" or "p50, 99.9%", without duplicates.
func Percentiles(text string) ([]float64, error) {
	var out []float64
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(word), "%"), "p")
		p, err := strconv.ParseFloat(word, 64)
		_, decimals, _ := strings.Cut(word, ".")
		if err != nil || !(p > 0 && p < 100) || len(decimals) > 6 || strings.Trim(word, "0123456789.") != "" {
			return nil, fmt.Errorf("%q is not a percentile (percents above 0 and below 100 with at most six decimals, such as 50,99,99.9)", word)
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if len(out) > MostPercentiles {
		return nil, fmt.Errorf("%d are too many (at most %d)", len(out), MostPercentiles)
	}
	return out, nil
}
