package judge

import (
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Stalls records in each supported percentile of d by how much stalls of the host can have moved it: d is
// the distribution of kind k, observed and censored its samples, and censored may be nil. usual is how late
// a sleeping thread ordinarily wakes on this host, in ns. Without hiccups it records nothing.
//
// The bound (result.Stalls.AtMostNS) needs no slices: if a share s of the messages met a stall, at most the
// percentile p-s became p. Comparing with the slices that had too few stalls is sharper, because most stalls
// meet no message.
func (s *Slices) Stalls(k measure.Kind, d *result.Dist, observed *measure.Counts, censored *measure.Censored, usual int64) {
	if censored == nil {
		censored = new(measure.Censored)
	}
	woken := s.hiccups()
	probed := new(measure.Counts)
	for i := range woken {
		probed.Merge(&woken[i])
	}
	if probed.Total() == 0 {
		return
	}
	all, certain := together(observed, &censored.Ages)
	var moved []stalled
	for i := range d.Percentiles {
		row := &d.Percentiles[i]
		if row.P >= 100 || !row.Supported || row.AtLeast {
			continue
		}
		x := stalled{row: row, longest: max(oversleepMost*usual, usual+int64(latenessValid*float64(row.NS)))}
		row.Stalls = x.bound(all, probed)
		if float64(row.Stalls.AtMostNS) > latenessValid*float64(row.NS) {
			x.calm = new(measure.Counts)
			moved = append(moved, x)
		}
	}
	if len(moved) == 0 || !censored.Dated() && censored.Ages.Total() > 0 {
		return
	}
	s.each(k, censored, func(slice int, c *measure.Counts) {
		for _, x := range moved {
			// What a stall held up completes in its slice or soon after.
			if x.fewIn(&woken[slice]) && (slice == 0 || x.fewIn(&woken[slice-1])) {
				x.calm.Merge(c)
			}
		}
	})
	for _, x := range moved {
		x.compare(all.Total(), certain)
	}
}

// hiccups returns the delays of the thread that only sleeps by slice, the open one last.
func (s *Slices) hiccups() []measure.Counts {
	woken := make([]measure.Counts, len(s.packed)+1)
	for i := range s.packed {
		unpack(s.packed[i][measure.Hiccups], &woken[i])
	}
	woken[len(s.packed)].Assign(&s.open[measure.Hiccups])
	return woken
}

// A stalled is a percentile that stalls may have moved.
type stalled struct {
	row     *result.Percentile
	longest int64           // longest delay of a wake-up that does not matter
	calm    *measure.Counts // samples from slices with few stalls
}

// late returns how many of the wake-ups fell into a stall.
func (x *stalled) late(woken *measure.Counts) uint64 {
	return woken.Total() - woken.Below(x.longest+1)
}

// bound returns the effect if stalls met messages as often as the thread that sleeps.
func (x *stalled) bound(all, probed *measure.Counts) *result.Stalls {
	b := &result.Stalls{Share: float64(x.late(probed)) / float64(probed.Total())}
	if without := x.row.P - 100*b.Share; without > 0 {
		b.AtMostNS = max(0, x.row.NS-all.At(measure.Rank(without, all.Total())))
	} else {
		b.AtMostNS = x.row.NS
	}
	return b
}

// fewIn reports whether so few wake-ups of a slice fell into a stall that the percentile's rank can move by
// at most a tenth of what lies beyond it.
func (x *stalled) fewIn(woken *measure.Counts) bool {
	beyond := min(x.row.P, 100-x.row.P) / 100
	return float64(x.late(woken)) <= latenessValid*beyond*float64(woken.Total())
}

// compare records the percentile of the calm slices, if they hold enough of the samples.
func (x *stalled) compare(samples, certain uint64) {
	n := x.calm.Total()
	x.row.Stalls.Calm = float64(n) / float64(max(1, samples))
	if x.row.Stalls.Calm < calmLeast || !stats.Supported(n, x.row.P) {
		return
	}
	if v := x.calm.At(measure.Rank(x.row.P, n)); certain == ^uint64(0) || v < measure.Highest {
		x.row.Stalls.CalmNS = &v
	}
}
