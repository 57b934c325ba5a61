package engine

import (
	"math"
	"slices"
	"sort"

	"github.com/weirmq/weir/measure"
)

// mostLooks and mostLooksAlone are how many samples a course keeps, for one of several workers and
// for a single one; beyond that it drops every other sample.
const (
	mostLooks      = 16_384
	mostLooksAlone = 1 << 18
)

// A PauseCourse samples one worker's counts over a pause: what waited is known only from all
// workers together.
type PauseCourse struct {
	At        []int64    // ns since the epoch
	Confirmed []uint64   // messages until then
	Distinct  [][]uint64 // first deliveries until then, by subscription
	Dead      []uint64   // dead letters until then

	every, next int64 // ns between two samples, and when the next is due
	most        int   // samples
}

func newPauseCourse(r *run) *PauseCourse {
	c := &PauseCourse{Distinct: make([][]uint64, len(r.receivers)), every: lookEvery, most: mostLooks}
	if r.assigned.whole() {
		c.most = mostLooksAlone
	}
	return c
}

// lookEvery is the minimum interval of two samples, ns.
const lookEvery = int64(2e6)

// note takes a sample if it is time.
func (c *PauseCourse) note(now int64, r *run) {
	if now < c.next {
		return
	}
	if len(c.At)*(3+len(c.Distinct)) >= c.most {
		c.halve()
	}
	c.next = now + c.every
	// Read before confirmed, so that no confirmed message is hidden by a delivery that comes
	// meanwhile.
	var dead uint64
	for sub := range c.Distinct {
		x := r.subscriptionStatus(sub)
		c.Distinct[sub], dead = append(c.Distinct[sub], x.Distinct), dead+x.Dead
	}
	c.Dead = append(c.Dead, dead)
	c.At, c.Confirmed = append(c.At, now), append(c.Confirmed, r.ledger.Confirmations())
}

// halve drops every other sample.
func (c *PauseCourse) halve() {
	n := (len(c.At) + 1) / 2
	for i := range n {
		c.At[i], c.Confirmed[i], c.Dead[i] = c.At[2*i], c.Confirmed[2*i], c.Dead[2*i]
		for sub := range c.Distinct {
			c.Distinct[sub][i] = c.Distinct[sub][2*i]
		}
	}
	c.At, c.Confirmed, c.Dead = c.At[:n], c.Confirmed[:n], c.Dead[:n]
	for sub := range c.Distinct {
		c.Distinct[sub] = c.Distinct[sub][:n]
	}
	c.every *= 2
}

// sound reports whether the course is one that note can produce.
func (c *PauseCourse) sound(subs int) bool {
	if c == nil || len(c.At) < 2 || len(c.Confirmed) != len(c.At) || len(c.Dead) != len(c.At) || len(c.Distinct) != subs || !slices.IsSorted(c.At) {
		return false
	}
	return !slices.ContainsFunc(c.Distinct, func(d []uint64) bool { return len(d) != len(c.At) })
}

// between returns a count of the course at an instant, interpolated linearly between samples.
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

// A pauseSum adds up the courses of all workers.
type pauseSum struct {
	courses []*PauseCourse
	lost    []*measure.Lost // of Raw
}

// span returns the end of the time that all courses cover, and their largest step.
func (s *pauseSum) span() (to, step int64) {
	to, step = math.MaxInt64, lookEvery
	for _, c := range s.courses {
		n := len(c.At)
		to = min(to, c.At[n-1])
		step = max(step, (c.At[n-1]-c.At[0])/int64(n-1))
	}
	return to, step
}

// sum returns the sum of a count over all courses at an instant.
func (s *pauseSum) sum(at int64, of func(c *PauseCourse) []uint64) (sum float64) {
	for _, c := range s.courses {
		sum += c.between(at, of(c))
	}
	return sum
}

// received returns how many first deliveries a subscription had at an instant.
func (s *pauseSum) received(sub int, at int64) float64 {
	return s.sum(at, func(c *PauseCourse) []uint64 { return c.Distinct[sub] })
}

// least returns the smallest number of first deliveries of any subscription at an instant.
func (s *pauseSum) least(at int64) uint64 {
	least := math.MaxFloat64
	for sub := range s.courses[0].Distinct {
		least = min(least, s.received(sub, at))
	}
	return uint64(math.Round(least))
}

// waiting returns how many messages waited at an instant: see measure.Backlog.
func (s *pauseSum) waiting(at int64) uint64 {
	confirmed := s.sum(at, func(c *PauseCourse) []uint64 { return c.Confirmed }) - s.sum(at, func(c *PauseCourse) []uint64 { return c.Dead })
	b := make(measure.Backlog, len(s.courses[0].Distinct))
	for sub := range b {
		b[sub].Missing = uint64(max(0, math.Round(confirmed-s.received(sub, at))))
	}
	return b.Net(at, s.lost)
}

// pausedOf combines the pause of a run from its workers' results; nil if there was none, or if the
// waiting messages are unknown because a worker vanished. lost is that of Raw, and planned when the
// pause was to begin, ns since the epoch.
func pausedOf(parts []*WorkerResult, lost []*measure.Lost, subs int, planned int64) *Paused {
	all := pauseSum{lost: lost}
	sum := &Paused{Newest: make([]int64, subs)}
	for _, p := range parts {
		x := p.Paused
		if x == nil {
			return nil
		}
		if !x.Course.sound(subs) || len(x.Newest) != subs {
			return nil
		}
		all.courses = append(all.courses, x.Course)
		for sub, due := range x.Newest {
			sum.Newest[sub] = max(sum.Newest[sub], due)
		}
		sum.Began, sum.Resumed = max(sum.Began, x.Began), max(sum.Resumed, x.Resumed)
		sum.Old.Merge(&x.Old)
		sum.Live.Merge(&x.Live)
	}
	if len(all.courses) == 0 || subs == 0 || sum.Began == 0 {
		return nil
	}
	// A worker that had no time left before the end of the pause did not pause.
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
