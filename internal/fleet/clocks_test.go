package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/measure"
)

// wrongs are deliberately wrong clocks.
func wrongs() []string {
	return []string{"constant=25ms", "constant=-1h,drift=40ppm", "drift=-300ppm", "constant=3s,drift=20ppm,step=7s:3ms", "step=9s:-2ms", "drift=100ppm,step=7300ms:40ms"}
}

func wrongClock(t *testing.T, text string) *pace.Clock {
	t.Helper()
	w := must.Get(pace.ParseWrong(text))(t)
	return must.Get(pace.NewWrongClock(w))(t)
}

// The reported clock bound must cover the error of each of an agent's instants, as corrected at the time:
// in the first second, when little is known yet, while the next correction is on its way, and around a
// step. In virtual time, with arbitrarily asymmetric delays.
func TestClockBoundHoldsForEveryCorrectedInstant(t *testing.T) {
	for _, wrong := range wrongs() {
		t.Run(wrong, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, theirs := pace.NewClock(), wrongClock(t, wrong)
				c := newClocks(base, []protocol.About{{Name: "a", Clock: "another"}}, 9)
				random := rand.New(rand.NewPCG(1, 2))
				delay := func(most time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(most)))) }
				exchange := func() {
					var e offset.Exchange
					e.T1 = theirs.Monotonic()
					delay(400 * time.Microsecond)
					e.T2 = base.Monotonic()
					e.T3 = e.T2
					delay(100 * time.Microsecond)
					e.T4 = theirs.Monotonic()
					c.add(0, []offset.Exchange{e})
				}
				var epoch int64 // the coordinator's
				var used, next protocol.Line
				var worst, at int64
				for n := 0; n < 200; n++ { // tenths of a second
					exchange()
					if epoch == 0 && c.known() {
						epoch = base.Monotonic() + int64(farLead)
						c.translate(0, epoch)
					}
					if n%linesEvery == 0 {
						next = c.lines()[0]
					}
					for m := range 20 { // the orders travel for some ms
						if m == 4 {
							used = next
						}
						time.Sleep(5*time.Millisecond - 25*time.Microsecond)
						if epoch == 0 || base.Monotonic() < epoch {
							continue
						}
						mine := theirs.Monotonic() - c.agents[0].epoch
						right := base.Monotonic() - epoch
						if off := mine + used.Added(mine) - right; max(off, -off) > worst {
							worst, at = max(off, -off), right
						}
					}
				}
				for range 10 {
					exchange()
					time.Sleep(100 * time.Millisecond)
				}
				w := c.watch(0)
				t.Logf("off by %v at most, after %v; bound %v", time.Duration(worst), time.Duration(at), time.Duration(w.BoundNS))
				if w.BoundNS < worst {
					t.Errorf("an instant was off by %v, after %v; the bound is %v", time.Duration(worst), time.Duration(at), time.Duration(w.BoundNS))
				}
				// The bound must also be tight: a step and what the exchanges leave open, not more.
				step := int64(0)
				for _, s := range w.Course.Steps {
					step = max(step, s.By, -s.By)
				}
				if most := step + int64(time.Millisecond); w.BoundNS > most {
					t.Errorf("the bound is %v, want %v at most", time.Duration(w.BoundNS), time.Duration(most))
				}
			})
		})
	}
}

// Agents that read one clock share its measurements; the coordinator's own clock is exact.
func TestSharedClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := pace.NewClock()
		c := newClocks(base, []protocol.About{{Name: "a", Clock: "x"}, {Name: "b", Clock: "x"}, {Name: "c", Clock: pace.ClockID()}, {Name: "d"}, {Name: "e"}}, 9)
		good := func(i int64) offset.Exchange {
			return offset.Exchange{T1: i * 1e8, T2: i*1e8 + 500, T3: i*1e8 + 600, T4: i*1e8 + 1200}
		}
		tell := func(who ...int) {
			for i := range int64(enough) {
				for _, w := range who {
					c.add(w, []offset.Exchange{good(i + 1)})
				}
			}
		}
		tell(1, 3)
		if c.known() {
			t.Error("all are known, and nothing was said of e, which shares its clock with nobody")
		}
		c.add(4, []offset.Exchange{{T1: 5, T4: 1}}) // cannot have been
		if w := c.watch(4); w.Exchanges != 0 || w.BoundNS >= 0 {
			t.Errorf("of e is known %+v", w)
		}
		tell(4)
		if !c.known() {
			t.Error("not all are known")
		}
		for i := range 5 {
			c.translate(i, base.Monotonic())
		}
		a, b, own := c.watch(0), c.watch(1), c.watch(2)
		if fmt.Sprint(a) != fmt.Sprint(b) || a.Exchanges != enough || a.Same {
			t.Errorf("%+v of a, %+v of b", a, b)
		}
		if !own.Same || own.OffsetNS != 0 || own.AtStartNS != 0 {
			t.Errorf("%+v of the coordinator's own", own)
		}
		if k := c.bound([]placement.Flow{{From: 0, To: 1}}); !k.Crosses || !k.Known {
			t.Errorf("%+v", k)
		}
		if k := c.bound(nil); k.Crosses {
			t.Errorf("%+v", k)
		}
	})
}

// A crossing is what the test saw of a message, on the host's correct clock except for sender, the sender's
// clock at the instant left.
type crossing struct {
	left, sender, spread int64 // spread: how far apart the two may have been read
	start                int64 // the stamp's: on the sender's clock, since its epoch
	due                  int64
	before, after        int64 // of the delivery
}

// Latencies between two agents with wrong clocks, for a system with a known delay, are within the reported
// bound, also around a step; messages that seem to arrive before they were sent are counted and kept.
func TestErrorBetweenWrongClocksStaysWithinBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, a, b string
		late       time.Duration
		negative   bool
	}{
		{"constants and drifts", "constant=25ms,drift=40ppm", "constant=-3s,drift=-20ppm", 5 * time.Millisecond, false},
		{"a step of the receiver's", "constant=25ms,drift=40ppm", "drift=-20ppm,step=6s:3ms", 5 * time.Millisecond, false},
		{"a step of the sender's, which is more than the delay", "step=6s:40ms", "constant=1s", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, drivers := memoryDrivers(t)
			m.late = c.late
			right := pace.NewClock()
			var sender *pace.Clock // of the task
			seen := map[mark]*crossing{}
			m.entered = func(payload []byte) {
				x := &crossing{}
				before := right.Monotonic()
				x.sender = sender.Monotonic()
				after := right.Monotonic()
				x.left, x.spread = before, after-before
				k := markOf(payload)
				x.start, x.due = stampOf(payload).Start, k.due
				m.mu.Lock()
				seen[k] = x
				m.mu.Unlock()
			}
			m.got = func(payload []byte, deliver func()) {
				before := right.Monotonic()
				deliver()
				after := right.Monotonic()
				m.mu.Lock()
				x := seen[markOf(payload)]
				x.before, x.after = before, after
				m.mu.Unlock()
			}
			w := open(t, drivers, Options{})
			for name, text := range map[string]string{"a": c.a, "b": c.b} {
				w.agent(t, name, func(a *agent.Agent) {
					a.OwnTime = true
					a.Clock = func() *pace.Clock { // one for each run, wrong from its job on
						clock := wrongClock(t, text)
						if name == "a" {
							m.mu.Lock()
							sender = clock
							m.mu.Unlock()
						}
						return clock
					}
				})
			}
			w.await(t, 2)
			done := w.do(t, runOf(t, drivers, "run", "topology: {producers: 1, consumers: 1}\nload: {rate: 400/s}\nwarmup: 500ms\nmeasure: 8s\nplacement: {producers: [a], consumers: [b]}"+common))
			exact(t, done.Raw, 3400) // what it sent is held to the bound
			if k := done.Clock; !k.Crosses || !k.Known || k.BoundNS <= 0 {
				t.Fatalf("of the clocks is known %+v", k)
			}
			var low, high []int64
			for _, x := range seen {
				if x.due >= int64(500*time.Millisecond) {
					start := x.left - (x.sender - done.Agents[0].Part.Epoch.MonotonicNS - x.start)
					low = append(low, x.before-start-2*x.spread)
					high = append(high, x.after-start+2*x.spread)
				}
			}
			slices.Sort(low)
			slices.Sort(high)
			got, bound := &done.Raw.Snapshot.Kinds[measure.E2EService][measure.Measure], done.Clock.BoundNS
			if got.Total() != uint64(len(low)) || len(low) == 0 {
				t.Fatalf("%d times of %d messages, want as many", got.Total(), len(low))
			}
			for rank := uint64(1); rank <= got.Total(); rank++ {
				least, most := low[rank-1]-bound, high[rank-1]+bound
				if v := got.At(rank); v < least || v > most+most/500+1 { // the upper end of a bucket of 1/1024
					t.Errorf("the %d. of %d times is %v, in truth %v to %v, and the bound %v", rank, len(low), time.Duration(v),
						time.Duration(low[rank-1]), time.Duration(high[rank-1]), time.Duration(bound))
					break
				}
			}
			n := done.Raw.Negative[measure.Measure]
			t.Logf("bound %v, %d negative by %v at most; p50 %v of %v", time.Duration(bound), n.Count, time.Duration(n.WorstNS), time.Duration(got.At(got.Total()/2)), time.Duration(low[len(low)/2]))
			// Where a busy host sends nothing around the step, or delivers later than the step is long, nothing seems to
			// arrive before it was sent.
			quick := done.Raw.All.Unsent == 0 && time.Duration(low[len(low)/2]) < 20*time.Millisecond
			if c.negative && (quick && n.Count == 0 || n.WorstNS > bound) {
				t.Errorf("%d are negative, by %v at most; want some, within %v", n.Count, time.Duration(n.WorstNS), time.Duration(bound))
			}
			if !c.negative && n.Count > 0 && bound < int64(c.late) {
				t.Errorf("%d are negative, by %v at most, where the delay is %v and the bound %v", n.Count, time.Duration(n.WorstNS), c.late, time.Duration(bound))
			}
		})
	}
}
