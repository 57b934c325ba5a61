package pace

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/needs"
)

// Two views of one clock: the host's reads 5,000 more than ours, and every
// reading of either takes its time.
func twoViews(step, apart int64) (ours func() int64, host func() (int64, bool)) {
	now := int64(0)
	read := func() int64 { now += step; return now }
	return read, func() (int64, bool) { return read() + apart, true }
}

func TestCompareFindsOffsetOfTwoViews(t *testing.T) {
	for name, c := range map[string]struct{ step, apart int64 }{
		"ahead":               {step: 30, apart: 5000},
		"behind":              {step: 30, apart: -5000},
		"read without cost":   {step: 1, apart: 7},
		"as far as can be":    {step: 30, apart: math.MaxInt64 / 2},
		"coarser than a read": {step: 1000, apart: 1},
	} {
		t.Run(name, func(t *testing.T) {
			ours, host := twoViews(c.step, c.apart)
			got := compare(ours, host)
			if !got.shared || got.still {
				t.Fatalf("compare = %+v, want an offset that can be shared", got)
			}
			if d := got.ns - c.apart; d > got.err || d < -got.err {
				t.Errorf("offset %d with an error of %d misses %d", got.ns, got.err, c.apart)
			}
			if got.err > c.step {
				t.Errorf("error %d, want at most the half bracket %d", got.err, c.step)
			}
		})
	}
}

func TestCompareUsesTightestReading(t *testing.T) {
	now, n := int64(0), 0
	ours := func() int64 { return now }
	host := func() (int64, bool) {
		n++
		before, after := int64(900), int64(900)
		switch n {
		case 100: // this one is read soon after ours
			before = 20
		case 200: // this one soon before
			after = 10
		}
		now += before
		h := now + 5000
		now += after
		return h, true
	}
	got := compare(ours, host)
	if want := int64(15); got.err != want {
		t.Errorf("error = %d, want %d, from the two good readings together", got.err, want)
	}
	if d := got.ns - 5000; d > got.err || d < -got.err {
		t.Errorf("offset = %d ± %d, want 5000 within", got.ns, got.err)
	}
}

func TestCompareUsesNarrowestBracketOfDriftingClocks(t *testing.T) {
	now := int64(0)
	ours := func() int64 { now += 10; return now }
	host := func() (int64, bool) { now += 10; return now * 2, true }
	got := compare(ours, host)
	if !got.shared || got.err != 10 {
		t.Errorf("compare = %+v, want the half of one bracket, 10", got)
	}
}

func TestCompareReportsMissingOrStoppedClock(t *testing.T) {
	ours := func() int64 { return 1 }
	if got := compare(ours, func() (int64, bool) { return 0, false }); got != (offset{err: -1}) {
		t.Errorf("without a clock of the host: %+v", got)
	}
	now := int64(0)
	if got := compare(ours, func() (int64, bool) { now += 100; return now, true }); got != (offset{still: true}) {
		t.Errorf("with a clock of ours that stands: %+v", got)
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	c := NewClock()
	last := c.Now()
	if last < 0 {
		t.Fatalf("first reading %d is before the epoch", last)
	}
	for range 100_000 {
		now := c.Now()
		if now < last {
			t.Fatalf("read %d after %d", now, last)
		}
		last = now
	}
}

// Two clocks of one process, as of two processes, given one epoch: a reading
// of one lies between two of the other, within the errors of both.
func TestSameHostClocksAgreeWithinErrors(t *testing.T) {
	a := NewClock()
	time.Sleep(2 * time.Millisecond)
	b := NewClock()
	ea, eb := a.Epoch(), b.Epoch()
	if ea.ErrorNS < 0 {
		needs.Host(t, "epoch", "no clock that processes share")
	}
	if ea.MonotonicNS >= eb.MonotonicNS {
		t.Errorf("epoch %d of the first clock is not before %d of the second", ea.MonotonicNS, eb.MonotonicNS)
	}
	for name, epoch := range map[string]int64{
		"the first clock's epoch":  ea.MonotonicNS,
		"the second clock's epoch": eb.MonotonicNS,
		"one to come":              eb.MonotonicNS + int64(time.Hour),
		"boot":                     0,
	} {
		x, y := a.At(epoch), b.At(epoch)
		if got := x.Epoch().MonotonicNS; got != epoch {
			t.Errorf("at %s: epoch %d, want %d", name, got, epoch)
		}
		off := ea.ErrorNS + eb.ErrorNS
		for range 1000 {
			before, now, after := x.Now(), y.Now(), x.Now()
			if now < before-off || now > after+off {
				t.Fatalf("at %s: read %d, the other clock %d before and %d after; errors sum to %d", name, now, before, after, off)
			}
		}
	}
}

func TestAtMovesOnlyTheEpoch(t *testing.T) {
	c := NewClock()
	e := c.Epoch()
	later := c.At(e.MonotonicNS + int64(time.Hour))
	if now := later.Now(); now >= 0 {
		t.Errorf("an hour before the epoch the clock reads %d, want less than 0", now)
	}
	got := later.Epoch()
	if want := e.Wall.Add(time.Hour); !got.Wall.Equal(want) {
		t.Errorf("wall = %v, want %v", got.Wall, want)
	}
	if got.BootID != e.BootID || got.ErrorNS != e.ErrorNS {
		t.Errorf("epoch = %+v, want boot and error of %+v", got, e)
	}
	if back := later.At(e.MonotonicNS).Epoch(); back != e {
		t.Errorf("there and back: %+v, want %+v", back, e)
	}
	if got.Wall.Location() != time.UTC {
		t.Errorf("wall is in %v, want UTC", got.Wall.Location())
	}
}

func TestMonotonicInstantsSaturate(t *testing.T) {
	c := NewClock()
	if got := c.monotonic(math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("the last instant is %d on the host's clock, want the last", got)
	}
	if got, want := c.monotonic(5), c.Epoch().MonotonicNS+5; got != want {
		t.Errorf("instant 5 is %d on the host's clock, want %d", got, want)
	}
}

func TestClocksOfABubbleAgreeExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewClock()
		time.Sleep(3 * time.Second)
		b := NewClock()
		if got := b.Epoch().MonotonicNS - a.Epoch().MonotonicNS; got != int64(3*time.Second) {
			t.Errorf("epochs are %v apart, want 3s", time.Duration(got))
		}
		if got, want := b.At(a.Epoch().MonotonicNS).Now(), a.Now(); got != want {
			t.Errorf("read %d and %d at one instant", got, want)
		}
	})
}

func TestReadingAllocatesNothing(t *testing.T) {
	c := NewClock()
	if n := testing.AllocsPerRun(1000, func() { c.Now() }); n != 0 {
		t.Errorf("Now allocates %v times", n)
	}
}
