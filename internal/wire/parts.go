package wire

import (
	"cmp"
	"math/bits"
	"slices"
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

// know adds a message that was held until one instant, whose last byte left at another, and whose
// answer came in at the third.
func (p *Parts) know(m *Message, held, left, came int64, why *uint64) {
	*why++
	p.Held.Add(max(held-m.Start, 0), 1)
	p.HostOut.Add(max(left-held, 0), 1)
	p.System.Add(max(came-left, 0), 1)
	p.HostIn.Add(max(m.End-came, 0), 1)
	p.level(m, held, left, came)
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
