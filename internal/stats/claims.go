package stats

import "slices"

// Within reports whether an interval lies wholly between two bounds, which makes
// "no change beyond them" a finding and not the lack of one. An end that is nil
// lies nowhere. With an interval of confidence 1 - 2 alpha it is the test of
// equivalence at level alpha; with a wider one it is stricter.
//
// Source: D. J. Schuirmann, "A comparison of the two one-sided tests procedure
// and the power approach", J. Pharmacokin. Biopharm. 15 (1987).
func Within(lo, hi *float64, low, high float64) bool {
	return lo != nil && hi != nil && *lo >= low && *hi <= high
}

// Holm returns the P values adjusted for there being as many tests: rejecting
// what is at most alpha then rejects any true hypothesis with probability alpha
// at most, however the tests depend on each other. The order is kept.
//
// Source: S. Holm, "A simple sequentially rejective multiple test procedure",
// Scand. J. Statist. 6 (1979).
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(p))
	reached := 0.0
	for n, i := range order {
		reached = max(reached, min(1, float64(len(p)-n)*p[i]))
		out[i] = reached
	}
	return out
}
