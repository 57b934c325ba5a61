package offset

import (
	"cmp"
	"slices"
	"time"
)

const (
	// Window is a span of time with one exchange kept: the one with the least delay,
	// which has the tightest limits. It becomes longer in a long run.
	Window = time.Second

	// Windows is how many exchanges a track keeps where it is told nothing else:
	// those of over an hour, 128 KiB.
	Windows = 4096

	// recent is how many windows the estimate of now rests on: half a minute. A
	// drift is then known to a thirtieth of the delay a second, and a clock is
	// assumed to wander by 4 us.
	recent = 30
)

// A Track gathers the exchanges of one agent with the coordinator. Its memory is
// bounded: it keeps one exchange a window, and where there would be more windows
// than it may have, all become twice as long and neighbours are joined.
type Track struct {
	most   int
	window int64
	kept   []Exchange // one a window, in the order of windows

	// What the estimate of now rests on: the latest windows since the last step.
	live   []Exchange
	region region // of live, with slack
	slack  float64
}

// NewTrack returns a track that keeps so many windows at most, at least 2; of 0
// or less it makes Windows.
func NewTrack(windows int) *Track {
	if windows <= 0 {
		windows = Windows
	}
	return &Track{most: max(2, windows), window: int64(Window)}
}

// Add takes an exchange. They may come in any order and more than once; what Now
// says rests only on those that came in the order of time. An exchange that
// cannot have been is refused with an error that wraps ErrImpossible, and
// changes nothing.
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

// join leaves one exchange a window, the one with the least delay.
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

// number is the window that an exchange falls into.
func number(e Exchange, window int64) int64 {
	n := e.T1 / window
	if e.T1%window < 0 {
		n--
	}
	return n
}

// follow brings the estimate of now up to date with e.
//
// An exchange that no line allows beside the recent ones shows a step before it.
// Some of the recent ones may have been after the step, but which is not known,
// so that it alone is where the estimate starts again.
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

// restart begins the estimate of now with e alone.
func (t *Track) restart(e Exchange) {
	t.live = append(t.live[:0], e)
	t.slack, _ = t.region.settle(t.live, float64(MaxWander))
}

// Now returns the offset at an agent's instant, and how far the true one may lie
// from it, by the exchanges so far: the middle and half of what lines through
// those of the last half minute allow at that instant. ok is false where there was
// none yet.
//
// The bound rests on MaxDrift alone after a single exchange, and soon on the
// drift that the exchanges show, which may be wrong by what they leave open and
// by WanderRate. A step that happened after the last exchange, or that none since
// contradicts, is not known; Fit may know better later.
func (t *Track) Now(at int64) (offset, bound int64, ok bool) {
	if len(t.live) == 0 {
		return 0, 0, false
	}
	lo, hi := t.region.span(at)
	last := t.live[len(t.live)-1]
	outside := max(seconds(last.T4, at), seconds(at, t.live[0].T1), 0)
	return satAdd(t.region.y0, round((lo+hi)/2)), ceil((hi-lo)/2+t.slack+WanderRate*1e9*outside) + rounding, true
}

// Live returns the line that Now goes by, for correcting what lies close to the
// last exchange. Its bound holds for the whole time of the line, and is hence
// more than Now's at most instants.
func (t *Track) Live() (l Line, ok bool) {
	if len(t.live) == 0 {
		return Line{}, false
	}
	return t.region.line(t.live[0].T1, t.live[len(t.live)-1].T4, t.slack), true
}

// Fit returns the course of the offset over all exchanges so far, and false where
// there was none. It takes time in proportion to the windows, below a
// millisecond for a run of an hour with a steady clock.
func (t *Track) Fit() (Course, bool) {
	if len(t.kept) == 0 {
		return Course{}, false
	}
	return fit(t.kept), true
}
