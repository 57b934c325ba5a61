package stats

import "slices"

// Within reports whether an interval lies entirely between two bounds, which makes "no change
// beyond them" a finding rather than the absence of one. An interval with a nil end does not. With
// an interval of confidence 1 - 2 alpha it is the test of equivalence at level alpha; with a wider
// one it is stricter.
//
// Source: D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power
// approach", J. Pharmacokin. Biopharm. 15 (1987).
func Within(lo, hi *float64, low, high float64) bool {
	return lo != nil && hi != nil && *lo >= low && *hi <= high
}

// Holm returns the P values adjusted for multiple tests: rejecting those of at most alpha then
// rejects any true hypothesis with probability at most alpha, however the tests depend on each
// other. The order is kept.
//
// Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6
// (1979).
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
