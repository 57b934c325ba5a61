package stats

// mserBatches is the minimum number of batches for MSER.
const mserBatches = 10

// MSER returns how many values at the beginning of a series belong to its warm-up: those without
// which the standard error of the mean of the rest, over means of batch values each, is smallest.
// MSER-5 is batch = 5. At most half of the series counts as warm-up: the error of a short rest is
// small by chance. ok is false, and cut 0, if the series has fewer than 10 batches, or if a whole
// half would be cut: then it does not become steady, or is too short to tell. Values after the last
// whole batch are ignored.
//
// Source: K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
// Simulation 69 (1997), for the rule; K. P. White, M. J. Cobb and S. C. Spratt, "A comparison of
// five steady-state truncation heuristics for simulation", Proc. Winter Simulation Conf. 2000, for
// batches of 5; K. Hoad, S. Robinson and R. Davies, "Automating warm-up length estimation", J.
// Oper. Res. Soc. 61 (2010), for refusing a half.
func MSER(x []float64, batch int) (cut int, ok bool) {
	k := len(x) / max(batch, 1)
	if k < mserBatches {
		return 0, false
	}
	means := make([]float64, k)
	for i := range means {
		for _, v := range x[i*batch : (i+1)*batch] {
			means[i] += v / float64(batch)
		}
	}
	// From the end: mean and sum of squares of the remainder, by Welford's update.
	var mean, squares float64
	best, least := 0, 0.0
	for d := k - 1; d >= 0; d-- {
		n := float64(k - d)
		delta := means[d] - mean
		mean += delta / n
		squares += delta * (means[d] - mean)
		rest := k - k/2 // batches at the end that are never considered alone
		if k-d < rest {
			continue
		}
		if e := squares / (n * n); k-d == rest || e <= least {
			best, least = d, e
		}
	}
	if best == k/2 {
		return 0, false
	}
	return best * batch, true
}
