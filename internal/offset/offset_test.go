package offset

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirmq/weir/internal/must"
)

func TestAnExchangeByHand(t *testing.T) {
	// The coordinator is 1000 ahead; 30 to get there, 5 to answer, 10 back.
	e := Exchange{T1: 100, T2: 1130, T3: 1135, T4: 145}
	if lo, hi := e.Limits(); lo != 990 || hi != 1030 {
		t.Errorf("limits %d and %d, want 990 and 1030", lo, hi)
	}
	if e.Offset() != 1010 || e.Delay() != 40 {
		t.Errorf("offset %d, delay %d, want 1010 and 40", e.Offset(), e.Delay())
	}
	must.Do(t, e.Check())
}

func TestImpossibleExchangesAreRefused(t *testing.T) {
	for name, e := range map[string]Exchange{
		"answered before asked":  {T1: 100, T2: 0, T3: 10, T4: 99},
		"sent before it came":    {T1: 0, T2: 10, T3: 9, T4: 100},
		"a delay below zero":     {T1: 0, T2: 100, T3: 203, T4: 100},
		"more than drift allows": {T1: 0, T2: 0, T3: int64(time.Second + 501*time.Microsecond), T4: int64(time.Second)},
		"centuries":              {T1: 0, T2: math.MaxInt64, T3: math.MaxInt64, T4: 1},
		"centuries ago":          {T1: math.MinInt64, T2: 0, T3: 0, T4: 1},
	} {
		t.Run(name, func(t *testing.T) {
			track := NewTrack(0)
			if err := track.Add(e); !errors.Is(err, ErrImpossible) {
				t.Errorf("Add = %v, want ErrImpossible", err)
			}
			if c, ok := track.Fit(); ok {
				t.Errorf("fitted %+v to what was refused", c)
			}
		})
	}
}

// While the coordinator prepares its answer, clocks of different rates measure that time differently,
// so that the delay may come out negative.
func TestNegativeDelayFromDriftIsAccepted(t *testing.T) {
	const s = int64(time.Second)
	track := NewTrack(0)
	for i := range int64(10) {
		at := i * 2 * s
		e := Exchange{T1: at, T2: at + at*400/1e6, T4: at + s, T3: at + s + (at+s)*400/1e6}
		must.Do(t, track.Add(e))
	}
	c, _ := track.Fit()
	if got, bound := c.At(10 * s); len(c.Lines) != 1 || max(got-10*s*400/1e6, 10*s*400/1e6-got) > bound {
		t.Errorf("%d ± %d by %+v, want %d", got, bound, c, 10*s*400/1e6)
	}
}

func TestNothingIsKnownBeforeTheFirstExchange(t *testing.T) {
	track := NewTrack(0)
	if _, _, ok := track.Now(0); ok {
		t.Error("an estimate of now")
	}
	if _, ok := track.Live(); ok {
		t.Error("a live line")
	}
	if _, ok := track.Fit(); ok {
		t.Error("a course")
	}
	if _, bound := (Course{}).At(0); bound != math.MaxInt64 || (Course{}).Bound() != math.MaxInt64 {
		t.Errorf("a course without lines has a bound of %d", bound)
	}
}

// One exchange: its middle, half its delay, and MaxDrift from there on.
func TestOneExchangeByHand(t *testing.T) {
	track := NewTrack(0)
	must.Do(t, track.Add(Exchange{T1: 0, T2: 1_000_030, T3: 1_000_030, T4: 40}))
	for _, c := range []struct{ at, bound int64 }{{0, 20}, {40, 20}, {int64(time.Second), 500_020}, {-int64(time.Second), 500_020}} {
		got, bound, ok := track.Now(c.at)
		// The assumed wander adds a thousandth, and rounding two or three.
		if !ok || max(got-1_000_010, 1_000_010-got) > 1 || bound < c.bound || bound > c.bound+c.bound/400+4 {
			t.Errorf("now at %d = %d ± %d, %v; want 1000010 ± %d", c.at, got, bound, ok, c.bound)
		}
	}
	l, _ := track.Live()
	if l.Offset < 1_000_009 || l.Offset > 1_000_011 || l.Bound > 24 || l.DriftBoundPPB < 499_000 {
		t.Errorf("line %+v, want 1000010 ± 20 of any drift", l)
	}
}

// Two exchanges with zero width a thousand seconds apart: the line through both.
func TestTwoExchangesByHand(t *testing.T) {
	track := NewTrack(0)
	const far = int64(1000 * time.Second)
	for _, e := range []Exchange{{0, 5000, 5000, 0}, {far, far + 45_000, far + 45_000, far}} {
		must.Do(t, track.Add(e))
	}
	c, _ := track.Fit()
	if len(c.Lines) != 1 {
		t.Fatalf("%+v, want one line", c)
	}
	l := c.Lines[0]
	if l.From != 0 || l.To != far || l.Offset != 5000 || math.Abs(l.DriftPPB-40) > 0.001 {
		t.Errorf("%+v, want 5000 and 40 ppb from 0 to %d", l, far)
	}
	if w := int64(MaxWander); l.Wander != w || l.Bound < 2*w || l.Bound > 2*w+4 {
		t.Errorf("%+v, want a wander of %d, twice in the bound", l, w)
	}
	if got, bound := c.At(far / 2); got != 25_000 || bound != l.Bound {
		t.Errorf("in the middle %d ± %d, want 25000 ± %d", got, bound, l.Bound)
	}
}

// linearWorld draws a linear clock in whole numbers, so that expected values are exact: offset +
// ppb/1e9 t.
type linearWorld struct{ offset, ppb int64 }

func (w linearWorld) truth(t int64) float64 {
	whole, rest := t/1e9, t%1e9
	return float64(w.offset+whole*w.ppb) + float64(rest)*float64(w.ppb)/1e9
}

func (w linearWorld) coordinator(t int64) int64 {
	whole, rest := t/1e9, t%1e9
	return t + w.offset + whole*w.ppb + int64(math.Floor(float64(rest*w.ppb)/1e9))
}

// For any linear clock and any delays the truth is within the bound, and no step is invented.
func TestLinearClockWithinBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := linearWorld{
			offset: rapid.OneOf(rapid.Int64Range(-1000, 1000), rapid.Int64Range(-1e15, 1e15)).Draw(t, "offset"),
			ppb:    rapid.Int64Range(-499_000, 499_000).Draw(t, "ppb"),
		}
		delays := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 100), rapid.Int64Range(0, 1e6), rapid.Int64Range(0, 3e9))
		track := NewTrack(rapid.IntRange(0, 10).Draw(t, "windows"))
		now := rapid.Int64Range(-1e12, 1e15).Draw(t, "begin")
		begin := now
		for range rapid.IntRange(1, 40).Draw(t, "exchanges") {
			there := now + delays.Draw(t, "there")
			answered := there + delays.Draw(t, "answering")
			e := Exchange{now, w.coordinator(there), w.coordinator(answered), answered + delays.Draw(t, "back")}
			must.Do(t, track.Add(e))
			at := e.T4 + rapid.Int64Range(0, 1e10).Draw(t, "later")
			if got, bound, ok := track.Now(at); !ok || math.Abs(float64(got-w.offset)-(w.truth(at)-float64(w.offset))) > float64(bound) {
				t.Fatalf("now at %d: %d ± %d, want %f", at, got, bound, w.truth(at))
			}
			now = e.T4 + rapid.OneOf(rapid.Int64Range(1, 1e9), rapid.Int64Range(1, 1e11)).Draw(t, "pause")
		}
		c, ok := track.Fit()
		if !ok || len(c.Lines) != 1 || len(c.Steps) != 0 {
			t.Fatalf("%+v, want one line", c)
		}
		l := c.Lines[0]
		instants := []int64{l.From, l.To, l.From + (l.To-l.From)/2, begin - 1e9, now + 1e9}
		for range 5 {
			instants = append(instants, rapid.Int64Range(l.From, l.To).Draw(t, "instant"))
		}
		for _, at := range instants {
			got, bound := c.At(at)
			if off := math.Abs(float64(got-w.offset) - (w.truth(at) - float64(w.offset))); off > float64(bound)+1e-3 {
				t.Fatalf("at %d: %d ± %d, want %f: off by %f; %+v", at, got, bound, w.truth(at), off, l)
			}
			if at >= l.From && at <= l.To && bound > c.Bound() {
				t.Fatalf("at %d a bound of %d, more than the course's, %d", at, bound, c.Bound())
			}
		}
	})
}

// If as many steps are found as there were, each is within its interval and the truth is within the
// bound, even if exchanges with wide limits fit both lines. Steps that contradict no exchange cannot
// be found.
func TestSteppingClockStaysWithinBound(t *testing.T) {
	tried, found := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tried++
		type jump struct{ at, by int64 }
		w := linearWorld{rapid.Int64Range(-1e12, 1e12).Draw(t, "offset"), rapid.Int64Range(-100_000, 100_000).Draw(t, "ppb")}
		length := rapid.Int64Range(10e9, 200e9).Draw(t, "length")
		var jumps []jump
		for i := range rapid.Int64Range(1, 3).Draw(t, "steps") {
			by := rapid.Int64Range(-50e6, 50e6).Filter(func(by int64) bool { return max(by, -by) > 500_000 }).Draw(t, "by")
			jumps = append(jumps, jump{length/4*(i+1) + rapid.Int64Range(0, length/8).Draw(t, "at"), by})
		}
		by := func(at int64) (sum int64) {
			for _, j := range jumps {
				if at >= j.at {
					sum += j.by
				}
			}
			return sum
		}
		coordinator := func(at int64) int64 { return w.coordinator(at) + by(at) }
		delays := rapid.OneOf(rapid.Int64Range(0, 50_000), rapid.Int64Range(0, 1e6), rapid.Int64Range(0, 100e6))
		track := NewTrack(0)
		for now := int64(0); now < length; {
			there := now + delays.Draw(t, "there")
			e := Exchange{now, coordinator(there), coordinator(there), there + delays.Draw(t, "back")}
			if err := track.Add(e); err != nil && !errors.Is(err, ErrImpossible) { // may be so across a step
				t.Fatal(err)
			}
			now = e.T4 + rapid.Int64Range(1e8, 5e9).Draw(t, "pause")
		}
		c, ok := track.Fit()
		if !ok || len(c.Steps) != len(jumps) {
			return
		}
		found++
		for i, s := range c.Steps {
			if off := max(s.At-jumps[i].at, jumps[i].at-s.At); off > s.Uncertain+1 {
				t.Fatalf("%+v, want a step at %d", c, jumps[i].at)
			}
		}
		for range 50 {
			at := rapid.Int64Range(c.Lines[0].From, c.Lines[len(jumps)].To).Draw(t, "instant")
			got, bound := c.At(at)
			if off := math.Abs(float64(got) - w.truth(at) - float64(by(at))); off > float64(bound)+1e-3 || bound > c.Bound() {
				t.Fatalf("at %d: %d ± %d is off by %f, of at most %d; %+v", at, got, bound, off, c.Bound(), c)
			}
		}
	})
	if found < tried/10 { // 21 to 35 of 100 in 150 rounds: fewer would mean that little was tested
		t.Errorf("the steps were found in %d of %d runs", found, tried)
	}
}

// Exchanges come from other hosts: whatever they contain, they are accepted or rejected, and no bound
// is negative.
func TestAnyExchangeIsAcceptedOrRejected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		track := NewTrack(rapid.IntRange(0, 5).Draw(t, "windows"))
		reading := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-farthest, farthest), rapid.SampledFrom([]int64{-farthest, farthest, 0}), rapid.Int64Range(-1e10, 1e10))
		length := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1e9))
		taken := 0
		for range 20 {
			e := Exchange{T1: reading.Draw(t, "t1"), T2: reading.Draw(t, "t2")}
			e.T3 = satAdd(e.T2, length.Draw(t, "answering"))
			e.T4 = satAdd(e.T1, length.Draw(t, "both ways"))
			switch err := track.Add(e); {
			case err == nil:
				taken++
			case !errors.Is(err, ErrImpossible):
				t.Fatal(err)
			}
			at := rapid.Int64().Draw(t, "at")
			if _, bound, ok := track.Now(at); ok != (taken > 0) || bound < 0 {
				t.Fatalf("a bound of %d, %v after %d exchanges", bound, ok, taken)
			}
			if c, ok := track.Fit(); ok {
				if _, bound := c.At(at); bound < 0 || c.Bound() < 0 || len(c.Lines) != len(c.Steps)+1 {
					t.Fatalf("%+v: a bound of %d and of %d in all", c, bound, c.Bound())
				}
				for _, l := range c.Lines {
					if math.Abs(l.DriftPPB) > steepest || l.To < l.From {
						t.Fatalf("%+v", c)
					}
				}
			}
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	w := newWorld(1, linear(7, 10))
	track := NewTrack(8)
	es := w.sample(0, 100*time.Second, 300*time.Millisecond)
	for _, e := range es {
		must.Do(t, track.Add(e))
		if len(track.kept) > 8 || len(track.live) > recent {
			t.Fatalf("%d windows and %d recent ones, want at most 8 and %d", len(track.kept), len(track.live), recent)
		}
	}
	// 100 s in at most 8 windows of 1 s times a power of two: 16 s each, keeping the tightest exchange of
	// each.
	if len(track.kept) != 7 || track.window != int64(16*time.Second) {
		t.Fatalf("%d windows of %v, want 7 of 16s", len(track.kept), time.Duration(track.window))
	}
	for i, k := range track.kept {
		least := k
		for _, e := range es {
			if e.T1/track.window == int64(i) && e.Delay() < least.Delay() {
				least = e
			}
		}
		if least != k {
			t.Errorf("window %d holds %+v, want the tightest, %+v", i, k, least)
		}
	}
	c, _ := track.Fit()
	holds(t, w, c, 0, 100*time.Second)
}

// Exchanges may arrive late and twice, as from a stream that is read again.
func TestFitIgnoresOrder(t *testing.T) {
	w := newWorld(1, linear(7, 10))
	es := w.sample(-10*time.Second, 20*time.Second, 300*time.Millisecond)
	a, b := gather(t, es), NewTrack(0)
	w.rand.Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
	for _, e := range append(es, es[:20]...) {
		must.Do(t, b.Add(e))
	}
	ca, _ := a.Fit()
	cb, _ := b.Fit()
	if ca.Lines[0] != cb.Lines[0] {
		t.Errorf("%+v in order, %+v in none", ca, cb)
	}
}
