package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Bounds of ChangePoints.
const (
	LeastSegment    = 3   // values between two changes
	MostForChanges  = 500 // values
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
	x      []float64 // from their mean, so that sums lose little
	order  []int     // indices of the values, as permuted
	bounds []int     // starts of the segments, and n
	rows   []float64 // for each value, the sum of its distances to the others of its segment
	rank   []int     // for each value, its position in its segment in ascending order, from 1
	sums   sums
}

func newDivision(x []float64) *division {
	n := len(x)
	d := &division{x: make([]float64, n), order: make([]int, n), bounds: []int{0, n}, rows: make([]float64, n), rank: make([]int, n)}
	mean := 0.0
	for _, v := range x {
		mean += v / float64(n)
	}
	for i, v := range x {
		d.x[i], d.order[i] = v-mean, i
	}
	d.addRows()
	return d
}

// A sums is a set of values of one segment by rank, as a Fenwick tree: of the values up to a rank it gives the
// number and the sum, so that the distances from one value to all of a set take a logarithmic number of steps.
//
// Source: P. M. Fenwick, "A new data structure for cumulative frequency tables", Software: Practice and
// Experience 24 (1994).
type sums []struct{ n, sum float64 } // from 1

func (s sums) add(rank int, v float64) {
	for ; rank < len(s); rank += rank & -rank {
		s[rank].n++
		s[rank].sum += v
	}
}

func (s sums) upTo(rank int) (n, sum float64) {
	for ; rank > 0; rank -= rank & -rank {
		n += s[rank].n
		sum += s[rank].sum
	}
	return n, sum
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
// by its distances to both, so all splits together take one pass over the values.
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
	left, between, sum := 0.0, 0.0, 0.0 // sum: of the values in the left part
	d.sums = append(d.sums[:0], make(sums, size+1)...)
	for j, value := range d.order[from:to] { // the value moves from the right part to the left one
		x := d.x[value]
		below, sumBelow := d.sums.upTo(d.rank[value])
		toLeft := x*(2*below-float64(j)) + sum - 2*sumBelow
		d.sums.add(d.rank[value], x)
		sum += x
		left += toLeft
		between += d.rows[value] - 2*toLeft
		m, n := float64(j+1), float64(size-j-1)
		if j+1 < LeastSegment || size-j-1 < LeastSegment {
			continue
		}
		right := whole - left - between
		e := 2 / (m + n) * (between - left*n/(m-1) - right*m/(n-1))
		if at < 0 || e > energy {
			at, energy = from+j+1, e
		}
	}
	return at, energy
}

// addRows computes rows and rank, which permuting within segments does not change.
func (d *division) addRows() {
	for i := range d.bounds[1:] {
		from, to := d.bounds[i], d.bounds[i+1]
		sorted := make([]int, 0, to-from)
		whole := 0.0
		for value := from; value < to; value++ {
			sorted = append(sorted, value)
			whole += d.x[value]
		}
		slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(d.x[a], d.x[b]) })
		below := 0.0
		for n, value := range sorted {
			x := d.x[value]
			d.rank[value] = n + 1
			d.rows[value] = x*float64(2*n-len(sorted)) + whole - 2*below
			below += x
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
		if _, e := d.best(); e >= energy*(1-1e-9) {
			reached++
			if reached >= enough {
				return float64(reached) / float64(done)
			}
		}
	}
	return float64(reached+1) / float64(most+1)
}
