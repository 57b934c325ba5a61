package judge

import (
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// mostSpells bounds how many intervals a Correlation keeps apart: beyond them
// neighbours are taken as one, so that its memory does not grow with a run.
const mostSpells = 4096

// A Correlation tells how much the samples beyond each percentile of a
// distribution come together: what makes one message slow often makes its
// neighbours slow too, and many samples then tell no more than few. It is made
// of a finished distribution and shown its intervals one after the other; one
// goroutine uses it.
type Correlation struct {
	rows    []int // of the distribution's percentiles
	values  []int64
	samples []uint64   // by interval
	sums    []float64  // of their values, likewise
	beyond  [][]uint64 // by row, then interval
	from    [][]uint64 // the same, with those in the value's own bucket
	step    int        // intervals in each of the above, but for the last
	held    int        // intervals in the last
}

// Correlate returns a Correlation of the percentiles of d, or nil without one.
func Correlate(d *result.Dist) *Correlation {
	if d == nil {
		return nil
	}
	c := &Correlation{step: 1}
	for i := range d.Percentiles {
		if p := &d.Percentiles[i]; p.P < 100 {
			c.rows, c.values = append(c.rows, i), append(c.values, p.NS)
		}
	}
	c.beyond, c.from = make([][]uint64, len(c.rows)), make([][]uint64, len(c.rows))
	return c
}

// Add takes the observed samples of one interval, in the order of time. Intervals
// without samples are left out.
func (c *Correlation) Add(observed *measure.Counts) {
	if observed.Total() == 0 {
		return
	}
	if len(c.samples) == 0 || c.held == c.step {
		if len(c.samples) == mostSpells {
			c.halve()
		}
		c.samples, c.sums, c.held = append(c.samples, 0), append(c.sums, 0), 0
		for i := range c.beyond {
			c.beyond[i], c.from[i] = append(c.beyond[i], 0), append(c.from[i], 0)
		}
	}
	c.held++
	last := len(c.samples) - 1
	c.samples[last] += observed.Total()
	c.sums[last] += observed.Mean() * float64(observed.Total())
	for i, v := range c.values {
		// A value is the highest of its bucket, so that what lies below the next
		// is all that is not beyond it.
		c.beyond[i][last] += observed.Total() - observed.Below(v+1)
		c.from[i][last] += observed.Total() - observed.Below(v)
	}
}

// halve takes neighbours as one.
func (c *Correlation) halve() {
	c.samples, c.sums = half(c.samples), half(c.sums)
	for i := range c.beyond {
		c.beyond[i], c.from[i] = half(c.beyond[i]), half(c.from[i])
	}
	c.step, c.held = 2*c.step, 2*c.step
}

func half[T uint64 | float64](x []T) []T {
	for i := range len(x) / 2 {
		x[i] = x[2*i] + x[2*i+1]
	}
	return x[:len(x)/2]
}

// Widen takes the intervals of d's percentiles anew, each for as many independent
// samples as its own are worth (stats.EffectiveSize), and notes by how much that
// is less; for the mean it notes it. d is the distribution that c was made of, and observed and censored
// its samples. Censored samples are in no interval, and count as the observed do.
func (c *Correlation) Widen(d *result.Dist, observed, censored *measure.Counts) {
	c.widen(d, observed, censored, confidence)
}

// widen is Widen for intervals of some confidence.
func (c *Correlation) widen(d *result.Dist, observed, censored *measure.Counts, conf float64) {
	if d.StdDevNS != nil {
		if e := stats.EffectiveMean(c.samples, c.sums, *d.StdDevNS**d.StdDevNS); e.Length > 0 {
			d.MeanDeff = e.Deff
		}
	}
	all, certain := together(observed, censored)
	for i, row := range c.rows {
		e := stats.EffectiveSize(c.samples, c.beyond[i])
		if e.Length == 0 { // nothing lies beyond the largest bucket: what is in it came together or not
			e = stats.EffectiveSize(c.samples, c.from[i])
		}
		if e.Length == 0 {
			continue
		}
		p := &d.Percentiles[row]
		p.Deff = e.Deff
		p.LoNS, p.HiNS = bounds(all, p.P, certain, e.Deff, conf)
	}
}
