package stats

import (
	"math"
	"testing"
)

// Values of P(B <= k) by mpmath 1.3 with 30 digits and more: the incomplete
// beta function to n = 10^6, the sum of the tail's terms above.
var binomials = []struct {
	k, n uint64
	p    float64 // percent
	want float64
}{
	{0, 1, 50, 5.0e-1},
	{0, 2, 50, 2.5e-1},
	{1, 2, 50, 7.5e-1},
	{1, 2, 90, 1.9e-1},
	{2, 5, 50, 5.0e-1},
	{4, 5, 50, 9.6875e-1},
	{3, 5, 90, 8.146e-2},
	{4, 5, 99, 4.90099501e-2},
	{0, 10, 50, 9.765625e-4},
	{2, 10, 50, 5.46875e-2},
	{5, 10, 50, 6.23046875e-1},
	{7, 10, 90, 7.01908264e-2},
	{9, 10, 99, 9.56179249911955e-2},
	{10, 30, 50, 4.93685733526945e-2},
	{15, 30, 50, 5.72232224047184e-1},
	{22, 30, 90, 7.78361923792131e-3},
	{29, 30, 90, 9.57608841724784e-1},
	{35, 100, 50, 1.75882086148508e-3},
	{65, 100, 50, 9.99105034804257e-1},
	{81, 100, 90, 4.58075418000449e-3},
	{84, 100, 90, 3.98905271110833e-2},
	{94, 100, 90, 9.42423113512966e-1},
	{99, 100, 90, 9.99973438601112e-1},
	{99, 100, 99, 6.3396765872677e-1},
	{500, 1000, 50, 5.1261250908918e-1},
	{524, 1000, 50, 9.39392867094481e-1},
	{547, 1000, 50, 9.98677235080428e-1},
	{872, 1000, 90, 2.50627839188901e-3},
	{881, 1000, 90, 2.78054838923644e-2},
	{900, 1000, 90, 5.1541770956592e-1},
	{914, 1000, 90, 9.39306269482035e-1},
	{984, 1000, 99, 4.78705857579472e-2},
	{990, 1000, 99, 5.42699407825109e-1},
	{999, 1000, 99, 9.99956828752589e-1},
	{997, 1000, 99.9, 8.02093428402011e-2},
	{999, 1000, 99.99, 9.51671064414537e-2},
	{11011, 12345, 90, 1.64157275923288e-3},
	{11044, 12345, 90, 2.44948938700423e-2},
	{11110, 12345, 90, 4.98404024155587e-1},
	{11210, 12345, 90, 9.98790670758662e-1},
	{12188, 12345, 99, 1.95961711860322e-3},
	{12222, 12345, 99, 5.28394344133237e-1},
	{12322, 12345, 99.9, 4.23052036153191e-3},
	{12338, 12345, 99.9, 9.62313850901642e-1},
	{12340, 12345, 99.99, 8.67630253079238e-3},
	{12342, 12345, 99.99, 1.28070713533809e-1},
	{98906, 100000, 99, 1.68068585046758e-3},
	{99880, 100000, 99.9, 2.81670058508532e-2},
	{99930, 100000, 99.9, 9.99342480790106e-1},
	{99981, 100000, 99.99, 7.18366837182745e-3},
	{99984, 100000, 99.99, 4.87317235985293e-2},
	{99995, 100000, 99.99, 9.70752986794441e-1},
	{99999, 100000, 99.99, 9.99954622766041e-1},
	{998905, 1000000, 99.9, 1.59015918353706e-3},
	{998937, 1000000, 99.9, 2.4848494269127e-2},
	{999047, 1000000, 99.9, 9.34434237127225e-1},
	{999095, 1000000, 99.9, 9.98916005128241e-1},
	{999870, 1000000, 99.99, 2.2810088462432e-3},
	{999880, 1000000, 99.99, 2.82240544309421e-2},
	{999930, 1000000, 99.99, 9.99339453771742e-1},
	{4996521, 10000000, 50, 1.39035667589892e-2},
	{4996995, 10000000, 50, 2.87026069825592e-2},
	{5000158, 10000000, 50, 5.3992477230167e-1},
	{5003162, 10000000, 50, 9.77257461896525e-1},
	{98997811, 100000000, 99, 1.39426624095506e-2},
	{98998109, 100000000, 99, 2.87430826052572e-2},
	{99000099, 100000000, 99, 5.39763826303358e-1},
	{99001989, 100000000, 99, 9.77250698357837e-1},
	{296996208, 300000000, 99, 1.39145299073221e-2},
	{296996725, 300000000, 99, 2.87290049208421e-2},
	{297000172, 300000000, 99, 5.39828164844268e-1},
	{297003446, 300000000, 99, 9.77257780644677e-1},
	{998997801, 1000000000, 99.9, 1.39403120634692e-2},
	{998998100, 1000000000, 99.9, 2.87154933553742e-2},
	{999000099, 1000000000, 99.9, 5.39583710828155e-1},
	{999001998, 1000000000, 99.9, 9.77249836526585e-1},
	{9998997800, 10000000000, 99.99, 1.39399907121753e-2},
	{9998998100, 10000000000, 99.99, 2.8771673351745e-2},
	{9999000099, 10000000000, 99.99, 5.39565832406926e-1},
	{9999001999, 10000000000, 99.99, 9.77255274220236e-1},
	{999998997800, 1000000000000, 99.9999, 1.39438630636768e-2},
	{999998998100, 1000000000000, 99.9999, 2.87778540878816e-2},
	{999999000099, 1000000000000, 99.9999, 5.3956386724602e-1},
	{999999001999, 1000000000000, 99.9999, 9.77249931033259e-1},
	{99999899304, 100000000000, 99.9999, 1.39977445978865e-2},
	{99999899399, 100000000000, 99.9999, 2.88757541321781e-2},
	{99999900031, 100000000000, 99.9999, 5.39466575261858e-1},
	{99999900632, 100000000000, 99.9999, 9.77343007327066e-1},
}

func TestBinomialAgainstMpmath(t *testing.T) {
	for _, tt := range binomials {
		got := binomialCDF(tt.k, tt.n, tt.p/100)
		// p in floats is off by 1e-16, which moves the mean of n = 10^12 by 1e-4:
		// that is far below a rank, but not below 1e-9 of probability.
		tolerance := 1e-9
		if tt.n > 1_000_000 {
			tolerance = 2e-7
		}
		if math.Abs(got-tt.want) > tolerance {
			t.Errorf("P(B <= %d), n %d, p %g %%: %.12g, want %.12g, off by %.2g", tt.k, tt.n, tt.p, got, tt.want, got-tt.want)
		}
		if sum := got + binomialSurvival(tt.k+1, tt.n, tt.p/100); math.Abs(sum-1) > 1e-9 {
			t.Errorf("P(B <= %d) + P(B > %d) is %.12g", tt.k, tt.k, sum)
		}
	}
}

// Sums all terms for small n.
func TestBinomialAgainstItsSum(t *testing.T) {
	for _, q := range []float64{0, 0.001, 0.1, 0.5, 0.77, 0.99, 0.9999, 1} {
		for n := uint64(1); n <= 60; n++ {
			sum := 0.0
			for k := range n + 1 {
				sum += choose(n, k) * math.Pow(q, float64(k)) * math.Pow(1-q, float64(n-k))
				if got := binomialCDF(k, n, q); math.Abs(got-sum) > 1e-11 {
					t.Fatalf("P(B <= %d), n %d, q %g: %.15g, want %.15g", k, n, q, got, sum)
				}
			}
		}
	}
}

func choose(n, k uint64) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

func TestQuantileRanks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      uint64
		p      float64
		conf   float64
		lo, hi uint64
		hiOK   bool
	}{
		// The standard table of ranks for the median at 95 % (Conover, table
		// A3; printed in most texts on order statistics).
		{"median of 6", 6, 50, 0.95, 1, 6, true},
		{"median of 10", 10, 50, 0.95, 2, 9, true},
		{"median of 20", 20, 50, 0.95, 6, 15, true},
		{"median of 30", 30, 50, 0.95, 10, 21, true},
		{"median of 50", 50, 50, 0.95, 18, 33, true},
		{"median of 100", 100, 50, 0.95, 40, 61, true},
		{"median of 5 has no upper bound", 5, 50, 0.95, 1, 5, false},
		// 0.99^367 > 0.025 >= 0.99^368, and so on: measurement.md b.4.
		{"99 % of 367", 367, 99, 0.95, 359, 367, false},
		{"99 % of 368", 368, 99, 0.95, 360, 368, true},
		{"99.9 % of 3687", 3687, 99.9, 0.95, 3679, 3687, false},
		{"99.9 % of 3688", 3688, 99.9, 0.95, 3680, 3688, true},
		{"99.99 % of 36886", 36886, 99.99, 0.95, 36878, 36886, false},
		{"99.99 % of 36887", 36887, 99.99, 0.95, 36879, 36887, true},
		{"99 % of 1000", 1000, 99, 0.95, 983, 997, true},
		{"99 % of one", 1, 99, 0.95, 1, 1, false},
		{"of none", 0, 99, 0.95, 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lo, hi, ok := QuantileRanks(tt.n, tt.p, tt.conf)
			if lo != tt.lo || hi != tt.hi || ok != tt.hiOK {
				t.Fatalf("ranks %d to %d (%t), want %d to %d (%t)", lo, hi, ok, tt.lo, tt.hi, tt.hiOK)
			}
		})
	}
}

// Checks both sides of both ends.
func TestQuantileRanksHoldTheirDefinition(t *testing.T) {
	const tail = 0.025
	for _, n := range []uint64{1, 7, 40, 99, 1500, 40_000, 1_000_000, 123_456_789, 1_000_000_000_000} {
		for _, p := range []float64{50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999} {
			lo, hi, ok := QuantileRanks(n, p, 0.95)
			q := p / 100
			if lo < 1 || lo > n || hi < lo || hi > n {
				t.Errorf("%g %% of %d: ranks %d to %d", p, n, lo, hi)
				continue
			}
			if below := binomialCDF(lo-1, n, q); lo > 1 && below > tail {
				t.Errorf("%g %% of %d: lower rank %d misses %.4g", p, n, lo, below)
			}
			if lo < n && binomialCDF(lo, n, q) <= tail {
				t.Errorf("%g %% of %d: lower rank %d could be higher", p, n, lo)
			}
			above := binomialSurvival(hi, n, q)
			if ok && above > tail || !ok && binomialSurvival(n, n, q) <= tail {
				t.Errorf("%g %% of %d: upper rank %d (%t) misses %.4g", p, n, hi, ok, above)
			}
			if ok && hi > 1 && binomialSurvival(hi-1, n, q) <= tail {
				t.Errorf("%g %% of %d: upper rank %d could be lower", p, n, hi)
			}
			// Close to the normal interval where that holds.
			mean, dev := q*float64(n), math.Sqrt(float64(n)*q*(1-q))
			if dev > 100 && ok && (math.Abs(float64(lo)-(mean-1.96*dev)) > 5+dev/1000 || math.Abs(float64(hi)-(mean+1.96*dev)) > 5+dev/1000) {
				t.Errorf("%g %% of %d: ranks %d to %d, mean %g +- %g", p, n, lo, hi, mean, 1.96*dev)
			}
		}
	}
}

func TestSupported(t *testing.T) {
	for _, tt := range []struct {
		n    uint64
		p    float64
		want bool
	}{
		{9, 50, false},
		{10, 50, true},
		{499, 99, false},
		{500, 99, true},
		{4_999, 99.9, false},
		{5_000, 99.9, true},
		{499_999, 99.999, false},
		{500_000, 99.999, true},
		{4_999_999, 99.9999, false},
		{5_000_000, 99.9999, true},
		{1_500, 99.99, false},
		{0, 50, false},
		{math.MaxUint64, 100, false},
	} {
		if got := Supported(tt.n, tt.p); got != tt.want {
			t.Errorf("%g %% of %d samples: supported %t", tt.p, tt.n, got)
		}
	}
	if got := Needed(99.999); got != 500_000 {
		t.Errorf("99.999 %% needs %d", got)
	}
}

func BenchmarkQuantileRanks(b *testing.B) {
	for name, n := range map[string]uint64{"n=1e4": 1e4, "n=1e6": 1e6, "n=1e8": 1e8, "n=1e12": 1e12} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				QuantileRanks(n, 99, 0.95)
			}
		})
	}
}
