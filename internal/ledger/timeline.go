package ledger

import (
	"math"
	"sync"
)

// A point is a pair of instants of the run: no message up to the one it belongs to was due or
// started later.
type point struct{ due, start int64 }

const (
	maxPoints = 1 << 18 // over all streams: 4 MiB
	minPoints = 4       // of one stream
	reachEach = 16      // messages after which the timeline gets their points, in one batch
)

// A timeline records when the messages of a stream were due and started, in a fixed number of
// points: one for every step messages, at the last of them. Once full it drops every other point
// and doubles the step. For a message it returns the point at or after it, so that an age computed
// from it is never more than the message's own; the error is the time of step messages, at most
// 2/len(points) of the time from the first message.
type timeline struct {
	mu      sync.Mutex
	points  []point // point i is that of message (i+1)*step-1; its capacity is fixed and even
	step    uint64  // a power of two
	reached uint64  // Merge may ask about everything below
	latest  point   // the point of everything below reached that points do not cover
}

func (t *timeline) init(room []point) { t.points, t.step = room, 1 }

// reach records that n messages were sent; fresh are the points of the last of them, in order. The
// sender calls it.
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

// limit returns the sequence below which at may be called while the sender is running.
func (t *timeline) limit() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached
}

// at returns the point of message seq, and the first later sequence with another point. Beyond the
// last point it is rest.
func (t *timeline) at(seq uint64, rest point) (p point, until uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := seq / t.step; i < uint64(len(t.points)) {
		return t.points[i], (i + 1) * t.step
	}
	return rest, math.MaxUint64
}

// stride returns the factor by which the step of a timeline of n points grows if at most that many
// are kept: every stride-th point stays.
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
