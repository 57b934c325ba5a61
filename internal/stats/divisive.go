package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Bounds of ChangePoints.
const (
	LeastSegment    = 3   // values between two changes
	MostForChanges  = 500 // values; their distances take 2 MiB
	mostPermuted    = 20000
	permutedPerPart = 20 // permutations per 1/alpha: the smallest p lies that far below alpha
)

// A ChangePoint is where a series of values changes.
type ChangePoint struct {
	At int     // the first value after the change
	P  float64 // probability of such a change by chance, given those found before it
}

// ChangePoints finds where the distribution of a series changes: e-divisive. Each step splits one
// segment in two, where the energy distance between its parts is largest over all segments. The
// split stays if permuting the values within their segments gives one as large with probability at
// most alpha; the first split that fails ends the search. So a series without a change gives one
// with probability alpha. The changes are in the order of the series. A segment has at least
// LeastSegment values, and a series of more than MostForChanges is rejected with nil.
//
// The permutations are drawn from seed, so that the same values give the same answer. They stop
// early if p can no longer come down to alpha (J. Besag and P. Clifford, "Sequential Monte Carlo
// p-values", Biometrika 78, 1991). Values must be finite.
//
// Source: D. S. Matteson and N. A. James, "A nonparametric approach for multiple change point
// analysis of multivariate data", J. Amer. Statist. Assoc. 109 (2014), with the distance |x - y|
// itself.
func ChangePoints(x []float64, alpha float64, seed uint64) []ChangePoint {
	if len(x) > MostForChanges || len(x) < 2*LeastSegment || alpha <= 0 {
		return nil
	}
	d := newDivision(x)
	rng := rand.New(rand.NewPCG(seed, uint64(len(x)))) //nolint:gosec // G404: reproducible on purpose
	var found []ChangePoint
	for {
		at, energy := d.best()
		if at < 0 || energy <= 0 {
			break
		}
		p := d.chance(energy, alpha, rng)
		if p > alpha {
			break
		}
		found = append(found, ChangePoint{At: at, P: p})
		d.split(at)
	}
	slices.SortFunc(found, func(a, b ChangePoint) int { return a.At - b.At })
	return found
}

// A division is a series cut into segments.
type division struct {
	n        int
	distance []float64 // n x n
	order    []int     // indices of the values, as permuted
	bounds   []int     // starts of the segments, and n
	rows     []float64 // for each value, the sum of its distances to the others of its segment
}

func newDivision(x []float64) *division {
	n := len(x)
	d := &division{n: n, distance: make([]float64, n*n), order: make([]int, n), bounds: []int{0, n}, rows: make([]float64, n)}
	for i := range x {
		d.order[i] = i
		for j := range i {
			v := math.Abs(x[i] - x[j])
			d.distance[i*n+j], d.distance[j*n+i] = v, v
		}
	}
	d.addRows()
	return d
}

// best returns the split with the largest energy over all segments; at is -1 if no segment is long
// enough.
func (d *division) best() (at int, energy float64) {
	at = -1
	for i := range d.bounds[1:] {
		if where, e := d.splitOf(d.bounds[i], d.bounds[i+1]); where >= 0 && (at < 0 || e > energy) {
			at, energy = where, e
		}
	}
	return at, energy
}

// splitOf returns the best split of the values in [from, to). Its energy is
//
//	m n / (m + n) (2 between - within left - within right)
//
// of the mean distances. Moving a value from the right part to the left one changes the three sums
// by its distances to both, so all splits together cost one pass over half of the pairs.
func (d *division) splitOf(from, to int) (at int, energy float64) {
	size := to - from
	at = -1
	if size < 2*LeastSegment {
		return at, 0
	}
	whole := 0.0 // sum of the distances of all pairs
	for _, value := range d.order[from:to] {
		whole += d.rows[value]
	}
	whole /= 2
	left, between := 0.0, 0.0
	for j, value := range d.order[from:to] { // the value moves from the right part to the left one
		row := d.distance[value*d.n : (value+1)*d.n]
		toLeft := 0.0
		for _, other := range d.order[from : from+j] {
			toLeft += row[other]
		}
		left += toLeft
		between += d.rows[value] - 2*toLeft
		m, n := float64(j+1), float64(size-j-1)
		if j+1 < LeastSegment || size-j-1 < LeastSegment {
			continue
		}
		right := whole - left - between
		e := m * n / (m + n) * (2*between/(m*n) - 2*left/(m*(m-1)) - 2*right/(n*(n-1)))
		if at < 0 || e > energy {
			at, energy = from+j+1, e
		}
	}
	return at, energy
}

// addRows computes rows, which permuting within segments does not change.
func (d *division) addRows() {
	for i := range d.bounds[1:] {
		from, to := d.bounds[i], d.bounds[i+1]
		for value := from; value < to; value++ {
			d.rows[value] = 0
			for other := from; other < to; other++ {
				d.rows[value] += d.distance[value*d.n+other]
			}
		}
	}
}

// split adds a boundary at a value. The order must be that of the series.
func (d *division) split(at int) {
	d.bounds = append(d.bounds, at)
	slices.Sort(d.bounds)
	d.addRows()
}

// chance returns how often a series with the same segments and no further change has a split of at
// least the given energy.
func (d *division) chance(energy, alpha float64, rng *rand.Rand) float64 {
	most := min(mostPermuted, int(math.Ceil(permutedPerPart/alpha))) - 1
	enough := int(alpha*float64(most+1)) + 1 // if reached more often than that, p is above alpha
	defer func() {
		for i := range d.order {
			d.order[i] = i
		}
	}()
	reached := 0
	for done := 1; done <= most; done++ {
		for i := range d.bounds[1:] {
			part := d.order[d.bounds[i]:d.bounds[i+1]]
			rng.Shuffle(len(part), func(a, b int) { part[a], part[b] = part[b], part[a] })
		}
		if _, e := d.best(); e >= energy*(1-1e-12) {
			reached++
			if reached >= enough {
				return float64(reached) / float64(done)
			}
		}
	}
	return float64(reached+1) / float64(most+1)
}
