package judge

import (
	"math"
	"slices"
	"sort"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// mostSlices is the largest number of slices of a run; even. In longer runs neighbours are merged, so that
// memory does not grow.
const mostSlices = 512

// Horizon returns the rarest stall, as its mean interval in seconds, that a run of that many seconds has
// probably seen: see stats.Horizon.
func Horizon(seconds float64) float64 { return stats.Horizon(seconds, confidence) }

// Slices holds the measured samples of a run in time slices, to estimate how strongly they depend on one
// another: what slows one message often slows its neighbours, and many samples then carry the information
// of few. They are packed, with about two bytes for each non-empty bucket. It is not safe for concurrent
// use.
type Slices struct {
	packed [][measure.NumKinds][]byte // nil if nothing was measured
	ends   []int64                    // end of each, ns since the epoch
	open   [measure.NumKinds]measure.Counts
	step   int // intervals per slice, 0 means 1
	held   int // intervals in the open slice
}

// Add adds an interval of the run, in time order. All intervals have about the same length.
func (s *Slices) Add(in *measure.Interval) {
	c := &in.Counters[measure.Measure]
	measured := len(s.packed) > 0 || s.held > 0 || c.Scheduled+c.Sent > 0
	for k := range in.Kinds {
		c := &in.Kinds[k][measure.Measure]
		measured = measured || c.Total() > 0
		s.open[k].Merge(c)
	}
	if !measured {
		return
	}
	if s.held++; s.held < max(s.step, 1) {
		return
	}
	if len(s.packed) == mostSlices {
		s.halve()
		if s.held < s.step {
			return
		}
	}
	s.packed, s.ends = append(s.packed, s.pack()), append(s.ends, in.To)
}

// pack packs the open slice.
func (s *Slices) pack() (slice [measure.NumKinds][]byte) {
	for k := range s.open {
		slice[k] = packed(&s.open[k])
		s.open[k].Reset()
	}
	s.held = 0
	return slice
}

// packed returns the binary form of c; nil where it is empty.
func packed(c *measure.Counts) []byte {
	if c.Total() == 0 {
		return nil
	}
	b, err := c.AppendBinary(nil)
	if err != nil {
		return nil // more than 2^63 samples cannot occur
	}
	return b
}

// halve merges neighbouring slices.
func (s *Slices) halve() {
	var a, b measure.Counts
	for i := range mostSlices / 2 {
		for k := range s.open {
			unpack(s.packed[2*i][k], &a)
			unpack(s.packed[2*i+1][k], &b)
			a.Merge(&b)
			s.packed[i][k] = packed(&a)
		}
		s.ends[i] = s.ends[2*i+1]
	}
	s.ends = s.ends[:mostSlices/2]
	clear(s.packed[mostSlices/2:])
	s.packed = s.packed[:mostSlices/2]
	s.step = 2 * max(s.step, 1)
}

// unpack sets c to what packed returned.
func unpack(b []byte, c *measure.Counts) {
	c.Reset()
	if b != nil {
		_, _ = c.DecodeBinary(b) // cannot fail on AppendBinary's output; leaves c empty
	}
}

// each visits the slices with samples of a kind in time order, the open slice last, as len(s.packed); the
// counts are valid until the next visit. A censored sample is in the slice in which it began to wait.
func (s *Slices) each(k measure.Kind, censored *measure.Censored, visit func(slice int, c *measure.Counts)) {
	waited := waitersOf(censored)
	var c measure.Counts
	for i := range s.packed {
		unpack(s.packed[i][k], &c)
		if waited.until(s.ends[i], &c); c.Total() > 0 {
			visit(i, &c)
		}
	}
	c.Assign(&s.open[k])
	if waited.until(math.MaxInt64, &c); c.Total() > 0 && 2*s.held >= max(s.step, 1) {
		visit(len(s.packed), &c)
	}
}

// waiters are censored samples, ordered by when they began to wait.
type waiters []dated

type dated struct {
	measure.Span
	n uint64
}

func waitersOf(c *measure.Censored) (w waiters) {
	for at, n := range c.Cells() {
		w = append(w, dated{at, n})
	}
	return w
}

// until moves those that began before end into a slice, above every other sample: their age at the end
// depends on when they began, not on the system. A cell that spans the instant is split in proportion.
func (w *waiters) until(end int64, into *measure.Counts) {
	for len(*w) > 0 && (*w)[0].From < end {
		x := &(*w)[0]
		if end < x.To {
			n := uint64(math.Round(float64(x.n) * float64(end-x.From) / float64(x.To-x.From)))
			into.Add(measure.Highest, n)
			x.From, x.n = end, x.n-n
			return
		}
		into.Add(measure.Highest, x.n)
		*w = (*w)[1:]
	}
}

// Widen recomputes the intervals of d's percentiles for the effective number of independent samples
// (stats.EffectiveSize), and records the reduction; for the mean it only records it. If the slices cannot
// determine it, Widen removes the interval, or its upper end, and records why. d is the distribution of
// kind k, observed and censored its samples; censored may be nil.
func (s *Slices) Widen(k measure.Kind, d *result.Dist, observed *measure.Counts, censored *measure.Censored) {
	s.widen(k, d, observed, censored, confidence)
}

// widen is Widen for intervals of a given confidence.
func (s *Slices) widen(k measure.Kind, d *result.Dist, observed *measure.Counts, censored *measure.Censored, conf float64) {
	if censored == nil {
		censored = new(measure.Censored)
	}
	w := widening{conf: conf}
	w.all, w.certain = together(observed, &censored.Ages)
	w.levels(d)
	if censored.Dated() {
		s.each(k, censored, w.add)
	} // without slices the dependence is unknown, and there is no interval
	w.known = make([]*stats.Effective, len(w.values))
	if d.StdDevNS != nil {
		d.MeanDeff = 0
		if e := stats.EffectiveMean(w.samples, w.sums, *d.StdDevNS**d.StdDevNS, conf); e.Known() {
			d.MeanDeff = e.Deff
		}
	}
	for i := range d.Percentiles {
		if p := &d.Percentiles[i]; p.P < 100 {
			w.row(p)
		}
	}
}

// A widening is for one distribution.
type widening struct {
	conf    float64
	all     *measure.Counts
	certain uint64
	values  []int64 // levels to count samples beyond, ascending
	samples []uint64
	sums    []float64
	beyond  [][]uint64 // by level, then slice
	known   []*stats.Effective
}

// levelStep is the distance between levels, in the log odds that a sample lies beyond: the number beyond
// halves about every second level.
const levelStep = 0.35

// levels chooses the values to examine: d's percentiles, and values between them out to where five samples
// lie beyond or below. Each comes with the value below its bucket, to separate samples in the bucket from
// those beyond.
func (w *widening) levels(d *result.Dist) {
	add := func(v int64) {
		v = measure.HighestEquivalent(v)
		w.values = append(w.values, v)
		if low := measure.LowestEquivalent(v); low > 0 {
			w.values = append(w.values, low-1)
		}
	}
	for i := range d.Percentiles {
		if p := &d.Percentiles[i]; p.P < 100 {
			add(p.NS)
		}
	}
	n := float64(w.all.Total())
	for odds := -math.Log(n / stats.MinBeyond); odds <= math.Log(n/stats.MinBeyond); odds += levelStep {
		add(w.all.At(uint64(math.Ceil(n / (1 + math.Exp(odds))))))
	}
	slices.Sort(w.values)
	w.values = slices.Compact(w.values)
	w.beyond = make([][]uint64, len(w.values))
}

// add adds a slice.
func (w *widening) add(_ int, c *measure.Counts) {
	w.samples = append(w.samples, c.Total())
	w.sums = append(w.sums, c.Mean()*float64(c.Total()))
	left := c.Total()
	i := 0
	for v, n := range c.Buckets() {
		for ; i < len(w.values) && w.values[i] < v; i++ {
			w.beyond[i] = append(w.beyond[i], left)
		}
		left -= n
	}
	for ; i < len(w.values); i++ {
		w.beyond[i] = append(w.beyond[i], left)
	}
}

// at returns the effective sample size at a level.
func (w *widening) at(level int) stats.Effective {
	if w.known[level] == nil {
		e := stats.EffectiveSize(w.samples, w.beyond[level], w.conf)
		w.known[level] = &e
	}
	return *w.known[level]
}

// around returns the effective sample size at a percentile's level: the worse of samples beyond its bucket
// and samples from it on, since the percentile lies between. If nothing lies beyond, the latter decide.
func (w *widening) around(level int) stats.Effective {
	e := w.at(level)
	if level == 0 || w.values[level-1] != measure.LowestEquivalent(w.values[level])-1 {
		return e // bucket 0: everything lies beyond its lower end
	}
	from := w.at(level - 1)
	if e.Episodes == 0 {
		e.Episodes = from.Episodes
	}
	e.Deff, e.Independent = max(e.Deff, from.Deff), min(e.Independent, from.Independent)
	return e
}

// row recomputes the interval of a percentile.
func (w *widening) row(p *result.Percentile) {
	p.LoNS, p.HiNS, p.Deff = nil, nil, 0
	here := sort.Search(len(w.values), func(i int) bool { return w.values[i] >= measure.HighestEquivalent(p.NS) })
	e := w.around(here)
	p.Blocks, p.Episodes = math.Round(10*e.Independent)/10, e.Episodes
	if !e.Known() {
		p.UnboundedBy = result.ByDependence
		return
	}
	lo, below, loKnown := w.end(p.P, here, -1, e.Deff)
	hi, above, hiKnown := w.end(p.P, here, 1, e.Deff)
	p.LoNS, p.HiNS, p.Deff = lo, hi, max(below, above)
	switch {
	case !loKnown || !hiKnown:
		p.UnboundedBy = result.ByDependence
	case e.Episodes >= fewestEpisodes || e.Episodes == 0: // 0: nothing varies
	case p.P >= 50 && hi != nil:
		p.HiNS, p.UnboundedBy = nil, result.ByEpisodes
	case p.P < 50 && lo != nil: // the lower end rests on the fast samples
		p.LoNS, p.UnboundedBy = nil, result.ByEpisodes
	}
}

// fewestEpisodes is the least number of separate episodes of slow slices that an interval's upper end must
// rest on.
const fewestEpisodes = 6

// end finds one end of the interval of percentile p at level here: direction is -1 for the lower end, 1 for
// the upper. It starts with the effective size at here; if that is lower at a level on the way, the end
// moves out. It is unknown if a level on the way says so.
func (w *widening) end(p float64, here, direction int, deff float64) (end *int64, of float64, known bool) {
	for next := here; ; {
		lo, hi := bounds(w.all, p, w.certain, deff, w.conf)
		switch end = &lo; {
		case direction > 0 && hi == nil:
			return nil, deff, true
		case direction > 0:
			end = hi
		}
		from := deff
		last := measure.HighestEquivalent(*end)
		if direction < 0 {
			last = measure.LowestEquivalent(*end) - 1 // beyond it lies what is at or above the end
		}
		for ; next >= 0 && next < len(w.values) && (w.values[next]-last)*int64(direction) <= 0; next += direction {
			e := w.at(next)
			if !e.Known() {
				return nil, deff, false
			}
			deff = max(deff, e.Deff)
		}
		if deff == from {
			return end, deff, true
		}
	}
}
