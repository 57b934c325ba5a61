package stats

import "math"

// Effective is what correlated samples are worth.
type Effective struct {
	Deff        float64 // the design effect, 1 or more: so many samples bound as tightly as one independent one
	Independent float64 // as many independent blocks of time tell as much; 0: there are too few to say
	Episodes    int     // separate groups of neighbouring blocks with more than the usual share beyond
}

// Bounds of EffectiveSize.
const (
	// FewestBlocks is how many blocks, or batches of them, an estimate takes at
	// least: with 16 the relative standard error of a variance is 0.37, sqrt(2/15).
	FewestBlocks = 16
	// FewestIndependent is how many independent blocks a run must be worth before
	// its own variation says how far off its figures are. With fewer, Student's t
	// grows fast and the estimate of the dependence itself fails.
	FewestIndependent = 6

	leastDegrees = 2    // of freedom, for studentQuantile
	mostLag1     = 0.99 // an autocorrelation that leaves the variance finite
)

// Known reports whether the blocks tell what the samples are worth.
func (e Effective) Known() bool { return e.Independent >= FewestIndependent }

// EffectiveSize tells what the samples of a share are worth: the samples of each
// block of a run, and how many of them lie beyond a value. Both have one number for
// each block; the blocks are of about the same length, in the order of time. conf is
// the confidence of the interval that is to be taken of the share.
//
// Independent samples make the number beyond vary from block to block as the
// binomial distribution has it. Three factors make the design effect:
//
//   - by how much the variance between blocks is larger than that;
//   - (1+r)/(1-r) for blocks that depend on their neighbours, r being their lag-1
//     autocorrelation, with what a short series hides of it added, (1+4r)/k for k
//     blocks, and never below 0;
//   - (t/z)², for a variance that is estimated from few blocks: the quantile of
//     Student's t, with as many degrees of freedom as there are independent blocks,
//     k(1-r)/(1+r), less one, over that of the normal distribution.
//
// The same is done with batches of 2, 4, 8... neighbours, as long as there are
// FewestBlocks of those, and the largest effect and the fewest independent blocks are
// taken. Independent samples come to some 1.2 to 1.6 instead of 1, on the safe side.
//
// Sources: the ratio estimator's variance for clusters of unequal size, J. N. K. Rao
// and A. J. Scott, "A simple method for the analysis of clustered binary data",
// Biometrics 48 (1992); batch means, P. Flyvbjerg and H. G. Petersen, "Error
// estimates on averages of correlated data", J. Chem. Phys. 91 (1989); the variance
// of the mean of an autoregressive series and its degrees of freedom as N. M. Steiger
// et al., "ASAP3: a batch means procedure for steady-state simulation analysis", ACM
// TOMACS 15 (2005), correct batch means that are not independent; the bias of r, F. H.
// C. Marriott and J. A. Pope, "Bias in the estimation of autocorrelations", Biometrika
// 41 (1954).
func EffectiveSize(samples, beyond []uint64, conf float64) Effective {
	sums := make([]float64, len(beyond))
	for i, b := range beyond {
		sums[i] = float64(b)
	}
	share := meanOf(samples, sums)
	return effective(samples, sums, share, share*(1-share), conf)
}

// EffectiveMean is EffectiveSize for a mean: sums are those of the samples of each
// block, and variance is that of all samples.
func EffectiveMean(samples []uint64, sums []float64, variance, conf float64) Effective {
	return effective(samples, sums, meanOf(samples, sums), variance, conf)
}

func meanOf(samples []uint64, sums []float64) float64 {
	var n, x float64
	for i := range samples {
		n += float64(samples[i])
		x += sums[i]
	}
	return x / max(n, 1)
}

func effective(samples []uint64, sums []float64, mean, variance, conf float64) Effective {
	e := Effective{Deff: 1}
	if len(samples) < FewestBlocks {
		return e
	}
	e.Independent = float64(len(samples))
	if variance <= 0 {
		return e // nothing varies
	}
	excess, expected := make([]float64, len(samples)), make([]float64, len(samples))
	above := false
	for i, n := range samples {
		excess[i], expected[i] = sums[i]-float64(n)*mean, float64(n)*variance
		if was := above; excess[i] > 0 && !was {
			e.Episodes++
		}
		above = excess[i] > 0
	}
	tail := (1 - conf) / 2
	z := normalQuantile(tail)
	for length := 1; len(samples)/length >= FewestBlocks; length *= 2 {
		batch := batches(excess, length)
		var squares, chance float64
		for _, d := range batch {
			squares += d * d
		}
		for _, v := range expected[:len(batch)*length] {
			chance += v
		}
		if squares == 0 || chance == 0 {
			continue
		}
		k := float64(len(batch))
		r := Lag1(batch)
		r = min(max(r+(1+4*r)/k, 0), mostLag1)
		independent := k * (1 - r) / (1 + r)
		t := studentQuantile(tail, max(independent-1, leastDegrees))
		e.Independent = min(e.Independent, independent)
		e.Deff = max(e.Deff, squares/chance*k/(k-1)*(1+r)/(1-r)*(t/z)*(t/z))
	}
	return e
}

// batches sums so many neighbours each; what is left over at the end is left out.
func batches(x []float64, length int) []float64 {
	sums := make([]float64, len(x)/length)
	for i := range sums {
		for _, v := range x[i*length : (i+1)*length] {
			sums[i] += v
		}
	}
	return sums
}

// studentQuantile returns what a part, tail, of Student's t distribution lies
// beyond, with so many degrees of freedom.
//
// Source: Abramowitz and Stegun 26.7.5. At 97.5 % it is too small by 4 % with 2
// degrees and by 0.1 % with 4.
func studentQuantile(tail, degrees float64) float64 {
	z := normalQuantile(tail)
	z2, d := z*z, 1/degrees
	g1 := z * (z2 + 1) / 4
	g2 := z * ((5*z2+16)*z2 + 3) / 96
	g3 := z * (((3*z2+19)*z2+17)*z2 - 15) / 384
	g4 := z * ((((79*z2+776)*z2+1482)*z2-1920)*z2 - 945) / 92160
	return z + d*(g1+d*(g2+d*(g3+d*g4)))
}

// Horizon returns how rare a thing a run of some length has met at most, in the
// length's unit: of what comes by chance, once in so long on average, nothing is in
// the run with a probability of 1-conf over two. No interval holds what a run did not
// meet.
//
// Source: no event of a Poisson process has the probability exp(-length/once).
func Horizon(length, conf float64) float64 { return length / -math.Log((1-conf)/2) }
