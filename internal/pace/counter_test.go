package pace

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/must"
)

// A simulated host: a counter that runs at hz, and a monotonic clock whose rate a time daemon bends.
type slewed struct {
	hz    float64
	ticks uint64
	ns    float64
}

// pass lets seconds pass in which the clock runs fast by ppm.
func (s *slewed) pass(seconds, ppm float64) {
	s.ticks += uint64(seconds * s.hz)
	s.ns += seconds * 1e9 * (1 + ppm/1e6)
}

func (s *slewed) compare(half uint64) comparison {
	return comparison{ticks: s.ticks, half: half, ns: int64(s.ns)}
}

// Rates of counters: of a slow and a fast TSC, of arm64 before and since 8.6.
var rates = []float64{1.2e9, 5.7e9, 25e6, 1e9}

func TestCounterFollowsClockThatWanders(t *testing.T) {
	for _, hz := range rates {
		s := &slewed{hz: hz, ticks: math.MaxUint64 - uint64(hz*60), ns: 12345} // overflows after a minute
		rng := rand.New(rand.NewPCG(1, uint64(hz)))
		half := uint64(math.Ceil(20e-9 * hz))
		var f follower
		var l *line
		ppm, worst := 0.0, int64(0)
		for i := range 6000 {
			late := rng.Float64() * 0.02 // the follower wakes late
			if l != nil {
				worst = max(worst, apart(l, s))
			}
			next := f.next(s.compare(half))
			if f.lost != "" {
				t.Fatalf("%g Hz: given up after %d comparisons: %s", hz, i, f.lost)
			}
			if i > 0 && next == nil {
				t.Fatalf("%g Hz: no line after comparison %d", hz, i)
			}
			if l != nil {
				if was, is := l.value(next.at-l.at), next.value(0); was != is {
					t.Fatalf("%g Hz: a new line begins at %d, the old one is at %d", hz, is, was)
				}
			}
			l = next
			ppm = max(-50, min(50, ppm+(rng.Float64()-0.5)/2))
			s.pass(0.1+late, ppm)
		}
		if f.bound < worst {
			t.Errorf("%g Hz: a bound of %d ns, and readings were up to %d off", hz, f.bound, worst)
		}
		if most := int64(2e9/hz) + 400; f.bound > most {
			t.Errorf("%g Hz: a bound of %d ns, want at most %d", hz, f.bound, most)
		}
	}
}

// apart returns how far a line is off the simulated clock.
func apart(l *line, s *slewed) int64 {
	d := l.value(s.ticks-l.at) - int64(s.ns)
	return max(d, -d)
}

// A reader that was held up uses an old line as long as it lives; the bound covers that.
func TestBoundCoversLinesStillInUse(t *testing.T) {
	s := &slewed{hz: 2e9}
	var f follower
	var lines []*line
	for i := range 100 {
		if l := f.next(s.compare(10)); l != nil {
			lines = append(lines, l)
		}
		for _, l := range lines {
			if s.ticks-l.at < l.life && apart(l, s) > f.bound {
				t.Fatalf("comparison %d: a living line is %d ns off, the bound is %d", i, apart(l, s), f.bound)
			}
		}
		s.pass(0.1, float64(i%2)*0.4)
	}
}

func TestCounterGivenUp(t *testing.T) {
	for name, breaks := range map[string]func(*slewed){
		"a time daemon slews by 500 ppm": func(s *slewed) { s.pass(0.1, 500) },
		"and back":                       func(s *slewed) { s.pass(0.1, -500) },
		"the counter jumps":              func(s *slewed) { s.ticks += uint64(s.hz) / 1000 },
		"the counter stands":             func(s *slewed) { s.ns += 1e8 },
		"the counter goes back":          func(s *slewed) { s.ticks = 0; s.ns += 1e8 },
	} {
		t.Run(name, func(t *testing.T) {
			s := &slewed{hz: 3e9, ticks: 1 << 40, ns: 1}
			var f follower
			for range 15 {
				f.next(s.compare(30))
				s.pass(0.1, 0.1)
			}
			if f.lost != "" {
				t.Fatalf("given up too early: %s", f.lost)
			}
			breaks(s)
			l := f.next(s.compare(30))
			for range 5 {
				s.pass(0.1, 0)
				l = f.next(s.compare(30))
			}
			if l != nil || f.lost == "" {
				t.Errorf("line %v, lost %q; want the monotonic clock, for good", l, f.lost)
			}
		})
	}
}

func TestLoneCoarseComparisonIgnored(t *testing.T) {
	s := &slewed{hz: 3e9}
	var f follower
	f.next(s.compare(30))
	s.pass(0.1, 0)
	l := f.next(s.compare(30))
	s.pass(0.1, 0)
	s.ns += 5e5 // preempted within the bracket: this says nothing
	if got := f.next(s.compare(3_000_000)); got != l {
		t.Errorf("a comparison to within 1 ms changed the line from %+v to %+v", l, got)
	}
	if f.bound > 100 {
		t.Errorf("and the bound to %d", f.bound)
	}
}

// Without comparisons a line ends, and its successor begins at the monotonic clock.
func TestHeldUpFollowerStartsAnew(t *testing.T) {
	s := &slewed{hz: 3e9}
	var f follower
	f.next(s.compare(30))
	s.pass(0.1, 0)
	l := f.next(s.compare(30))
	s.pass(2, 100)
	if d := s.ticks - l.at; d < l.life {
		t.Fatalf("the line still holds after 2 s: %d of %d ticks", d, l.life)
	}
	next := f.next(s.compare(30))
	if f.lost != "" || next.value(0) != int64(s.ns) {
		t.Errorf("lost %q, at %d; want it to begin at %d", f.lost, next.value(0), int64(s.ns))
	}
}

// followed returns a clock that reads the processor's counter, where there is one.
func followed(tb testing.TB) *Clock {
	tb.Helper()
	c := NewClock()
	stop := c.Follow(func(why string) { tb.Error(why) })
	tb.Cleanup(func() { tb.Logf("%+v", stop()) })
	for end := c.Now() + int64(5*time.Second); counterName() != "" && c.counter.line.Load() == nil && c.Now() < end; {
		time.Sleep(time.Millisecond)
	}
	return c
}

func TestFollowedClockAgreesWithMonotonic(t *testing.T) {
	c := followed(t)
	plain := c.At(c.Epoch().MonotonicNS)
	plain.counter = nil
	last := c.Now()
	for range 200_000 {
		a := plain.Now()
		now := c.Now()
		b := plain.Now()
		if now < a-2*driftLimit || now > b+2*driftLimit {
			t.Fatalf("read %d between %d and %d of the monotonic clock", now, a, b)
		}
		if early := c.NowUnordered(); early < now-2*driftLimit {
			t.Fatalf("read %d after %d", early, now)
		}
		if now < last-2*driftLimit {
			t.Fatalf("read %d after %d", now, last)
		}
		last = now
	}
}

func TestFollowEndsAtMonotonicClock(t *testing.T) {
	c := NewClock()
	stop := c.Follow(func(why string) { t.Error(why) })
	if second := c.Follow(nil)(); second != (Followed{}) {
		t.Errorf("a second follower: %+v", second)
	}
	if got := stop(); got != (Followed{}) {
		t.Errorf("stopped before the second comparison: %+v, want that nothing was read", got)
	}
	if c.counter != nil && c.counter.line.Load() != nil {
		t.Error("still reads the counter")
	}
}

func TestClocksThatAreNotTracked(t *testing.T) {
	wrong := must.Get(NewWrongClock(Wrong{DriftPPM: 100}))(t)
	if got := wrong.Follow(nil)(); got != (Followed{}) {
		t.Errorf("a wrong clock: %+v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		stop := c.Follow(nil)
		time.Sleep(time.Second)
		if got := stop(); got != (Followed{}) {
			t.Errorf("in a bubble: %+v", got)
		}
	})
}
