package capacity

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Point is the result of a search at n producers, consumers, partitions, destinations or nodes. Rates are
// in messages per second.
type Point struct {
	N    int     // 1 or more
	Pass float64 // above 0
	Fail End     // above Pass
}

// known reports whether the system itself limited the search. Otherwise the capacity is censored: at least
// Pass.
func (p Point) known() bool { return p.Fail.System() > p.Pass }

// A Span is an estimate with its 95 % interval.
type Span struct {
	Lo float64 `json:"lo"`
	At float64 `json:"at"`
	Hi float64 `json:"hi"`
}

// A Law is the Universal Scalability Law fitted to points: the capacity with n is Lambda*n / (1 +
// Sigma*(n-1) + Kappa*n*(n-1)). Lambda is in messages per second.
//
// Source: N. J. Gunther, "Guerrilla Capacity Planning", Springer 2007, chapter 4.
type Law struct {
	Lambda Span `json:"lambda_per_s"`  // capacity of one, without sharing
	Sigma  Span `json:"sigma"`         // contention: the fraction that waits for shared resources
	Kappa  Span `json:"kappa"`         // coherence: the cost of agreement per pair
	Most   int  `json:"most_measured"` // highest number with a known capacity, not a lower bound

	draws []coefficients // for the intervals, at most mostDraws
}

// coefficients are the result of one fit.
type coefficients struct{ lambda, sigma, kappa float64 }

// at is the capacity with n.
func (c coefficients) at(n float64) float64 {
	return c.lambda * n / (1 + c.sigma*(n-1) + c.kappa*n*(n-1))
}

const (
	fewestPoints = 4 // three coefficients, and one degree of freedom for the fit
	mostDraws    = 2000
	beyond       = 2 // how far beyond the measured range a law is used
)

// Errors of a law, wrapped with the figures.
var (
	ErrFewPoints = errors.New("too few numbers with a known capacity for the Universal Scalability Law")
	ErrTooFar    = errors.New("further than twice what was measured")
	ErrNever     = errors.New("above what any number reaches")
)

// Fit fits the law to points of distinct numbers. At least four must have an upper end set by the system.
// For the others only Pass is known, as a lower bound: such a point counts only where the law would be
// below it.
//
// n over the capacity is linear in n-1 and n(n-1), so least squares of relative residuals needs no start
// value; negative coefficients are meaningless and set to 0. The interval comes from 2,000 fits with a
// fixed seed. Each draws capacities within what the searches left open, and adds the residual scatter of
// the fit.
func Fit(points []Point) (*Law, error) {
	law := &Law{}
	var known, bounds []Point
	for _, p := range points {
		if !p.known() {
			bounds = append(bounds, p)
			continue
		}
		known = append(known, p)
		law.Most = max(law.Most, p.N)
	}
	if len(known) < fewestPoints {
		return nil, fmt.Errorf("%w: %d of %d", ErrFewPoints, len(known), fewestPoints)
	}
	middle := make([]float64, len(known))
	for i, p := range known {
		middle[i] = math.Sqrt(p.Pass * p.Fail.Rate)
	}
	best := censored(known, middle, bounds)
	var squares float64
	for i, p := range known {
		r := math.Log(middle[i] / best.at(float64(p.N)))
		squares += r * r
	}
	scatter := math.Sqrt(squares / float64(len(known)-fewestPoints+1))
	random := rand.New(rand.NewPCG(uint64(len(known)), 0x75736c)) //nolint:gosec // G404: an interval, not a secret
	taken := make([]float64, len(known))
	for range mostDraws {
		for i, p := range known {
			taken[i] = p.Pass * math.Pow(p.Fail.Rate/p.Pass, random.Float64()) * math.Exp(scatter*random.NormFloat64())
		}
		law.draws = append(law.draws, censored(known, taken, bounds))
	}
	law.Lambda = law.span(best.lambda, func(c coefficients) float64 { return c.lambda })
	law.Sigma = law.span(best.sigma, func(c coefficients) float64 { return c.sigma })
	law.Kappa = law.span(best.kappa, func(c coefficients) float64 { return c.kappa })
	return law, nil
}

// span is an estimate with the middle 95 % of the draws.
func (l *Law) span(at float64, of func(coefficients) float64) Span {
	vs := make([]float64, len(l.draws))
	for i, c := range l.draws {
		vs[i] = of(c)
	}
	slices.Sort(vs)
	return Span{Lo: min(at, vs[len(vs)*25/1000]), At: at, Hi: max(at, vs[len(vs)*975/1000-1])}
}

// At is the capacity with n, in messages per second.
func (l *Law) At(n int) Span {
	of := func(c coefficients) float64 { return c.at(float64(n)) }
	return l.span(of(coefficients{l.Lambda.At, l.Sigma.At, l.Kappa.At}), of)
}

// Needs returns the least numbers for which the capacity reaches perSecond, at the lower end, the estimate
// and the upper end of the interval. The error is ErrNever if no number suffices, and ErrTooFar if the
// interval extends beyond twice the measured range.
func (l *Law) Needs(perSecond float64) (least, middle, most int, err error) {
	enough := func(of func(Span) float64) (int, bool) {
		for n := 1; n <= beyond*l.Most; n++ {
			if of(l.At(n)) >= perSecond {
				return n, true
			}
		}
		return 0, false
	}
	var found [3]bool
	least, found[0] = enough(func(s Span) float64 { return s.Hi })
	middle, found[1] = enough(func(s Span) float64 { return s.At })
	most, found[2] = enough(func(s Span) float64 { return s.Lo })
	switch {
	case found[0] && found[1] && found[2]:
		return least, middle, most, nil
	case !found[0] && l.peak() <= float64(beyond*l.Most):
		return 0, 0, 0, fmt.Errorf("%w: the capacity is highest with %.0f", ErrNever, math.Max(1, math.Floor(l.peak())))
	}
	return 0, 0, 0, fmt.Errorf("%w: %d", ErrTooFar, beyond*l.Most)
}

// peak is the number with the highest capacity, infinite if it always grows.
func (l *Law) peak() float64 {
	if l.Kappa.At == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(math.Max(0, 1-l.Sigma.At) / l.Kappa.At)
}

// censored fits points with these capacities, and adds each lower bound that the law would otherwise fall
// below.
func censored(known []Point, capacities []float64, bounds []Point) coefficients {
	points, capacities, bounds := slices.Clone(known), slices.Clone(capacities), slices.Clone(bounds)
	for {
		c := fit(points, capacities)
		i := slices.IndexFunc(bounds, func(p Point) bool { return c.at(float64(p.N)) < p.Pass })
		if i < 0 {
			return c
		}
		points, capacities = append(points, bounds[i]), append(capacities, bounds[i].Pass)
		bounds = slices.Delete(bounds, i, i+1)
	}
}

// fit minimizes the squared relative residuals of n over capacity, which is (1 + sigma*(n-1) +
// kappa*n*(n-1))/lambda, over non-negative coefficients: it takes the best of four cases.
func fit(points []Point, capacities []float64) coefficients {
	best, least := coefficients{}, math.Inf(1)
	for _, with := range [][]bool{{true, true, true}, {true, true, false}, {true, false, true}, {true, false, false}} {
		var m [3][4]float64 // normal equations
		for i, p := range points {
			n := float64(p.N)
			y := n / capacities[i]
			x := [3]float64{1 / y, (n - 1) / y, n * (n - 1) / y}
			for r := range x {
				for c := range x {
					m[r][c] += x[r] * x[c]
				}
				m[r][3] += x[r]
			}
		}
		v, ok := solve(m, with)
		if !ok || v[0] <= 0 || v[1] < 0 || v[2] < 0 {
			continue
		}
		var squares float64
		for i, p := range points {
			n := float64(p.N)
			r := (v[0]+v[1]*(n-1)+v[2]*n*(n-1))*capacities[i]/n - 1
			squares += r * r
		}
		if squares < least {
			best, least = coefficients{1 / v[0], v[1] / v[0], v[2] / v[0]}, squares
		}
	}
	return best
}

// solve solves the normal equations for the unknowns in with; the others are 0. ok is false if there is no
// unique solution.
func solve(m [3][4]float64, with []bool) (v [3]float64, ok bool) {
	var rows []int
	for i, w := range with {
		if w {
			rows = append(rows, i)
		}
	}
	for k, pivot := range rows {
		for _, r := range rows[k+1:] {
			if math.Abs(m[r][pivot]) > math.Abs(m[pivot][pivot]) {
				m[r], m[pivot] = m[pivot], m[r]
			}
		}
		if math.Abs(m[pivot][pivot]) < 1e-12 {
			return v, false
		}
		for _, r := range rows {
			if r == pivot {
				continue
			}
			f := m[r][pivot] / m[pivot][pivot]
			for c := range m[r] {
				m[r][c] -= f * m[pivot][c]
			}
		}
	}
	for _, r := range rows {
		v[r] = m[r][3] / m[r][r]
	}
	return v, true
}
