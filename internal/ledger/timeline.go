package ledger

import (
	"math"
	"sync"
)

// A point is two instants of the run: no message up to the one it belongs to was
// due or started later.
type point struct{ due, start int64 }

const (
	maxPoints = 1 << 18 // over all streams: 4 MiB
	minPoints = 4       // of one stream
	reachEach = 16      // messages after which the timeline hears of them, all at once
)

// A timeline remembers when the messages of a stream were due and started, in a
// fixed number of points: one for every step messages, at the last of them. Once
// full it forgets every other point and doubles the step. What it gives for a
// message is the point at or after it, so that an age computed from it is never
// more than the message's own; the error is the time of step messages, at most
// 2/len(points) of the time from the first message.
type timeline struct {
	mu      sync.Mutex
	points  []point // point i is that of message (i+1)*step-1; its capacity is fixed and even
	step    uint64  // a power of two
	reached uint64  // Merge may ask about everything below,
	latest  point   // for which this holds where points do not reach
}

func (t *timeline) init(room []point) { t.points, t.step = room, 1 }

// reach tells the timeline that n messages were sent, the points of the last of
// them being fresh, in order. The sender calls it.
func (t *timeline) reach(n uint64, fresh []point) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := n - uint64(len(fresh)) + 1
	for i, p := range fresh {
		t.add(first+uint64(i), p)
	}
	t.reached, t.latest = n, fresh[len(fresh)-1]
}

// add offers the point of the n-th message, which is kept if it falls on a step.
func (t *timeline) add(n uint64, p point) {
	if n&(t.step-1) != 0 {
		return
	}
	if len(t.points) == cap(t.points) {
		half := t.points[:len(t.points)/2]
		for i := range half {
			half[i] = t.points[2*i+1]
		}
		t.points = half
		t.step *= 2
		if n&(t.step-1) != 0 {
			return
		}
	}
	t.points = append(t.points, p)
}

// limit returns below which sequence at may be asked while the sender goes on.
func (t *timeline) limit() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached
}

// at returns the point of message seq, and the first sequence above it that has
// another. Where no point reaches it is that of rest.
func (t *timeline) at(seq uint64, rest point) (p point, until uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := seq / t.step; i < uint64(len(t.points)) {
		return t.points[i], (i + 1) * t.step
	}
	return rest, math.MaxUint64
}

// stride returns how much longer the step of a timeline of n points is where at
// most so many are kept: of every stride points it is the last.
func stride(n, most int) int {
	by := 1
	for n/by > most {
		by *= 2
	}
	return by
}

// newest returns the point that holds for everything below limit.
func (t *timeline) newest() point {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest
}
