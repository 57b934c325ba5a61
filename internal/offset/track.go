package offset

import (
	"cmp"
	"slices"
	"time"
)

const (
	// Window is a time span of which one exchange is kept: the one with the shortest delay, which has the
	// tightest limits. It grows in a long run.
	Window = time.Second

	// Windows is how many exchanges a track keeps by default: more than an hour's, 128 KiB.
	Windows = 4096

	// recent is how many windows the current estimate uses: half a minute. A drift is then known to a
	// thirtieth of the delay per second, and a clock is assumed to wander by 4 us.
	recent = 30
)

// A Track collects the exchanges of one agent with the coordinator. Its memory is bounded: it keeps
// one exchange per window, and when there are too many windows, all double in length and neighbours
// are merged.
type Track struct {
	most   int
	window int64
	kept   []Exchange // one per window, in order

	// The basis of the current estimate: the latest windows since the last step.
	live   []Exchange
	region region // region of live, with slack
	slack  float64
}

// NewTrack returns a track that keeps at most the given number of windows, at least 2; 0 or less means
// Windows.
func NewTrack(windows int) *Track {
	if windows <= 0 {
		windows = Windows
	}
	return &Track{most: max(2, windows), window: int64(Window)}
}

// Add adds an exchange. Exchanges may come in any order and more than once; Now uses only those that
// came in order of time. An impossible exchange returns an error that wraps ErrImpossible, and changes
// nothing.
func (t *Track) Add(e Exchange) error {
	if err := e.Check(); err != nil {
		return err
	}
	t.keep(e)
	t.follow(e)
	return nil
}

// keep puts e into its window.
func (t *Track) keep(e Exchange) {
	i, found := slices.BinarySearchFunc(t.kept, e, func(a, b Exchange) int { return cmp.Compare(number(a, t.window), number(b, t.window)) })
	switch {
	case !found:
		t.kept = slices.Insert(t.kept, i, e)
	case e.Delay() < t.kept[i].Delay():
		t.kept[i] = e
	}
	for len(t.kept) > t.most {
		t.window *= 2
		t.join()
	}
}

// join reduces each window to one exchange, the one with the shortest delay.
func (t *Track) join() {
	joined := t.kept[:1]
	for _, e := range t.kept[1:] {
		last := &joined[len(joined)-1]
		switch {
		case number(*last, t.window) != number(e, t.window):
			joined = append(joined, e)
		case e.Delay() < last.Delay():
			*last = e
		}
	}
	t.kept = joined
}

// number returns the window of an exchange.
func number(e Exchange, window int64) int64 {
	n := e.T1 / window
	if e.T1%window < 0 {
		n--
	}
	return n
}

// follow updates the current estimate with e.
//
// An exchange that fits no line together with the recent ones reveals a step before it. Some of the
// recent ones may have come after the step, but it is not known which, so that the estimate restarts
// with e alone.
func (t *Track) follow(e Exchange) {
	n := len(t.live)
	if n == 0 {
		t.restart(e)
		return
	}
	last := t.live[n-1]
	if e.T1 <= last.T1 {
		return
	}
	most := wander(e.T4-t.live[0].T1) + float64(MaxWander)
	same := number(e, int64(Window)) == number(last, int64(Window))
	switch {
	case !t.region.fill(append(t.live, e), most):
		t.restart(e)
		return
	case !same:
		if n == recent {
			t.live = slices.Delete(t.live, 0, 1)
		}
		t.live = append(t.live, e)
	case e.Delay() < last.Delay():
		t.live[n-1] = e
	}
	t.slack, _ = t.region.settle(t.live, most)
}

// restart starts the current estimate with e alone.
func (t *Track) restart(e Exchange) {
	t.live = append(t.live[:0], e)
	t.slack, _ = t.region.settle(t.live, float64(MaxWander))
}

// Now returns the offset at an agent's instant, and how far the true one may be from it, according to
// the exchanges so far: the middle and half of the range of lines through those of the last half
// minute at that instant. ok is false if there are none yet.
//
// After a single exchange the bound rests on MaxDrift alone, and soon on the drift seen in the
// exchanges, with its uncertainty and WanderRate. A step after the last exchange, or one that no
// exchange contradicts yet, is not known; Fit may know better later.
func (t *Track) Now(at int64) (offset, bound int64, ok bool) {
	if len(t.live) == 0 {
		return 0, 0, false
	}
	lo, hi := t.region.span(at)
	last := t.live[len(t.live)-1]
	outside := max(seconds(last.T4, at), seconds(at, t.live[0].T1), 0)
	return satAdd(t.region.y0, round((lo+hi)/2)), ceil((hi-lo)/2+t.slack+WanderRate*1e9*outside) + rounding, true
}

// Live returns the line that Now uses, for correcting instants close to the last exchange. Its bound
// holds for the line's whole time, and is thus larger than Now's at most instants.
func (t *Track) Live() (l Line, ok bool) {
	if len(t.live) == 0 {
		return Line{}, false
	}
	return t.region.line(t.live[0].T1, t.live[len(t.live)-1].T4, t.slack), true
}

// Fit returns the course of the offset over all exchanges so far; false if there are none. It takes
// time proportional to the number of windows: below a millisecond for a run of an hour with a steady
// clock.
func (t *Track) Fit() (Course, bool) {
	if len(t.kept) == 0 {
		return Course{}, false
	}
	return fit(t.kept), true
}
