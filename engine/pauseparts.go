package engine

import (
	"math"
	"slices"
	"sort"

	"github.com/weirmq/weir/measure"
)

// mostLooks is how many figures a course keeps; of more it leaves out every other look.
const mostLooks = 16_384

// A PauseCourse is how a part of a run stood, look by look, over a pause: what waited is known
// only of all parts together.
type PauseCourse struct {
	At        []int64    // ns since the epoch
	Confirmed []uint64   // messages until then
	Distinct  [][]uint64 // first deliveries until then, by subscription

	every, next int64 // ns between two looks, and when the next is due
}

// lookEvery is how long after one look the next may be, ns.
const lookEvery = int64(2e6)

// note notes how the part stands, where it is time to.
func (c *PauseCourse) note(now int64, r *run) {
	if now < c.next {
		return
	}
	if c.Distinct == nil {
		c.Distinct, c.every = make([][]uint64, len(r.receivers)), lookEvery
	}
	if len(c.At)*(2+len(c.Distinct)) >= mostLooks {
		c.halve()
	}
	c.next = now + c.every
	// Read before the confirmed, as the ledger's own backlog.
	for sub := range c.Distinct {
		c.Distinct[sub] = append(c.Distinct[sub], r.ledger.Distinct(sub))
	}
	c.At, c.Confirmed = append(c.At, now), append(c.Confirmed, r.ledger.Confirmations())
}

// halve leaves out every other look.
func (c *PauseCourse) halve() {
	n := (len(c.At) + 1) / 2
	for i := range n {
		c.At[i], c.Confirmed[i] = c.At[2*i], c.Confirmed[2*i]
		for sub := range c.Distinct {
			c.Distinct[sub][i] = c.Distinct[sub][2*i]
		}
	}
	c.At, c.Confirmed = c.At[:n], c.Confirmed[:n]
	for sub := range c.Distinct {
		c.Distinct[sub] = c.Distinct[sub][:n]
	}
	c.every *= 2
}

// sound reports whether it is what note makes.
func (c *PauseCourse) sound(subs int) bool {
	if c == nil || len(c.At) < 2 || len(c.Confirmed) != len(c.At) || len(c.Distinct) != subs || !slices.IsSorted(c.At) {
		return false
	}
	return !slices.ContainsFunc(c.Distinct, func(d []uint64) bool { return len(d) != len(c.At) })
}

// between is what a figure of the course was at an instant, by a straight line from one look to
// the next.
func (c *PauseCourse) between(at int64, of []uint64) float64 {
	i := sort.Search(len(c.At), func(i int) bool { return c.At[i] > at })
	switch {
	case i == 0:
		return float64(of[0]) // nothing was counted before
	case i == len(c.At):
		return float64(of[i-1])
	}
	share := float64(at-c.At[i-1]) / float64(c.At[i]-c.At[i-1])
	return float64(of[i-1]) + share*(float64(of[i])-float64(of[i-1]))
}

// A pauseSum adds up the courses of all parts.
type pauseSum []*PauseCourse

// span is the time that all of them tell of, and how far their looks are apart.
func (s pauseSum) span() (to, step int64) {
	to, step = math.MaxInt64, lookEvery
	for _, c := range s {
		n := len(c.At)
		to = min(to, c.At[n-1])
		step = max(step, (c.At[n-1]-c.At[0])/int64(n-1))
	}
	return to, step
}

// least is how many first deliveries the subscription had at an instant that had fewest.
func (s pauseSum) least(at int64) uint64 {
	least := math.MaxFloat64
	for sub := range s[0].Distinct {
		var sum float64
		for _, c := range s {
			sum += c.between(at, c.Distinct[sub])
		}
		least = min(least, sum)
	}
	return uint64(math.Round(least))
}

// waiting is how many messages were confirmed and not received at an instant.
func (s pauseSum) waiting(at int64) uint64 {
	var confirmed float64
	for _, c := range s {
		confirmed += c.between(at, c.Confirmed)
	}
	n := uint64(math.Round(confirmed))
	return n - min(n, s.least(at))
}

// pausedOf is the pause of a run from what its parts tell of it; nil where there was none, or
// what waited cannot be told because a part vanished. planned is when it was to begin, ns since
// the epoch.
func pausedOf(parts []*Part, subs int, planned int64) *Paused {
	var all pauseSum
	sum := &Paused{}
	for _, p := range parts {
		x := p.Paused
		if x == nil {
			return nil
		}
		if x.Course == nil { // this part is the whole run
			return x
		}
		if !x.Course.sound(subs) {
			return nil
		}
		all = append(all, x.Course)
		sum.Began, sum.Resumed = max(sum.Began, x.Began), max(sum.Resumed, x.Resumed)
		sum.Old.Merge(&x.Old)
		sum.Live.Merge(&x.Live)
	}
	if len(all) == 0 || subs == 0 || sum.Began == 0 {
		return nil
	}
	// A part that had no time until the pause was over did not pause.
	sum.Began = min(sum.Began, sum.Resumed)
	to, step := all.span()
	var before measure.Counts
	at := step
	for ; at < planned; at += step {
		before.Add(int64(all.waiting(at)), 1)
	}
	sum.Before = uint64(before.Percentile(99))
	sum.Step = step
	sum.Waiting = all.waiting(sum.Resumed)
	sum.Until = max(to, sum.Resumed)
	for at = sum.Resumed; at <= to; at += step {
		if all.waiting(at) <= sum.Before {
			sum.CaughtUp, sum.Until = max(at, 1), at
			break
		}
	}
	sum.Left = all.waiting(sum.Until)
	sum.Received = all.least(sum.Until) - min(all.least(sum.Until), all.least(sum.Resumed))
	return sum
}
