package stats

import (
	"math"
	"slices"
)

// Bounds of FindTrend.
const (
	fewestForTrend = 8    // values; S is approximately normal from there on (Mann 1945, Kendall 1975)
	mostForTrend   = 2048 // values; they yield two million slopes
)

// A Trend is the result of FindTrend.
type Trend struct {
	Slope     Shift   // per value of the series
	S         int64   // of the values tested
	Z, P      float64 // with the variance inflated
	Lag1      float64 // of the residuals
	Inflation float64 // of the variance, because neighbours are correlated; 1 if they are not
	Step      int     // values of the series averaged into each one tested; 0 if there are too few for a test, and P is 1
}

// FindTrend tests whether a series goes up or down, against having no trend, and estimates by how
// much. It needs 8 values. In a series of more than 2048, neighbours are averaged until there are
// no more.
//
// The test assumes independent values, and the seconds of a run are not: a queue that is long now
// is long a second later, which the test would take for a trend. So it computes the lag-1
// autocorrelation of the residuals, and if that is significantly above 0 (one-sided, 5 %), inflates
// the variance of S, and with it the slope's interval, by 1 + 2 sum (1 - k/n) r^k, as for a
// first-order autoregressive series. r is first corrected for its small-sample bias, (n r + 2)/(n -
// 4), and limited to 0.98.
//
// Source: S. Yue and C. Y. Wang, "The Mann-Kendall test modified by effective sample size to detect
// trend in serially correlated hydrological series", Water Resources Management 18 (2004), after G.
// V. Bayley and J. M. Hammersley, "The effective number of independent observations in an
// autocorrelated time series", J. Roy. Statist. Soc. Suppl. 8 (1946); the bias: K. H. Hamed,
// "Enhancing the effectiveness of prewhitening in trend analysis of hydrologic data", J. Hydrology
// 368 (2009).
func FindTrend(x []float64, conf float64) Trend {
	if len(x) < fewestForTrend {
		return Trend{P: 1, Inflation: 1, Slope: Shift{Estimate: TheilSen(x, conf).Estimate}}
	}
	step := (len(x) + mostForTrend - 1) / mostForTrend
	x = averaged(x, step)
	n := float64(len(x))
	t := Trend{Step: step, Inflation: 1}
	slopes := allSlopes(x)
	slope := middle(slopes)
	rest := make([]float64, len(x))
	for i, v := range x {
		rest[i] = v - slope*float64(i)
	}
	t.Lag1 = Lag1(rest)
	if t.Lag1 > normalQuantile(0.05)/math.Sqrt(n) {
		r := min((n*t.Lag1+2)/(n-4), 0.98)
		power := 1.0
		for k := 1.0; k < n; k++ {
			power *= r
			t.Inflation += 2 * (1 - k/n) * power
		}
	}
	s, variance := kendall(x)
	variance *= t.Inflation
	t.S = s
	t.Z, t.P = kendallTest(s, variance)
	t.Slope = slopeInterval(slopes, variance, conf)
	for _, v := range []*float64{&t.Slope.Estimate, t.Slope.Lo, t.Slope.Hi} {
		if v != nil {
			*v /= float64(step)
		}
	}
	return t
}

// averaged returns the means of step neighbours each, and leaves out the rest at the end.
func averaged(x []float64, step int) []float64 {
	if step == 1 {
		return x
	}
	out := make([]float64, len(x)/step)
	for i := range out {
		for _, v := range x[i*step : (i+1)*step] {
			out[i] += v / float64(step)
		}
	}
	return out
}

// MannKendall tests whether values in their order go up or down, against every order being equally
// likely: S is the number of pairs that go up less those that go down, z its normal score with a
// continuity correction and the variance corrected for ties, p two-sided. Values must be
// independent; see FindTrend. It takes time quadratic in the number of values.
//
// Source: H. B. Mann, "Nonparametric tests against trend", Econometrica 13 (1945); M. G. Kendall,
// Rank Correlation Methods (1975); R. O. Gilbert, Statistical Methods for Environmental Pollution
// Monitoring (1987), 16.4.
func MannKendall(x []float64) (s int64, z, p float64) {
	s, variance := kendall(x)
	z, p = kendallTest(s, variance)
	return s, z, p
}

func kendall(x []float64) (s int64, variance float64) {
	for i, v := range x {
		for _, w := range x[i+1:] {
			switch {
			case w > v:
				s++
			case w < v:
				s--
			}
		}
	}
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	of := func(n float64) float64 { return n * (n - 1) * (2*n + 5) }
	variance = of(float64(len(x)))
	for _, t := range tied(sorted) {
		variance -= of(float64(t))
	}
	return s, variance / 18
}

func kendallTest(s int64, variance float64) (z, p float64) {
	if s == 0 || variance <= 0 {
		return 0, 1
	}
	z = math.Copysign(math.Abs(float64(s))-1, float64(s)) / math.Sqrt(variance)
	return z, twoSided(z)
}

// TheilSen estimates the slope of values one apart: the median of the slopes of all pairs. The
// interval's ends are the slopes of the ranks given by Kendall's S; nil if there are too few
// values. NaN for fewer than two values.
//
// Source: P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", J. Amer.
// Statist. Assoc. 63 (1968); Gilbert, as above, 16.5.
func TheilSen(x []float64, conf float64) Shift {
	_, variance := kendall(x)
	return slopeInterval(allSlopes(x), variance, conf)
}

func allSlopes(x []float64) []float64 {
	slopes := make([]float64, 0, len(x)*max(len(x)-1, 0)/2)
	for i, v := range x {
		for j, w := range x[i+1:] {
			slopes = append(slopes, (w-v)/float64(j+1))
		}
	}
	slices.Sort(slopes)
	return slopes
}

func slopeInterval(slopes []float64, variance, conf float64) Shift {
	out := Shift{Estimate: middle(slopes)}
	n := len(slopes)
	c := normalQuantile((1-conf)/2) * math.Sqrt(max(variance, 0))
	rank := int(math.Round((float64(n) - c) / 2))
	if rank < 1 || 2*rank > n+1 {
		return out
	}
	lo, hi := slopes[rank-1], slopes[n-rank]
	out.Lo, out.Hi = &lo, &hi
	return out
}

// Lag1 returns the autocorrelation of neighbours, -1 to 1; 0 if values do not vary. For n
// independent values it is approximately normal with mean -1/n and standard deviation 1/sqrt(n).
//
// Source: G. E. P. Box and G. M. Jenkins, Time Series Analysis, section 2.1.
func Lag1(x []float64) float64 {
	var mean float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	var products, squares float64
	for i, v := range x {
		squares += (v - mean) * (v - mean)
		if i > 0 {
			products += (v - mean) * (x[i-1] - mean)
		}
	}
	if squares == 0 {
		return 0
	}
	return products / squares
}
