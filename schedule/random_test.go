package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"testing"
	"time"
)

func TestLogarithmsAndExponentials(t *testing.T) {
	t.Parallel()
	const tolerance = 4e-16 // error of math.Log itself and of the test
	r := stream(3)
	for n := range uint64(100_000) {
		u := r.at(n) >> (n % 64)
		if u == 0 {
			continue
		}
		want := -math.Log(float64(u) / 0x1p64)
		if got := float64(minusLn(u)) * 0x1p-58; math.Abs(got-want) > tolerance*max(1, want) {
			t.Fatalf("minusLn(%d) = %v; want %v", u, got, want)
		}
		//nolint:unconvert // says that it is the float of u whose bits are moved
		x := math.Float64frombits(math.Float64bits(float64(u)) - uint64(n%300)<<52)
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > (4+8*math.Abs(want))*0x1p-54 {
			t.Fatalf("ln(%v) = %v; want %v", x, got, want)
		}
		y := float64(u) * 0x1p-55
		if got, want := expMinus(y), math.Exp(-y); math.Abs(got-want) > 1e-15*want && want > 1e-300 {
			t.Fatalf("expMinus(%v) = %v; want %v", y, got, want)
		}
	}
	for u, want := range map[uint64]uint64{1 << 63: ln2, 1: 64 * ln2} {
		if got := minusLn(u); got != want {
			t.Errorf("minusLn(%#x) = %d; want %d", u, got, want)
		}
	}
	for u := ^uint64(0); u > ^uint64(0)-10_000; u-- { // nearly 0, and never below it
		if got, want := minusLn(u), -u>>6; got > want+4 {
			t.Fatalf("minusLn(%#x) = %d; want %d and at most 4 more", u, got, want)
		}
	}
}

// Compares the table with logarithms computed by math/big, by the series ln(c) = sum of ((c-1)/c)^n
// / n.
func TestTheTableOfLogarithmsIsExact(t *testing.T) {
	t.Parallel()
	for k := range int64(256) {
		const bits = 120
		y := new(big.Int).Lsh(big.NewInt(k), bits)
		y.Div(y, big.NewInt(256+k))
		sum, power := new(big.Int), new(big.Int).Set(y)
		for n := int64(1); power.Sign() > 0; n++ {
			sum.Add(sum, new(big.Int).Div(power, big.NewInt(n)))
			power.Rsh(power.Mul(power, y), bits)
		}
		want := sum.Rsh(sum, bits-58).Uint64()
		if got := logTable.ln[k]; got > want || want-got > 1 {
			t.Errorf("ln(1+%d/256) = %d; want %d or one less", k, got, want)
		}
	}
}

// moments returns the mean and the coefficient of variation of gaps.
func moments(gaps func(yield func(float64) bool)) (n, mean, cv float64) {
	var sum, squares float64
	for g := range gaps {
		n++
		sum += g
		squares += g * g
	}
	mean = sum / n
	return n, mean, math.Sqrt(squares/n-mean*mean) / mean
}

// between yields the gaps between the messages of a part, in units of the mean
// gap of the whole.
func between(s *Schedule, p Part, rate Rate) func(yield func(float64) bool) {
	return func(yield func(float64) bool) {
		last := int64(0)
		for _, due := range s.Due(p) {
			if !yield(float64(due-last) * 1e-9 * rate.PerSecond()) {
				return
			}
			last = due
		}
	}
}

func TestGapDistributionMoments(t *testing.T) {
	t.Parallel()
	const n = 200_000
	for _, a := range arrivals[1:] {
		want := a.CV
		if a.Kind == Poisson {
			want = 1
		}
		rate := PerSecond(1000)
		spec := plain(a, step(rate, 0))
		spec.Messages = n
		_, mean, cv := moments(between(mustNew(t, spec), Part{0, 1}, rate))
		// Five standard errors; that of the coefficient of variation of gamma
		// gaps is about cv*sqrt((1+3cv²)/2n).
		if off := math.Abs(mean - 1); off > 5*want/math.Sqrt(n) {
			t.Errorf("%s: mean gap = %.4f; want 1", name(a), mean)
		}
		if off := math.Abs(cv - want); off > 5*want*math.Sqrt((1+3*want*want)/(2*n)) {
			t.Errorf("%s: coefficient of variation = %.4f; want %.2f", name(a), cv, want)
		}
	}
}

// Compares the share of gaps below x with the distribution function where it has a closed form:
// exponential, and gamma of shape 1 and 4 (cv 0.5).
func TestGapDistributionShape(t *testing.T) {
	t.Parallel()
	const n = 100_000
	exponential := func(x float64) float64 { return 1 - math.Exp(-x) }
	erlang4 := func(x float64) float64 {
		x *= 4
		return 1 - math.Exp(-x)*(1+x+x*x/2+x*x*x/6)
	}
	for _, tc := range []struct {
		a   Arrival
		cdf func(float64) float64
	}{{Arrival{Kind: Poisson}, exponential}, {Arrival{Kind: Gamma, CV: 1}, exponential}, {Arrival{Kind: Gamma, CV: 0.5}, erlang4}} {
		rate := PerSecond(1000)
		spec := plain(tc.a, step(rate, 0))
		spec.Messages = n
		s := mustNew(t, spec)
		for _, x := range []float64{0.01, 0.1, 0.5, 1, 2, 3, 5} {
			below := 0.0
			for g := range between(s, Part{0, 1}, rate) {
				if g < x {
					below++
				}
			}
			want := tc.cdf(x)
			if off := math.Abs(below/n - want); off > 5*math.Sqrt(want*(1-want)/n)+1e-5 {
				t.Errorf("%s: share of gaps below %v = %.5f; want %.5f", name(tc.a), x, below/n, want)
			}
		}
	}
}

func TestSplitPoissonProcessStaysPoisson(t *testing.T) {
	t.Parallel()
	rate := PerSecond(100_000)
	spec := plain(Arrival{Kind: Poisson}, step(rate, 0))
	spec.Producers, spec.Messages = 48, 300_000
	s := mustNew(t, spec)
	for _, k := range []int{0, 7, 15} {
		n, mean, cv := moments(between(s, Part{k, 16}, rate))
		if math.Abs(mean-16) > 5*16/math.Sqrt(n) || math.Abs(cv-1) > 5/math.Sqrt(n/2) {
			t.Errorf("part %d of 16: %v gaps of mean %.3f and coefficient of variation %.4f; want 16 and 1", k, n, mean, cv)
		}
	}
}

func TestRandomRampHasExpectedCount(t *testing.T) {
	t.Parallel()
	s := mustNew(t, plain(Arrival{Kind: Poisson}, Phase{From: PerSecond(1000), To: PerSecond(99_000), For: 4 * time.Second}))
	var quarters [4]float64
	for _, due := range s.Due(Part{0, 1}) {
		quarters[due/int64(time.Second)]++
	}
	for q, want := range []float64{13_250, 37_750, 62_250, 86_750} {
		if math.Abs(quarters[q]-want) > 5*math.Sqrt(want) {
			t.Errorf("messages in second %d = %v; want about %v", q, quarters[q], want)
		}
	}
}

func TestARandomProfileMayRest(t *testing.T) {
	t.Parallel()
	for _, a := range []Arrival{{Kind: Poisson}, {Kind: Gamma, CV: 3}} {
		s := mustNew(t, plain(a, step(0, time.Second), Phase{To: PerSecond(20_000), For: time.Second}, step(0, time.Second), Phase{From: PerSecond(20_000), For: time.Second}))
		var seconds [4]float64
		for _, due := range s.Due(Part{0, 1}) {
			seconds[due/int64(time.Second)]++
		}
		for q, want := range []float64{0, 10_000, 0, 10_000} {
			if math.Abs(seconds[q]-want) > 5*max(1, a.CV)*math.Sqrt(want) {
				t.Errorf("%v: %v messages in second %d; want about %v", a.Kind, seconds[q], q, want)
			}
		}
		if n := s.Remaining(Part{0, 1}, 0, 0, int64(3*time.Second)); n != 10_000 {
			t.Errorf("%v: %d remain before the end of the second pause; want the rate's 10,000", a.Kind, n)
		}
	}
}

// A run must be the same on every architecture and in every later version: the
// digests pin all that is drawn. They were the same on amd64 and on 386.
func TestGoldenDigests(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"constant 0":       "6a1e736daac57bd9",
		"poisson 0":        "cb114998aa254606",
		"gamma 0.1":        "56d9978dd18eb165",
		"gamma 0.5":        "6872ddfbebb5b1c5",
		"gamma 1":          "40bf3172f812be07",
		"gamma 3":          "be49370b05c8084f",
		"gamma 10":         "2a30d1556812dfcf",
		"no keys":          "399bd57ac9092a67",
		"uniform keys":     "eb78350245147d19",
		"zipf keys":        "c862bcf12f6f7c35",
		"round robin keys": "34b6eee313e4740e",
	}
	check := func(what, got string) {
		t.Helper()
		if want[what] != got {
			t.Errorf("digest of %s = %s; want %s", what, got, want[what])
		}
	}
	for _, a := range arrivals {
		h, b := sha256.New(), [16]byte{}
		for i, due := range mustNew(t, profile(a, 25)).Due(Part{0, 1}) {
			if i == 50_000 {
				break
			}
			binary.LittleEndian.PutUint64(b[:8], i)
			binary.LittleEndian.PutUint64(b[8:], uint64(due))
			h.Write(b[:])
		}
		check(name(a), fmt.Sprintf("%.8x", h.Sum(nil)))
	}
	draws := func(k Keys) string {
		spec := profile(Arrival{Kind: Poisson}, 25)
		spec.Keys, spec.BatchMax, spec.Destinations = k, 10, 60
		spec.Sizes = []WeightedSize{{100, 3}, {1000, 2}, {65536, 1}}
		s, h := mustNew(t, spec), sha256.New()
		for i := range uint64(20_000) {
			key, _ := s.Key(i)
			p := s.Producer(i)
			fmt.Fprintln(h, p, s.BatchSize(p, i/25), s.Destination(p, i/25), s.Size(i), key)
		}
		return fmt.Sprintf("%.8x", h.Sum(nil))
	}
	check("no keys", draws(Keys{}))
	check("uniform keys", draws(Keys{Kind: UniformKeys, N: 12345}))
	check("zipf keys", draws(Keys{Kind: ZipfKeys, N: 12345, S: 1.1}))
	check("round robin keys", draws(Keys{Kind: RoundRobinKeys, N: 12345}))
}

func TestWideIntegersAgreeWithBigOnes(t *testing.T) {
	t.Parallel()
	wide := func(a u128) *big.Int {
		x := new(big.Int).SetUint64(a.hi)
		return x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(a.lo))
	}
	r := stream(11)
	for n := uint64(0); n < 20_000; n += 4 {
		a, b := u128{r.at(n) >> 2, r.at(n + 1)}, u128{r.at(n+2) >> 2, r.at(n + 3)}
		d := r.at(n) | 1<<63
		x, y := wide(a), wide(b)
		if got, want := wide(a.plus(b)), new(big.Int).Add(x, y); got.Cmp(want) != 0 {
			t.Fatalf("%v + %v = %v", x, y, got)
		}
		if got, want := a.below(b), x.Cmp(y) < 0; got != want {
			t.Fatalf("%v < %v = %v", x, y, got)
		}
		if a.below(b) {
			a, b, x, y = b, a, y, x
		}
		if got, want := wide(a.minus(b)), new(big.Int).Sub(x, y); got.Cmp(want) != 0 {
			t.Fatalf("%v - %v = %v", x, y, got)
		}
		q, rem := a.over(d)
		if hi, lo := bits.Mul64(q, d); wide(u128{hi, lo}.plus(u128{0, rem})).Cmp(x) != 0 || rem >= d {
			t.Fatalf("%v / %d = %d rest %d", x, d, q, rem)
		}
		if v := newDivisor(d); v.divide(u128{a.hi % d, a.lo}) != first(bits.Div64(a.hi%d, a.lo, d)) {
			t.Fatalf("%v / %d by its reciprocal = %d", x, d, v.divide(a))
		}
		d >>= n % 64
		if v, y := newDivisor(d), (u128{a.hi % d, b.lo}); v.divide(y) != first(y.over(d)) {
			t.Fatalf("%v / %d by its reciprocal = %d; want %d", y, d, v.divide(y), first(y.over(d)))
		}
		p := a.times(d)
		got := new(big.Int).Lsh(new(big.Int).SetUint64(p.hi), 128)
		if got.Or(got, wide(u128{p.mid, p.lo})); got.Cmp(new(big.Int).Mul(x, new(big.Int).SetUint64(d))) != 0 {
			t.Fatalf("%v * %d = %v", x, d, got)
		}
	}
}

func first(q, _ uint64) uint64 { return q }
