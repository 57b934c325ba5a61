package judge

import (
	"time"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Samples are the measured samples of one kind; censored ones may be nil.
type Samples struct {
	Kind     measure.Kind
	Observed *measure.Counts
	Censored *measure.Censored
}

func (x *Samples) all() (all *measure.Counts, certain uint64) {
	if x.Censored == nil {
		x.Censored = new(measure.Censored)
	}
	return together(x.Observed, &x.Censored.Ages)
}

// Stalls records in each supported percentile of d by how much stalls of the host can have moved it. onTime
// are d's samples without lateness (of a closed loop, d's own). usual is how late a sleeping thread
// ordinarily wakes on this host, in ns. Without hiccups it records nothing.
//
// A bound needs no slices: if stalls met a share a of the messages, at most the percentile p-a became p,
// whichever messages they were (see stalled.met). Comparing with the slices that had hardly any stalls is
// sharper, since most stalls meet no message.
func (s *Slices) Stalls(d *result.Dist, onTime Samples, usual int64) {
	woken, probed := s.hiccups(), s.Woken()
	if probed.Total() == 0 {
		return
	}
	all, certain := onTime.all()
	var moved []stalled
	for i := range d.Percentiles {
		row := &d.Percentiles[i]
		if row.P >= 100 || !row.Supported || row.AtLeast {
			continue
		}
		x := stalled{row: row, by: row.NS, usual: usual}
		row.Stalls = x.bound(all, probed)
		if row.Stalls.Met > 0 && row.Stalls.LeastNS > 0 {
			x.by, x.calm = row.Stalls.LeastNS, new(measure.Counts)
			moved = append(moved, x)
		}
	}
	if len(moved) == 0 || !onTime.Censored.Dated() && onTime.Censored.Ages.Total() > 0 {
		return
	}
	s.each(onTime.Kind, onTime.Censored, func(slice int, c *measure.Counts) {
		for _, x := range moved {
			// What a stall held up completes in its slice or soon after.
			if x.calmIn(&woken[slice]) && (slice == 0 || x.calmIn(&woken[slice-1])) {
				x.calm.Merge(c)
			}
		}
	})
	for _, x := range moved {
		x.compare(all.Total(), certain)
	}
}

// near reports whether without something a figure is at most movedMost less.
func near(ns, without int64) bool { return float64(ns) <= (1+movedMost)*float64(without) }

// Woken returns the delays of the thread that only sleeps.
func (s *Slices) Woken() *measure.Counts {
	all, sum := s.hiccups(), new(measure.Counts)
	for i := range all {
		sum.Merge(&all[i])
	}
	return sum
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
	row *result.Percentile
	// What a stall is measured by: the percentile, and for calm slices the least that it can be without
	// stalls, since a percentile that is the host's makes every stall look short.
	by    int64
	usual int64           // delay of an ordinary wake-up
	calm  *measure.Counts // samples from slices with few stalls
}

// over returns how many of the wake-ups were late by more than a part of x.by.
func (x *stalled) over(woken *measure.Counts, part float64) (late, stalls uint64, than int64) {
	than = x.than(part)
	late = woken.Total() - woken.Below(than+1)
	// A stall delays the wake-ups of all its milliseconds, each by a millisecond less than the one before.
	return late, late - (woken.Total() - woken.Below(than+1+int64(time.Millisecond))), than
}

// than returns the delay from which on a wake-up counts: a part of x.by, but more than varies from sleep to
// sleep.
func (x *stalled) than(part float64) int64 {
	return max(oversleepMost*x.usual, x.usual+int64(part*float64(x.by)))
}

// met returns the largest share of the messages that met a stall.
//
// A late wake-up of the thread that only sleeps is one of two things. Everything stood still: then the messages
// due in that millisecond met it, and with the first millisecond of a stall of length h those that were in
// flight, so that of n milliseconds with a message each it met (h + v)/n; all their wake-ups are within it. Or
// this thread alone waited for its core: then the wake-ups of messages were late as often, and each message
// needs wakesPerMessage. Each late wake-up counts once, as what meets more messages, so the sum is a bound for
// any mixture of both.
func (x *stalled) met(woken *measure.Counts) float64 {
	n := float64(woken.Total())
	if n == 0 {
		return 1
	}
	_, stalls, than := x.over(woken, stallLeast)
	short, _, _ := x.over(woken, lateWakeLeast)
	begun := 1 + float64(than+x.by)/float64(time.Millisecond) // messages that the first millisecond of a stall meets
	return min(1, (wakesPerMessage*float64(short)+float64(stalls)*max(0, begun-wakesPerMessage))/n)
}

func (x *stalled) bound(all, probed *measure.Counts) *result.Stalls {
	return x.least(all, x.met(probed))
}

// least returns the lower bound of the percentile if that share of the messages met a stall.
func (x *stalled) least(all *measure.Counts, met float64) *result.Stalls {
	b := &result.Stalls{Met: met}
	if left := x.row.P - 100*b.Met; left > 0 {
		b.LeastNS = min(x.row.NS, all.At(measure.Rank(left, all.Total())))
	}
	return b
}

// calmIn reports whether so few messages of a slice met a stall that the percentile's rank can move by at
// most a tenth of what lies beyond it.
func (x *stalled) calmIn(woken *measure.Counts) bool {
	return x.met(woken) <= latenessValid*min(x.row.P, 100-x.row.P)/100
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
