package pace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxWrongDriftPPM is the largest drift of a [Wrong], either way: what chrony
// asks of a Linux clock at most (its maxslewrate).
const MaxWrongDriftPPM = 100_000

// maxWrong bounds the durations of a Wrong, so that no instant of a run overflows an int64.
const maxWrong = 100 * 365 * 24 * time.Hour

// A Wrong describes a deliberately wrong clock, for tests of clock correction: an agent that runs
// on such a clock simulates a host with that monotonic clock. The zero value is a right clock.
type Wrong struct {
	// Constant is the offset of the clock from the true one, from its creation on.
	Constant time.Duration
	// DriftPPM is how many microseconds per second the clock runs fast; negative: slow. It counts
	// from the clock's creation.
	DriftPPM float64
	// StepBy is how far the clock jumps once it is StepAt old, in true time. A monotonic clock does
	// not go back: with a negative StepBy it stands still until it is that far behind.
	StepAt, StepBy time.Duration
	// Wall is the offset of the host's wall clock from the true one, as [Clock.Wall] reports it. It
	// does not affect the clock itself.
	Wall time.Duration
}

// Check returns an error for what NewWrongClock rejects: a drift beyond MaxWrongDriftPPM or not a
// number, a step before the clock's creation, or durations of over a hundred years.
func (w Wrong) Check() error {
	switch {
	case math.IsNaN(w.DriftPPM) || math.Abs(w.DriftPPM) > MaxWrongDriftPPM:
		return fmt.Errorf("a drift of %g ppm: at most %d ppm, either way", w.DriftPPM, MaxWrongDriftPPM)
	case w.StepAt < 0:
		return fmt.Errorf("a step at %v: before the clock's making", w.StepAt)
	case w.Constant.Abs() > maxWrong || w.StepAt > maxWrong || w.StepBy.Abs() > maxWrong, w.Wall.Abs() > maxWrong:
		return errors.New("a clock that is wrong by, or after, more than a hundred years")
	}
	return nil
}

// ParseWrong parses a text such as "constant=25ms,drift=40ppm,step=10s:3ms": any of the parts, each
// at most once; wall=25ms is another. The step is given as time and size.
func ParseWrong(text string) (Wrong, error) {
	var w Wrong
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || seen[name] {
			return Wrong{}, wrongText(text, fmt.Errorf("%q", part))
		}
		seen[name] = true
		var err error
		switch name {
		case "constant":
			w.Constant, err = time.ParseDuration(value)
		case "drift":
			w.DriftPPM, err = parsePPM(value)
		case "wall":
			w.Wall, err = time.ParseDuration(value)
		case "step":
			w.StepAt, w.StepBy, err = parseStep(value)
		default:
			err = fmt.Errorf("%q is not known", name)
		}
		if err != nil {
			return Wrong{}, wrongText(text, err)
		}
	}
	if err := w.Check(); err != nil {
		return Wrong{}, wrongText(text, err)
	}
	return w, nil
}

func wrongText(text string, err error) error {
	return fmt.Errorf("a wrong clock %q: %w; want constant=DURATION, drift=NUMBERppm, step=WHEN:BY, wall=DURATION or some of them, by commas", text, err)
}

func parsePPM(s string) (float64, error) {
	number, ok := strings.CutSuffix(s, "ppm")
	ppm, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a drift", s)
	}
	return ppm, nil
}

func parseStep(s string) (at, by time.Duration, err error) {
	when, much, ok := strings.Cut(s, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%q is not a step", s)
	}
	if at, err = time.ParseDuration(when); err != nil {
		return 0, 0, err
	}
	by, err = time.ParseDuration(much)
	return at, by, err
}

// String formats w as ParseWrong reads it.
func (w Wrong) String() string {
	s := fmt.Sprintf("constant=%v,drift=%gppm", w.Constant, w.DriftPPM)
	if w.StepBy != 0 {
		s += fmt.Sprintf(",step=%v:%v", w.StepAt, w.StepBy)
	}
	if w.Wall != 0 {
		s += fmt.Sprintf(",wall=%v", w.Wall)
	}
	return s
}

// NewWrongClock returns a clock that is wrong as described by w, starting now. It exists for tests
// of clock correction.
//
// The clock behaves as on a host with such a monotonic clock: Now, At and the MonotonicNS of Epoch
// agree with each other, a [Waiter] waits for the clock's own instants, and the BootID is unique,
// since its readings compare with no other clock's. Epoch's Wall is the host's. A reading costs
// some nanoseconds more than with a right clock.
//
// The error is that of Check.
func NewWrongClock(w Wrong) (*Clock, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	c := NewClock()
	c.counter = nil
	c.fault = &fault{constant: int64(w.Constant), drift: w.DriftPPM / 1e6, stepAt: int64(w.StepAt), stepBy: int64(w.StepBy), truth: c.offset, wall: w.Wall}
	c.offset += c.fault.constant
	return c, nil
}

// ParseWrongClock returns NewWrongClock of a text for ParseWrong.
func ParseWrongClock(text string) (*Clock, error) {
	w, err := ParseWrong(text)
	if err != nil {
		return nil, err
	}
	return NewWrongClock(w)
}

// A fault maps the true time since a clock's base to the clock's time.
type fault struct {
	constant       int64
	drift          float64
	stepAt, stepBy int64
	truth          int64 // the host's true monotonic clock at the base
	wall           time.Duration
}

// plain returns what a clock with the drift alone has counted after e true nanoseconds since its
// base.
func (f *fault) plain(e int64) int64 { return e + int64(f.drift*float64(e)) }

// apply returns what the clock has counted after e true nanoseconds since its base. It never
// decreases with e. The constant is in the clock's offset.
func (f *fault) apply(e int64) int64 {
	if e < f.stepAt {
		return f.plain(e)
	}
	return max(f.plain(f.stepAt), f.plain(e)+f.stepBy)
}

// invert returns the first instant, in true nanoseconds since the base, at which the clock has
// counted to x or beyond.
func (f *fault) invert(x int64) int64 {
	const far = math.MaxInt64 / 4
	if x > far {
		return far
	}
	if x < -far {
		return -far
	}
	if x <= f.plain(f.stepAt) {
		return f.unplain(x)
	}
	return max(f.stepAt, f.unplain(x-f.stepBy))
}

// unplain returns the first instant at which plain is x or beyond.
func (f *fault) unplain(x int64) int64 {
	e := int64(float64(x) / (1 + f.drift))
	// The quotient is off by its rounding, some hundred nanoseconds at most. Each round reduces
	// that to a tenth or less, as the drift is no more.
	for range 8 {
		e += x - f.plain(e)
	}
	for f.plain(e) < x {
		e++
	}
	for f.plain(e-1) >= x {
		e--
	}
	return e
}

func (c *Clock) wrongNow() int64 { return c.fault.apply(c.sinceBase()) + c.shift }

func (c *Clock) trueMonotonic(t int64) int64 {
	return satAdd(c.fault.truth, c.fault.invert(satAdd(t, -c.shift)))
}

// between returns how long to sleep for the clock to get from one instant to a later one.
func (c *Clock) between(now, t int64) time.Duration {
	if c.fault == nil {
		return time.Duration(t - now)
	}
	return time.Duration(c.trueMonotonic(t) - c.trueMonotonic(now))
}

func (c *Clock) bootID() string {
	if c.fault == nil {
		return BootID()
	}
	return fmt.Sprintf("%s, wrong from %d", BootID(), c.fault.truth)
}

// satAdd returns a+b, saturated at the limits of an int64.
func satAdd(a, b int64) int64 {
	switch s := a + b; {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	default:
		return s
	}
}
