package stats

// Effective is what correlated samples are worth.
type Effective struct {
	Size   float64 // as many independent samples would tell as much; at most the samples that there are
	Deff   float64 // the design effect: samples over Size, 1 or more
	Length int     // of the blocks that Deff is of, in intervals; 0 where it is not known
}

// Bounds of EffectiveSize.
const (
	fewestIntervals = 10 // fewer say too little of a variance: with 10 its relative standard error is already 0.47, sqrt(2/9)
	fewestBlocks    = 20 // of several intervals each, where the largest of several estimates is taken
)

// EffectiveSize tells how many independent samples those of a percentile are
// worth, from the samples of each interval of a run and how many of them lie
// beyond the percentile's value. Both have the same length.
//
// Independent samples make the number beyond vary from interval to interval as
// the binomial distribution has it. The design effect is by how much its
// variance is larger, at least 1; samples over it is the effective size, with
// which the interval of the percentile is to be taken. That sees what comes
// together within an interval. What lasts for several is seen by doing the same
// with 2, 4, 8... neighbours taken as one, as long as there are 20 of those, and
// the largest effect is taken: of independent samples that makes some 1.15
// instead of 1, on the safe side. With fewer than 10 intervals, or where nothing
// or everything lies beyond, it is not known: Deff is 1 then and Length 0, and
// whoever shows an interval has to say that it is not widened.
//
// Source: the ratio estimator's variance for clusters of unequal size, over that
// of a simple random sample: J. N. K. Rao and A. J. Scott, "A simple method for
// the analysis of clustered binary data", Biometrics 48 (1992); the blocks are
// batch means, as in P. Flyvbjerg and H. G. Petersen, "Error estimates on
// averages of correlated data", J. Chem. Phys. 91 (1989).
func EffectiveSize(samples, beyond []uint64) Effective {
	var n, x float64
	for i := range samples {
		n += float64(samples[i])
		x += float64(beyond[i])
	}
	e := Effective{Size: n, Deff: 1}
	if len(samples) < fewestIntervals || x == 0 || x >= n {
		return e
	}
	p := x / n
	sums := make([]float64, len(beyond))
	for i, b := range beyond {
		sums[i] = float64(b)
	}
	return e.of(samples, sums, p, p*(1-p))
}

// EffectiveMean is EffectiveSize for a mean: sums are those of the samples of each
// interval, and variance is that of all samples. With fewer than 10 intervals, or
// where nothing varies, it is not known.
func EffectiveMean(samples []uint64, sums []float64, variance float64) Effective {
	var n, x float64
	for i := range samples {
		n += float64(samples[i])
		x += sums[i]
	}
	e := Effective{Size: n, Deff: 1}
	if len(samples) < fewestIntervals || n == 0 || !(variance > 0) {
		return e
	}
	return e.of(samples, sums, x/n, variance)
}

// of takes the largest effect over blocks of intervals.
func (e Effective) of(samples []uint64, sums []float64, mean, variance float64) Effective {
	n := e.Size
	for length := 1; length == 1 || len(samples)/length >= fewestBlocks; length *= 2 {
		if deff := designEffect(samples, sums, length, mean, variance); length == 1 || deff > e.Deff {
			e.Deff, e.Length = max(deff, 1), length
		}
	}
	e.Size = n / e.Deff
	return e
}

// designEffect is that of blocks of so many intervals; what is left over at the
// end is left out.
func designEffect(samples []uint64, sums []float64, length int, mean, variance float64) float64 {
	var squares, expected float64
	blocks := 0
	for from := 0; from+length <= len(samples); from += length {
		var n, x float64
		for i := from; i < from+length; i++ {
			n += float64(samples[i])
			x += sums[i]
		}
		d := x - n*mean
		squares += d * d
		expected += n * variance
		blocks++
	}
	if expected == 0 {
		return 1
	}
	return squares / expected * float64(blocks) / float64(blocks-1)
}
