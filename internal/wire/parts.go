package wire

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/weirmq/weir/measure"
)

// bucketBits is the binary logarithm of the number of buckets for each doubling of the latency.
const bucketBits = 3

// Bucket returns the bucket of a latency in ns: eight for each doubling, so that the latencies of a
// bucket differ by at most an eighth.
func Bucket(ns int64) int {
	v := uint64(max(ns, 1<<bucketBits))
	shift := bits.Len64(v) - 1 - bucketBits
	return shift<<bucketBits + int(v>>shift)
}

// find returns the level of a latency, added if it is missing.
func (p *Parts) find(ns int64) *Level {
	b := Bucket(ns)
	i, ok := slices.BinarySearchFunc(p.Levels, b, func(l Level, b int) int { return cmp.Compare(l.Bucket, b) })
	if !ok {
		p.Levels = slices.Insert(p.Levels, i, Level{Bucket: b})
	}
	return &p.Levels[i]
}

// leave counts a message that is left out.
func (p *Parts) leave(m *Message, why *uint64) {
	*why++
	p.find(m.End-m.Due).LeftOut++
}

// know adds a message of window w that was held until one instant, whose last byte left at another, and
// whose answer came in at the third.
func (p *Parts) know(w *window, m *Message, held, left, came int64, why *uint64) {
	*why++
	system := max(came-left, 0)
	p.Held.Add(max(held-m.Start, 0), 1)
	p.HostOut.Add(max(left-held, 0), 1)
	p.System.Add(system, 1)
	p.HostIn.Add(max(m.End-came, 0), 1)
	rest := system + max(m.Start-m.Due-m.Late, 0)
	p.Latency.Add(max(m.End-m.Due, 0), 1)
	p.Rest.Add(rest, 1)
	p.group(w, w.delays.beside(m.Start, max(came, left))).Add(system, 1)
	p.level(m, held, left, came)
}

// Steps of time: the first length, doubled when there are too many.
const (
	firstStep = int64(100 * time.Millisecond)
	mostSteps = 64
)

// group returns the counts of w's step and of a delay.
func (p *Parts) group(w *window, delay int64) *measure.Counts {
	p.StepNS = max(p.StepNS, firstStep)
	for w.from/p.StepNS >= mostSteps {
		p.coarser()
	}
	return p.grouped(w.from/p.StepNS, roundedDelay(delay))
}

// grouped returns the counts of a step and delay, added if they are missing.
func (p *Parts) grouped(step, delay int64) *measure.Counts {
	i, ok := slices.BinarySearchFunc(p.Groups, Group{Step: step, Delay: delay}, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Delay, b.Delay))
	})
	if !ok {
		p.Groups = slices.Insert(p.Groups, i, Group{Step: step, Delay: delay})
	}
	return &p.Groups[i].System
}

// coarser doubles the steps.
func (p *Parts) coarser() {
	all := p.Groups
	p.StepNS, p.Groups = 2*p.StepNS, nil
	for i := range all {
		p.grouped(all[i].Step/2, all[i].Delay).Merge(&all[i].System)
	}
}

// roundedDelay rounds up to a power of two or one and a half times that, so that there are few groups.
func roundedDelay(ns int64) int64 {
	if ns <= 1 {
		return 1
	}
	power := int64(1) << bits.Len64(uint64(ns-1))
	if three := power / 4 * 3; ns <= three {
		return three
	}
	return power
}

// level adds it to the sums of its latency.
func (p *Parts) level(m *Message, held, left, came int64) {
	l := p.find(m.End - m.Due)
	l.Known++
	l.Lateness += m.Late
	l.Blocked += max(m.Start-m.Due-m.Late, 0)
	l.Held += max(held-m.Start, 0)
	l.HostOut += max(left-held, 0)
	l.System += max(came-left, 0)
	l.HostIn += max(m.End-came, 0)
}

func (p *Parts) merge(o *Parts) {
	p.Exact += o.Exact
	p.Bounded += o.Bounded
	p.Ambiguous += o.Ambiguous
	p.Unseen += o.Unseen
	p.Late += o.Late
	p.Held.Merge(&o.Held)
	p.HostOut.Merge(&o.HostOut)
	p.System.Merge(&o.System)
	p.HostIn.Merge(&o.HostIn)
	p.Latency.Merge(&o.Latency)
	p.Rest.Merge(&o.Rest)
	p.StepNS = max(p.StepNS, firstStep)
	for p.StepNS < o.StepNS {
		p.coarser()
	}
	for i := range o.Groups {
		g := &o.Groups[i]
		p.grouped(g.Step*o.StepNS/p.StepNS, g.Delay).Merge(&g.System)
	}
	for _, l := range o.Levels {
		b := l.Bucket
		i, ok := slices.BinarySearchFunc(p.Levels, b, func(l Level, b int) int { return cmp.Compare(l.Bucket, b) })
		if !ok {
			p.Levels = slices.Insert(p.Levels, i, l)
			continue
		}
		p.Levels[i].add(&l)
	}
}

func (l *Level) add(o *Level) {
	l.Known += o.Known
	l.LeftOut += o.LeftOut
	l.Lateness += o.Lateness
	l.Blocked += o.Blocked
	l.Held += o.Held
	l.HostOut += o.HostOut
	l.System += o.System
	l.HostIn += o.HostIn
}

// Widths of the neighbourhood of a latency, in buckets to either side: within an eighth, or if too
// few messages lie there, within a third.
const (
	near    = 1
	farther = 3
	fewest  = 5 // messages
)

// Around sums up the messages with about this latency, and returns false if the parts of fewer than
// five of them, or of less than half, are known.
func (p *Parts) Around(ns int64) (Level, bool) {
	b := Bucket(ns)
	for _, width := range []int{near, farther} {
		sum := Level{Bucket: b}
		for i := range p.Levels {
			if d := p.Levels[i].Bucket - b; -width <= d && d <= width {
				sum.add(&p.Levels[i])
			}
		}
		if sum.Known >= fewest {
			return sum, sum.Known >= sum.LeftOut
		}
	}
	return Level{Bucket: b}, false
}

// TotalNS returns the sum of all parts.
func (l *Level) TotalNS() int64 {
	return l.Lateness + l.Blocked + l.Held + l.HostOut + l.System + l.HostIn
}

// HostNS returns the sum of what this host did for certain: lateness, and the time until messages left
// and after they came in. With Held it is the most that this host may have done.
func (l *Level) HostNS() int64 { return l.Lateness + l.HostOut + l.HostIn }
