package capacity

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// scaled are the exact capacities of a law with numbers of 1, 2, 4, 8 and 16.
func scaled(c coefficients, width float64, random *rand.Rand) []Point {
	var points []Point
	for _, n := range []int{1, 2, 4, 8, 16} {
		truth := c.at(float64(n))
		if random != nil { // a search leaves an interval around the truth
			below := random.Float64()
			points = append(points, Point{n, truth / (1 + width*below), End{truth * (1 + width*(1-below)), Failed}})
			continue
		}
		points = append(points, Point{n, truth, End{math.Nextafter(truth, math.Inf(1)), Failed}})
	}
	return points
}

func TestFitRecoversItsOwnLaw(t *testing.T) {
	for name, truth := range map[string]coefficients{
		"contention and coherence": {1000, 0.05, 0.002},
		"contention alone":         {1000, 0.2, 0},
		"nothing shared":           {1000, 0, 0},
		"coherence alone":          {50_000, 0, 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			l := must.Get(Fit(scaled(truth, 0, nil)))(t)
			for _, x := range []struct{ got, want float64 }{{l.Lambda.At, truth.lambda}, {l.Sigma.At, truth.sigma}, {l.Kappa.At, truth.kappa}} {
				if math.Abs(x.got-x.want) > 1e-6*truth.lambda {
					t.Errorf("%+v; want %+v", l, truth)
				}
			}
			if at := l.At(16).At; math.Abs(at/truth.at(16)-1) > 1e-6 {
				t.Errorf("with 16: %v; want %v", at, truth.at(16))
			}
		})
	}
}

// With searches that leave a tenth open, the interval of the capacity with 32 contains the truth in at
// least 9 of 10 cases.
func TestLawIntervalCoversTruth(t *testing.T) {
	const cases = 100
	held := 0
	for seed := range uint64(cases) {
		random := rand.New(rand.NewPCG(seed, 9))
		truth := coefficients{1000, 0.3 * random.Float64(), 0.004 * random.Float64()}
		l := must.Get(Fit(scaled(truth, 0.1, random)))(t)
		if at := l.At(32); at.Lo <= truth.at(32) && truth.at(32) <= at.Hi {
			held++
		}
	}
	if held < cases*9/10 {
		t.Errorf("%d of %d", held, cases)
	}
}

func TestTargetExtrapolationIsLimited(t *testing.T) {
	law := func(c coefficients) *Law {
		return must.Get(Fit(scaled(c, 0, nil)))(t)
	}
	even := law(coefficients{1000, 0, 0})
	if least, middle, most, err := even.Needs(24_500); err != nil || least != 25 || middle != 25 || most != 25 {
		t.Errorf("%d, %d, %d, %v; want 25", least, middle, most, err)
	}
	if _, _, _, err := even.Needs(33_000); !errors.Is(err, ErrTooFar) {
		t.Errorf("%v; want ErrTooFar: 32 is twice what was measured", err)
	}
	if _, _, _, err := law(coefficients{1000, 0.1, 0.01}).Needs(30_000); !errors.Is(err, ErrNever) {
		t.Errorf("%v; want ErrNever: it peaks below", err)
	}
	if _, err := Fit(scaled(coefficients{1000, 0, 0}, 0, nil)[:3]); !errors.Is(err, ErrFewPoints) {
		t.Errorf("%v; want ErrFewPoints", err)
	}
}

// If a search ended at the generator's limit or at the highest requested rate, the capacity may be anything
// from there on.
func TestGeneratorLimitDoesNotBoundCapacity(t *testing.T) {
	linear := func(ends ...End) []Point {
		points := []Point{{1, 1000, End{1100, Failed}}, {2, 2000, End{2200, Failed}}, {4, 4000, End{4400, Failed}}, {8, 8000, End{8800, Failed}}}
		for i, e := range ends {
			points = append(points, Point{16 << i, 9000, e})
		}
		return points
	}
	for name, ends := range map[string][]End{"none": nil, "generator": {{9100, Limited}}, "too short": {{9100, Undecided}}, "most": {{}, {}}} {
		l, err := Fit(linear(ends...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if l.Kappa.At > 1e-9 || l.Sigma.At > 1e-9 || l.Kappa.Hi > 2e-3 || l.Most != 8 {
			t.Errorf("%s: %+v; want a linear law up to 8", name, l)
		}
		if _, middle, _, err := l.Needs(12_000); err != nil || middle < 11 || middle > 12 {
			t.Errorf("%s: 12,000/s takes %d, %v", name, middle, err)
		}
	}
	// A lower bound above the law of the other points does count.
	saturated := []Point{{1, 1000, End{1001, Failed}}, {2, 1500, End{1501, Failed}}, {3, 1750, End{1751, Failed}}, {4, 1900, End{1901, Failed}}}
	before := must.Get(Fit(saturated))(t)
	after, err := Fit(append(saturated, Point{8, 2 * before.At(8).At, End{}}))
	if err != nil || after.At(8).At <= 1.1*before.At(8).At {
		t.Errorf("a lower bound of %v with 8 leaves %v at %v, %v", 2*before.At(8).At, before.At(8).At, after.At(8).At, err)
	}
	points := linear()
	points[3].Fail.By = Limited
	if _, err := Fit(points); !errors.Is(err, ErrFewPoints) {
		t.Errorf("three capacities and a bound are fitted: %v", err)
	}
}
