// Package offset measures how far another host's clock is off, with a guaranteed bound.
//
// The two clocks are those of an agent and of the coordinator. An [Exchange] of a question and an
// answer has four readings and puts the offset between two certain limits: no message arrives before
// it is sent. A [Track] collects the exchanges of a run. During the run it estimates the current
// offset from the past; afterwards it returns the offset over time ([Course]). All lines within the
// limits of all exchanges are known exactly, and the bound is how far the true line may be from the
// returned one.
//
// Besides the order of sending and receiving, the bound assumes:
//
//   - A clock keeps its rate to [MaxDrift] of the other's, and changes its rate by at most
//     [WanderRate]. If it does not, and the exchanges show it, the course has a [Step]; a violation
//     that contradicts no exchange is not detected.
//   - A reading is rounded to whole nanoseconds, and by no more.
//
// Delays may be arbitrarily long and unequal: that makes the limits wide, not wrong.
//
// All instants and offsets are in nanoseconds. The package reads no clock, and nothing in it is safe
// for concurrent use.
package offset

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Assumptions about clocks.
const (
	// MaxDrift is the largest drift of one clock against the other, as a fraction: 500 ppm. The Linux
	// kernel lets its error bound grow at that rate, and adjusts a clock by no more for NTP (MAXFREQ of
	// its timex.h, the "frequency tolerance" of adjtimex(2)). Real pairs differ by 5 to 30 ppm (Geng et
	// al., "Exploiting a Natural Network Effect for Scalable, Fine-grained Clock Synchronization", NSDI
	// 2018). chrony may slew faster for a while (maxslewrate); that shows as a step.
	MaxDrift = 500e-6

	// WanderRate is how much the drift may change within the observed time, as a fraction: 1 ppm, chrony's
	// maxclockerror, "the maximum assumed frequency error that the system clock can gain on its own
	// between clock updates".
	WanderRate = 1e-6

	// MaxWander is the largest deviation from a straight line that does not count as a step: 50 us, which
	// a clock whose rate changes by WanderRate reaches in 400 s (see wander). It is above what a good time
	// daemon on a local network corrects at once, and below what matters between hosts that are a network
	// apart.
	MaxWander = 50 * time.Microsecond
)

// rounding is the possible error of a limit due to readings in whole nanoseconds.
const rounding = 1

// farthest is the largest reading accepted, so that no difference overflows an int64.
const farthest = math.MaxInt64 / 4

// ErrImpossible is returned for an exchange that cannot have happened.
var ErrImpossible = errors.New("impossible exchange")

// An Exchange is a question from the agent and the coordinator's answer: when the question was sent
// and the answer received, on the agent's clock, and when the question was received and answered, on
// the coordinator's.
type Exchange struct {
	T1 int64 `json:"t1"` // agent: question sent
	T2 int64 `json:"t2"` // coordinator: question received
	T3 int64 `json:"t3"` // coordinator: answer sent
	T4 int64 `json:"t4"` // agent: answer received
}

// Limits returns the lowest and the highest possible offset, which is what must be added to a reading
// of the agent's clock to get the coordinator's.
//
// The question arrived after it was sent, hence hi = T2-T1 holds from T1 on; likewise lo = T3-T4 holds
// until T4. Half their sum is the estimate of RFC 5905, and their distance its delay.
func (e Exchange) Limits() (lo, hi int64) { return e.T3 - e.T4, e.T2 - e.T1 }

// Offset returns the middle of the limits, RFC 5905's theta.
func (e Exchange) Offset() int64 {
	lo, hi := e.Limits()
	return lo + (hi-lo)/2
}

// Delay returns the total time of both ways, RFC 5905's delta: the true offset is within half of it
// around Offset.
func (e Exchange) Delay() int64 {
	lo, hi := e.Limits()
	return hi - lo
}

// Check returns an error that wraps ErrImpossible if the exchange cannot have happened: an answer
// before its question on either clock, a delay more negative than the drift of the two clocks
// explains, or readings centuries away.
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
