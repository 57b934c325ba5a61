package offset

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
)

// A world simulates two clocks and a network. Its time is the agent's clock; the truth is what must be
// added to it at each instant.
type world struct {
	truth func(t int64) float64
	delay func() int64
	rand  *rand.Rand
}

// coordinator returns the coordinator's reading at an instant of the agent's clock.
func (w *world) coordinator(t int64) int64 { return t + int64(math.Floor(w.truth(t))) }

// exchange returns an exchange that the agent starts at t.
func (w *world) exchange(t int64) Exchange {
	there := t + w.delay()
	answered := there + w.rand.Int64N(100_000)
	return Exchange{T1: t, T2: w.coordinator(there), T3: w.coordinator(answered), T4: answered + w.delay()}
}

// sample makes exchanges one period apart.
func (w *world) sample(from, to, period time.Duration) []Exchange {
	var es []Exchange
	for t := int64(from); t < int64(to); {
		e := w.exchange(t)
		es = append(es, e)
		t = max(e.T4, t+int64(period)+w.rand.Int64N(1000))
	}
	return es
}

// queueing returns delays of 50 us plus an exponential wait of up to 5 ms, independent in each
// direction.
func queueing(r *rand.Rand) func() int64 {
	return func() int64 { return 50_000 + min(5_000_000, int64(r.ExpFloat64()*float64(500_000))) }
}

func linear(offset int64, ppm float64) func(int64) float64 {
	return func(t int64) float64 { return float64(offset) + ppm*1e-6*float64(t) }
}

func stepped(truth func(int64) float64, at, by time.Duration) func(int64) float64 {
	return func(t int64) float64 {
		if t >= int64(at) {
			return truth(t) + float64(by)
		}
		return truth(t)
	}
}

func newWorld(seed uint64, truth func(int64) float64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	return &world{truth: truth, delay: queueing(r), rand: r}
}

// follow adds exchanges and checks, after each, whether the current estimate holds. It skips instants
// for which blind reports that no estimate can hold.
func follow(t *testing.T, w *world, es []Exchange, blind func(at int64) bool) *Track {
	t.Helper()
	track := NewTrack(0)
	for i, e := range es {
		must.Do(t, track.Add(e))
		next := e.T4 + int64(5*time.Second)
		if i+1 < len(es) {
			next = es[i+1].T4
		}
		for _, at := range []int64{e.T4, e.T4 + (next-e.T4)/2, next} {
			got, bound, ok := track.Now(at)
			if !ok {
				t.Fatal("no estimate after an exchange")
			}
			if off := math.Abs(float64(got) - w.truth(at)); off > float64(bound) && !blind(at) {
				t.Fatalf("at %v: %d ± %d is off by %.0f", time.Duration(at), got, bound, off)
			}
		}
	}
	return track
}

func gather(t testing.TB, es []Exchange) *Track {
	t.Helper()
	track := NewTrack(0)
	for _, e := range es {
		must.Do(t, track.Add(e))
	}
	return track
}

func never(int64) bool { return false }

// holds checks a course against the truth at every tenth of a second of a run, and slightly beyond.
func holds(t *testing.T, w *world, c Course, from, to time.Duration) {
	t.Helper()
	bound := c.Bound()
	for at := int64(from - time.Second); at < int64(to+time.Second); at += int64(100 * time.Millisecond) {
		got, b := c.At(at)
		if off := math.Abs(float64(got) - w.truth(at)); off > float64(b) {
			t.Fatalf("at %v: %d ± %d is off by %.0f; %+v", time.Duration(at), got, b, off, c)
		}
		if b > bound && at >= c.Lines[0].From && at <= c.Lines[len(c.Lines)-1].To {
			t.Fatalf("at %v: a bound of %d, more than the course's, %d", time.Duration(at), b, bound)
		}
	}
}

func TestOffsetEstimateForSteadyClock(t *testing.T) {
	for name, truth := range map[string]func(int64) float64{
		"constant":        linear(int64(25*time.Millisecond), 0),
		"fast":            linear(-int64(3*time.Hour), 30),
		"slow":            linear(int64(1e18), -30),
		"at the limit":    linear(0, 499),
		"at the other":    linear(5, -499),
		"of another boot": linear(-int64(400*24*time.Hour), 12.345),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				w := newWorld(seed, truth)
				es := w.sample(0, 60*time.Second, 100*time.Millisecond)
				track := follow(t, w, es, never)
				c, ok := track.Fit()
				if !ok || len(c.Lines) != 1 || len(c.Steps) != 0 {
					t.Fatalf("seed %d: %+v, want one line", seed, c)
				}
				holds(t, w, c, 0, 60*time.Second)
			}
		})
	}
}

// The shortest delay among ten exchanges in a second is 100 us plus what the queues add.
func TestBoundIsReasonable(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(seed, linear(int64(time.Second), 30))
		es := w.sample(0, 12*time.Second, 100*time.Millisecond)
		track := NewTrack(0)
		least := int64(math.MaxInt64)
		for _, e := range es {
			least = min(least, e.Delay())
			must.Do(t, track.Add(e))
			if e.T1 < int64(10*time.Second) {
				continue
			}
			if _, bound, _ := track.Now(e.T4); bound > 3*least {
				t.Errorf("seed %d: at %v a bound of %v, the least delay being %v", seed, time.Duration(e.T4), time.Duration(bound), time.Duration(least))
			}
		}
		c, _ := track.Fit()
		if c.Bound() > 3*least {
			t.Errorf("seed %d: a bound of %v over all, the least delay being %v", seed, time.Duration(c.Bound()), time.Duration(least))
		}
		l, ok := track.Live()
		if off := math.Abs(l.DriftPPB - 30_000); !ok || off > l.DriftBoundPPB {
			t.Errorf("seed %d: a drift of %.0f ± %.0f ppb, want 30000", seed, l.DriftPPB, l.DriftBoundPPB)
		}
	}
}

func TestAStepIsFound(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": 3 * time.Millisecond, "back": -3 * time.Millisecond, "far": time.Hour} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				at := 30*time.Second + time.Duration(seed)*37*time.Millisecond
				w := newWorld(seed, stepped(linear(int64(25*time.Millisecond), 30), at, by))
				es := w.sample(0, 60*time.Second, 100*time.Millisecond)
				// A step can only be known after an exchange has returned that began after it and has limits
				// tighter than the step.
				known := int64(math.MaxInt64)
				for _, e := range es {
					if e.T1 >= int64(at) && e.Delay() < int64(by.Abs())-int64(2*MaxWander) {
						known = min(known, e.T4)
					}
				}
				track := follow(t, w, es, func(t int64) bool { return t >= int64(at) && t <= known })
				c, _ := track.Fit()
				if len(c.Steps) != 1 || len(c.Lines) != 2 {
					t.Fatalf("seed %d: %+v, want one step", seed, c)
				}
				s := c.Steps[0]
				if off := max(s.At-int64(at), int64(at)-s.At); off > s.Uncertain {
					t.Errorf("seed %d: a step at %v ± %v, was at %v", seed, time.Duration(s.At), time.Duration(s.Uncertain), at)
				}
				if s.Uncertain > int64(5*time.Second) {
					t.Errorf("seed %d: the step's time is uncertain by %v", seed, time.Duration(s.Uncertain))
				}
				if off := max(s.By-int64(by), int64(by)-s.By); off > c.Lines[0].Bound+c.Lines[1].Bound {
					t.Errorf("seed %d: a step by %v, was by %v", seed, time.Duration(s.By), by)
				}
				if c.Bound() < int64(by.Abs()) {
					t.Errorf("seed %d: a bound of %v, less than the step", seed, time.Duration(c.Bound()))
				}
				holds(t, w, c, 0, 60*time.Second)
			}
		})
	}
}

// Within an hour the rate changes by 0.1 ppm and back, and the clock strays 30 us from the best line.
func TestSlowWanderIsNotStep(t *testing.T) {
	for seed := range uint64(3) {
		truth := func(t int64) float64 {
			return 1e6 + 10e-6*float64(t) + 30_000*math.Sin(2*math.Pi*float64(t)/1.8e12)
		}
		w := newWorld(seed, truth)
		es := w.sample(0, time.Hour, 500*time.Millisecond)
		track := follow(t, w, es, never)
		c, _ := track.Fit()
		if len(c.Steps) != 0 {
			t.Fatalf("seed %d: %+v, want no step", seed, c)
		}
		if most := 5 * int64(MaxWander); c.Bound() > most {
			t.Errorf("seed %d: a bound of %d, want at most %d", seed, c.Bound(), most)
		}
		holds(t, w, c, 0, time.Hour)
	}
}

// A clock that is corrected back and forth beyond its assumed own wander: the deviation is measured
// and included in the bound.
func TestLargerWanderWidensBound(t *testing.T) {
	for seed := range uint64(20) {
		truth := func(t int64) float64 {
			return 1e6 + 10e-6*float64(t) + 45_000*math.Sin(2*math.Pi*float64(t)/1e11+float64(seed))
		}
		w := newWorld(seed, truth)
		w.delay = func() int64 { return 5000 + w.rand.Int64N(30_000) }
		track := gather(t, w.sample(0, 2*time.Minute, 100*time.Millisecond))
		c, _ := track.Fit()
		if len(c.Steps) != 0 {
			t.Fatalf("seed %d: %+v, want no step", seed, c)
		}
		if c.Lines[0].Wander < 45_000 || c.Bound() > 4*45_000 {
			t.Errorf("seed %d: %+v, want a wander of 45 us at least and four times as much for a bound at most", seed, c)
		}
		holds(t, w, c, 0, 2*time.Minute)
	}
}

// A clock whose rate changes by 20 ppm in mid-run is described by two lines that meet.
func TestRateChangeIsSmallStep(t *testing.T) {
	for seed := range uint64(5) {
		truth := func(t int64) float64 { return 10e-6*float64(t) + 20e-6*math.Max(0, float64(t)-300e9) }
		w := newWorld(seed, truth)
		track := gather(t, w.sample(0, 600*time.Second, 100*time.Millisecond))
		c, _ := track.Fit()
		if len(c.Steps) != 1 {
			t.Fatalf("seed %d: %+v, want one change", seed, c)
		}
		if by := max(c.Steps[0].By, -c.Steps[0].By); by > int64(4*MaxWander) {
			t.Errorf("seed %d: by %v, want little", seed, time.Duration(by))
		}
		holds(t, w, c, 0, 600*time.Second)
	}
}
