// Package offset tells how far the clock of another host is off, with a bound
// that holds.
//
// The two clocks are that of an agent and that of the coordinator. An
// [Exchange] of a question and an answer has four readings and puts the offset
// between two limits, for certain: no message arrives before it is sent. A
// [Track] gathers the exchanges of a run. It says what the offset is now, from
// what is past, and, after the run, on which line of time it lay ([Course]):
// all lines that keep within the limits of all exchanges are known exactly, and
// the bound is how far the true one may lie from the one that is given.
//
// What the bound rests on, beside the order of sending and receiving:
//
//   - A clock keeps its rate to [MaxDrift] of the other's, and its rate to
//     [WanderRate]. Where it does not, and the exchanges show it, the course has
//     a [Step]; what no exchange contradicts is not seen.
//   - A reading is rounded to whole nanoseconds, and by no more.
//
// Delays may be as long and as unequal as they like: that makes limits wide, not
// wrong.
//
// All instants and offsets are in nanoseconds. Nothing here reads a clock, and
// nothing is safe for use by several goroutines at once.
package offset

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// What is assumed of clocks.
const (
	// MaxDrift is the largest drift of one clock against the other, in parts: 500
	// ppm. The Linux kernel lets its error bound grow by as much, and bends a
	// clock by no more for NTP (MAXFREQ of its timex.h, the "frequency tolerance"
	// of adjtimex(2)). Real pairs differ by 5 to 30 ppm (Geng et al., "Exploiting
	// a Natural Network Effect for Scalable, Fine-grained Clock Synchronization",
	// NSDI 2018). chrony may slew faster for a while (maxslewrate); that shows as
	// a step.
	MaxDrift = 500e-6

	// WanderRate is by how much the drift may change within the time looked at,
	// in parts: 1 ppm, chrony's maxclockerror, "the maximum assumed frequency
	// error that the system clock can gain on its own between clock updates".
	WanderRate = 1e-6

	// MaxWander is the longest way that a clock is seen to keep from a straight line
	// before that is called a step: 50 us, which a clock with a rate that changes by
	// WanderRate comes to in 400 s (see wander). It is above what a good time daemon on a
	// local network corrects at a time, and below what matters to a time between hosts
	// that are a network apart.
	MaxWander = 50 * time.Microsecond
)

// rounding is how far a limit may be off because readings are whole nanoseconds.
const rounding = 1

// farthest bounds the readings that are taken, so that no difference of two is
// more than an int64 holds.
const farthest = math.MaxInt64 / 4

// ErrImpossible is the error for an exchange that cannot have been.
var ErrImpossible = errors.New("impossible exchange")

// An Exchange is a question from the agent and the coordinator's answer: when it
// was sent and the answer received, on the agent's clock, and when it was
// received and answered, on the coordinator's.
type Exchange struct {
	T1 int64 `json:"t1"` // agent: question sent
	T2 int64 `json:"t2"` // coordinator: question received
	T3 int64 `json:"t3"` // coordinator: answer sent
	T4 int64 `json:"t4"` // agent: answer received
}

// Limits returns what the offset at most and at least was. It is what must be
// added to a reading of the agent's clock to get the coordinator's.
//
// The question arrived after it was sent, hence hi = T2-T1 holds from T1 on, and
// the answer likewise, hence lo = T3-T4 holds until T4. Half their sum is the
// estimate of RFC 5905, and their distance its delay.
func (e Exchange) Limits() (lo, hi int64) { return e.T3 - e.T4, e.T2 - e.T1 }

// Offset is the middle between the limits, RFC 5905's theta.
func (e Exchange) Offset() int64 {
	lo, hi := e.Limits()
	return lo + (hi-lo)/2
}

// Delay is how long both ways took together, RFC 5905's delta: the offset lies
// within half of it around Offset.
func (e Exchange) Delay() int64 {
	lo, hi := e.Limits()
	return hi - lo
}

// Check returns an error that wraps ErrImpossible where the exchange cannot have
// been: an answer before its question on either clock, a delay below zero by
// more than the drift of the two clocks explains, or readings of centuries.
func (e Exchange) Check() error {
	for _, t := range []int64{e.T1, e.T2, e.T3, e.T4} {
		if t > farthest || t < -farthest {
			return fmt.Errorf("%w: a reading of %d ns", ErrImpossible, t)
		}
	}
	switch {
	case e.T4 < e.T1:
		return fmt.Errorf("%w: answered %v before it was asked", ErrImpossible, time.Duration(e.T1-e.T4))
	case e.T3 < e.T2:
		return fmt.Errorf("%w: answer sent %v before the question came", ErrImpossible, time.Duration(e.T2-e.T3))
	case float64(e.Delay()) < -MaxDrift*float64(e.T4-e.T1)-2*rounding:
		return fmt.Errorf("%w: a delay of %v", ErrImpossible, time.Duration(e.Delay()))
	}
	return nil
}
