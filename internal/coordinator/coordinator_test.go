package coordinator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// A recorded is a coordinator of remote workers, in a bubble's time, with its events.
type recorded struct {
	*Coordinator
	events []engine.Event
}

func coordinatorOf(t *testing.T, workers int, more ...func(*engine.Config)) *recorded {
	t.Helper()
	r := schedule.PerSecond(1000)
	k := &recorded{}
	cfg := engine.Config{
		RunID: "t", Run: 7, Definition: driver.Definition{Name: "none", Capabilities: driver.Capabilities{Consume: true}},
		Plan: schedule.Spec{
			Seed: 1, Producers: workers, Destinations: 1, BatchMin: 1, BatchMax: 1, Phases: []schedule.Phase{{From: r, To: r, For: time.Second}},
			Sizes: []schedule.WeightedSize{{Bytes: 64, Weight: 1}},
		},
		Subscriptions: 1, Consumers: workers, InFlight: 10, Drain: 20 * time.Second, Clock: pace.NewClock(),
		OnEvent: func(e engine.Event) { k.events = append(k.events, e) },
	}
	for _, f := range more {
		f(&cfg)
	}
	var names []string
	var shares []engine.Worker
	for i := range workers {
		part := schedule.Part{Index: i, Count: workers}
		names = append(names, string(rune('a'+i)))
		shares = append(shares, engine.Worker{Producers: part, Consumers: part, Follows: i > 0})
	}
	remote := &Remote{Lead: startLead, Translate: func(_ int, ns int64) int64 { return ns }, Ready: func() bool { return true }, Order: func() {}, Look: func() {}}
	k.Coordinator = must.Get(New(cfg, names, shares, remote))(t)
	return k
}

// comes makes a worker reach a stage.
func (k *recorded) comes(i int, stage engine.Stage) { k.Reached(i, int(stage)+1, nil) }

// waits listens for that long.
func (k *recorded) waits(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		k.Listen()
	}
	k.Listen()
}

// begin makes all workers reach all stages.
func (k *recorded) begin() {
	for _, stage := range []engine.Stage{engine.Declared, engine.Opened} {
		for i := range k.workers {
			k.comes(i, stage)
		}
	}
}

// stands makes a worker report its status.
func (k *recorded) stands(i int, s engine.Status) { k.Status(i, &s) }

// kinds returns the kinds of events reported, in order.
func (k *recorded) kinds() string {
	var all []string
	for _, e := range k.events {
		all = append(all, e.Kind)
	}
	return strings.Join(all, " ")
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestStagePassesWhenSlowestMemberArrives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 3)
		passed := func() int { return k.Decided().Released }
		for stage := engine.Declared; stage < engine.NumStages; stage++ {
			for i := range 3 {
				if got := passed(); got != int(stage) {
					t.Fatalf("%d stages are passed when %d workers have come to %v, want %d", got, i, stage, stage)
				}
				if begun := k.Begun(); begun != (stage > engine.Opened) {
					t.Fatalf("begun: %v before %v", begun, stage)
				}
				k.comes(2-i, stage)
				k.comes(2-i, stage) // as it repeats
			}
		}
		if got := passed(); got != int(engine.NumStages) {
			t.Errorf("%d stages are passed", got)
		}
	})
}

func TestMembersWaitForClockSync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		known := false
		k.remote.Ready = func() bool { return known }
		k.begin()
		if k.Begun() || k.Decided().Released != 1 {
			t.Fatalf("begun: %v, %d stages passed, when no clock is known", k.Begun(), k.Decided().Released)
		}
		known = true
		k.Listen()
		if !k.Begun() || k.Decided().Released != 2 {
			t.Errorf("begun: %v, %d stages passed, when the clocks are known", k.Begun(), k.Decided().Released)
		}
		for i := range 2 {
			if ns := k.Decided().EpochsNS[i]; ns != k.epochNS || ns == 0 {
				t.Errorf("the epoch of worker %d is %d, the run's %d", i, ns, k.epochNS)
			}
		}
	})
}

// The exit code of a run follows from the error's kind.
func TestWorkerFailureBeforeStartFailsRun(t *testing.T) {
	for _, want := range []error{engine.ErrGuarantee, driver.ErrUnreachable} {
		bubble(t, func(t *testing.T) {
			k := coordinatorOf(t, 3)
			k.comes(0, engine.Declared)
			k.End(1, nil, fmt.Errorf("opening it: refused: %w", want))
			k.comes(2, engine.Declared)
			k.begin()
			err := k.Why()
			if !errors.Is(err, want) || !strings.Contains(err.Error(), "agent b: opening it: refused") {
				t.Errorf("the run fails with %v, want %v of agent b", err, want)
			}
			o := k.Decided()
			if k.Begun() || o.Abort == nil || o.Abort.Error() != err.Error() || o.Released > int(engine.Opened) {
				t.Errorf("begun: %v; decided is %+v, want to abort: %v", k.Begun(), o, err)
			}
			if raw, err := k.Figures(); raw != nil || !errors.Is(err, want) {
				t.Errorf("join gives %v, %v, want %v", raw, err, want)
			}
		})
	}
}

func TestWorkerSilentBeforeStartFailsRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		k.comes(0, engine.Declared)
		for range 9 {
			time.Sleep(time.Second)
			k.comes(0, engine.Declared)
			k.Listen()
			must.Do(t, k.Why())
		}
		k.waits(beginLimit - 9*time.Second)
		if err := k.Why(); !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), "agent b") {
			t.Errorf("after %v: %v, want agent b silent", beginLimit, err)
		}
	})
}

// Once the run has begun a silent worker blocks nobody, and may come back.
func TestASilentWorkerHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		k.begin()
		lead := time.Duration(k.epochNS - k.base.Epoch().MonotonicNS - k.base.Now())
		time.Sleep(lead)
		k.stands(0, engine.Status{Confirmed: 10, Subs: []engine.SubscriptionStatus{{Distinct: 7}}})
		k.stands(1, engine.Status{Confirmed: 5, Open: 3, Subs: []engine.SubscriptionStatus{{Distinct: 5}}})
		if b := engine.Behind(k.standing()); b.Waiting() != 3 {
			t.Errorf("%d are behind, want 3", b)
		}
		k.waits(SilentLimit / 2)
		k.stands(0, engine.Status{At: k.Now(), Confirmed: 10, Draining: true, Subs: []engine.SubscriptionStatus{{Distinct: 10}}})
		k.waits(SilentLimit / 2)
		must.Do(t, k.Why())
		if got := k.kinds(); got != "agent-silent" {
			t.Fatalf("told of %s", got)
		}
		k.comes(0, engine.Filled)
		k.comes(0, engine.Left)
		if got := k.Decided().Released; got != int(engine.NumStages) {
			t.Errorf("%d stages are passed without the silent one", got)
		}
		time.Sleep(5 * time.Second)
		k.stands(1, engine.Status{})
		if got := k.kinds(); got != "agent-silent agent-back" {
			t.Errorf("told of %s", got)
		}
		if want := (Absence{From: 0, To: int64(SilentLimit) + 5e9}); k.workers[1].absences[0] != want {
			t.Errorf("absent %+v, want %+v", k.workers[1].absences[0], want)
		}
	})
}

// A run that can be started again is called off when it loses a worker before the measured window, however it
// loses it. Later the run continues. The first worker that is left removes what was declared.
func TestLostWorkerCallsTheRunOff(t *testing.T) {
	const warmUp = 20 * time.Second
	lose := map[string]func(k *recorded){
		"its connection ended": func(k *recorded) { k.Vanished(0) },
		"it ended by itself":   func(k *recorded) { k.End(0, &engine.WorkerResult{Interrupted: true}, nil) },
		"silent for 10s": func(k *recorded) {
			for range 101 {
				time.Sleep(100 * time.Millisecond)
				k.stands(1, engine.Status{})
				k.Listen()
			}
		},
	}
	for why, lose := range lose {
		for _, x := range []struct {
			at       time.Duration // after the agreement
			restarts bool
			off      bool
		}{{0, true, true}, {5 * time.Second, true, true}, {5 * time.Second, false, false}, {warmUp + time.Second, true, false}} {
			t.Run(fmt.Sprintf("%s/%v/%v", why, x.at, x.restarts), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					k := coordinatorOf(t, 2, func(c *engine.Config) {
						c.Plan.WarmUp, c.Plan.Phases[0].For = warmUp, 2*warmUp
					})
					k.remote.Restarts = x.restarts
					k.begin()
					for end := time.Now().Add(x.at); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						k.stands(0, engine.Status{})
						k.stands(1, engine.Status{})
						k.Listen()
					}
					lose(k)
					err := k.Why()
					if !x.off {
						if errors.Is(err, ErrLost) {
							t.Errorf("called off: %v", err)
						}
						return
					}
					if !errors.Is(err, ErrLost) || err.Error() != "agent a was lost before the measured window: "+why {
						t.Fatalf("%v; want it called off since worker a is lost: %s", err, why)
					}
					k.Abort(err)
					if d := k.Decided(); d.Abort == nil || d.Remover != 1 {
						t.Errorf("decided %+v; want it aborted, and worker 1 to remove", d)
					}
				})
			})
		}
	}
}

// ledgerOf returns the part of a worker that sent n messages of a stream, all confirmed, and
// received the first got of another.
func ledgerOf(streams int, stream uint32, n uint64, other uint32, got uint64) *ledger.Part {
	l := ledger.New(ledger.Config{Streams: streams, Consumers: []int{1}})
	for seq := range n {
		l.Sent(stream, seq, 1, 1)
		l.Confirmed(stream, seq)
	}
	for seq := range got {
		l.Reader(0, 0).Delivered(&ledger.Event{Stream: other, Partition: -1, Seq: seq, Due: 1, Start: 1, At: 2})
	}
	l.Merge(func(int, *ledger.Event) {})
	p := new(ledger.Part)
	l.Part(p)
	return p
}

// As many agents as a fleet may have, in virtual time: each is up to 20 s late for the start and up to 2 s with its
// reports.
func TestLargestFleetStartsReportsAndDrains(t *testing.T) {
	const agents, seconds, each = 512, 10, 3 // messages of an agent
	bubble(t, func(t *testing.T) {
		var sent []uint64
		k := coordinatorOf(t, agents, func(c *engine.Config) {
			c.Plan.Phases[0].For = seconds * time.Second
			c.OnInterval = func(iv *measure.Interval) { sent = append(sent, iv.Counters[measure.Measure].Sent) }
		})
		random := rand.New(rand.NewPCG(1, 2))
		// all does something for each agent, after a random time up to most.
		all := func(most time.Duration, do func(i int)) {
			var done sync.WaitGroup
			for i := range agents {
				wait := time.Duration(random.Int64N(int64(most)))
				done.Go(func() { time.Sleep(wait); do(i) })
			}
			done.Wait()
		}
		for _, stage := range []engine.Stage{engine.Declared, engine.Opened} {
			if got := k.Decided().Released; got != int(stage) {
				t.Fatalf("%d stages were passed before all agents reached %v", got, stage)
			}
			all(20*time.Second, func(i int) { k.comes(i, stage) })
		}
		if !k.Begun() {
			t.Fatal("the run has not begun though all agents are ready")
		}
		time.Sleep(time.Duration(-k.Now()))
		all(2*time.Second, func(i int) {
			for s := range int64(seconds) {
				time.Sleep(time.Second)
				iv := &measure.Interval{From: s * 1e9, To: (s + 1) * 1e9}
				iv.Counters[measure.Measure].Sent = 1
				k.stands(i, engine.Status{At: k.Now(), Subs: []engine.SubscriptionStatus{{}}})
				k.Interval(i, iv)
			}
		})
		if len(sent) != seconds || slices.ContainsFunc(sent, func(n uint64) bool { return n != agents }) {
			t.Errorf("seconds with %v messages; want %d with %d each", sent, seconds, agents)
		}
		for i := range agents {
			k.stands(i, engine.Status{At: k.Now(), Draining: true, Confirmed: each, Subs: []engine.SubscriptionStatus{{Distinct: each}}})
		}
		k.Look() // from here on nothing is open
		time.Sleep(time.Millisecond)
		for i := range agents {
			if i == agents-1 && k.Look().Over {
				t.Error("the drain is over before the last agent's ledger is known")
			}
			k.Ledger(i, k.Now(), ledgerOf(agents, uint32(i), each, uint32((i+1)%agents), each))
		}
		if !k.Look().Over {
			t.Error("the drain is not over though nothing is missing")
		}
	})
}

// The end is fixed when enough messages wait over all workers together, not before the pause
// begins, and does not change.
func TestPauseEndsSimultaneouslyForAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2, func(cfg *engine.Config) { cfg.Pause = engine.Pause{At: 100 * time.Millisecond, Waiting: 50} })
		k.begin()
		at := func(ms int64, confirmed, distinct uint64) int64 {
			time.Sleep(time.Duration(ms*1e6 - k.Now()))
			k.stands(0, engine.Status{At: k.Now(), Confirmed: confirmed, Subs: []engine.SubscriptionStatus{{}}})
			k.stands(1, engine.Status{At: k.Now(), Subs: []engine.SubscriptionStatus{{Distinct: distinct}}})
			k.look(k.Now())
			return k.Decided().Resume / 1e6
		}
		for _, x := range []struct {
			ms                  int64
			confirmed, distinct uint64
			want                int64
		}{
			{90, 90, 10, 0}, // before the pause
			{110, 110, 90, 0},
			{150, 150, 101, 0},
			{151, 151, 101, 451},
			{200, 500, 101, 451},
			{600, 600, 600, 451},
		} {
			if got := at(x.ms, x.confirmed, x.distinct); got != x.want {
				t.Errorf("after %d ms the end is at %d ms; want %d", x.ms, got, x.want)
			}
		}
	})
}

func TestDrainEndsWhenNothingIsMissing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		k.begin()
		time.Sleep(time.Second)
		drained := func(i int, open, confirmed, distinct uint64) {
			k.stands(i, engine.Status{At: k.Now(), Draining: true, Open: open, Confirmed: confirmed, Last: k.Now(), Subs: []engine.SubscriptionStatus{{Distinct: distinct, Last: k.Now()}}})
		}
		look := func(what string, stop, over bool) {
			t.Helper()
			if o := k.look(k.Now()); o.Stop != stop || o.Over != over {
				t.Fatalf("%s: %+v", what, o)
			}
		}
		look("nobody stands anywhere yet", false, false)
		k.stands(0, engine.Status{At: k.Now(), Subs: []engine.SubscriptionStatus{{}}})
		k.stands(1, engine.Status{At: k.Now(), Draining: true, Subs: []engine.SubscriptionStatus{{}}})
		look("one is still sending", false, false)
		drained(0, 1, 5, 5)
		drained(1, 0, 5, 5)
		look("something is open", true, false)
		drained(0, 0, 5, 4)
		look("one fewer was got than was confirmed", true, false)
		drained(0, 0, 5, 5)
		look("nothing is open, and nobody's ledger is known", true, false)
		k.Ledger(0, k.Now(), ledgerOf(2, 0, 5, 1, 5))
		k.Ledger(1, k.Now(), ledgerOf(2, 1, 5, 0, 5))
		look("ledgers as old as the quiet", true, false)
		time.Sleep(time.Millisecond)
		k.Ledger(0, k.Now(), ledgerOf(2, 0, 5, 1, 5))
		look("one newer ledger", true, false)
		k.Ledger(1, k.Now(), ledgerOf(2, 1, 5, 0, 4))
		look("one is missing, by the ledgers", true, false)
		k.Ledger(1, k.Now(), ledgerOf(2, 1, 5, 0, 5))
		look("all are known and nothing is missing", true, true)
		if o := k.drain.outcome; !o.Dry[0] {
			t.Errorf("the outcome is %+v", o)
		}
	})
}

func TestDrainEndsWhenDryOrAtLimit(t *testing.T) {
	for name, c := range map[string]struct {
		flows bool
		want  time.Duration // minimum length of the drain
		dry   bool
	}{"dry": {false, 2 * time.Second, true}, "limit": {true, 20 * time.Second, false}} {
		bubble(t, func(t *testing.T) {
			k := coordinatorOf(t, 2)
			for i := range k.workers {
				k.workers[i].holds = func(int) (bool, bool) { return true, true }
			}
			k.begin()
			time.Sleep(time.Second)
			began := time.Now()
			distinct, last := uint64(0), k.Now()
			for n := 0; ; n++ {
				if c.flows {
					distinct, last = uint64(n/100), k.Now()
				}
				for i := range 2 {
					k.stands(i, engine.Status{At: k.Now(), Draining: true, Confirmed: 1e6, Last: last, Subs: []engine.SubscriptionStatus{{Distinct: distinct, Last: last}}})
				}
				if k.look(k.Now()).Over {
					break
				}
				time.Sleep(10 * time.Millisecond)
				if time.Since(began) > time.Minute {
					t.Fatalf("%s: not over after a minute", name)
				}
			}
			if took := time.Since(began); took < c.want || took > c.want+time.Second {
				t.Errorf("%s: over after %v, want %v", name, took, c.want)
			}
			if o := k.drain.outcome; o.Dry[0] != c.dry {
				t.Errorf("%s: %+v", name, o)
			}
		})
	}
}

// A worker that fails, or loses the system, stops all.
func TestFailingMemberStopsAll(t *testing.T) {
	for name, s := range map[string]engine.Status{"failed": {Failed: "full"}, "gone": {Gone: "it went"}} {
		bubble(t, func(t *testing.T) {
			k := coordinatorOf(t, 3)
			k.begin()
			time.Sleep(time.Second)
			for i := range 3 {
				k.stands(i, engine.Status{At: k.Now()})
			}
			if o := k.look(k.Now()); o.Stop {
				t.Fatalf("%+v", o)
			}
			k.stands(1, s)
			o := k.look(k.Now())
			if !o.Stop || o.Why != s.Failed+s.Gone || o.Over {
				t.Errorf("%s: %+v", name, o)
			}
			if got := k.Decided(); !got.Stop || got.Why != o.Why {
				t.Errorf("%s: decided %+v", name, got)
			}
		})
	}
}

func TestHaltedRunStaysStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		k.begin()
		time.Sleep(time.Second)
		for i := range 2 {
			k.stands(i, engine.Status{At: k.Now()})
		}
		k.halt(false)
		for range 3 {
			if o := k.look(k.Now()); !o.Stop || o.Over {
				t.Fatalf("%+v", o)
			}
		}
	})
}

// A worker that ends without figures after the start stops the others, and what is known of it
// counts.
func TestWorkerFailureAfterStartReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		k.begin()
		time.Sleep(time.Second)
		k.End(1, nil, errors.New("it died"))
		if !k.Decided().Stop || k.Decided().Abort != nil {
			t.Errorf("%+v", k.Decided())
		}
		k.End(0, &engine.WorkerResult{Ledger: *ledgerOf(2, 0, 5, 1, 0)}, nil)
		k.End(0, nil, errors.New("again")) // its end counts once
		if !k.Ended(false) {
			t.Error("not ended")
		}
		raw, err := k.Figures()
		if raw == nil || len(raw.Workers) != 2 || !raw.Workers[1].Missing || raw.Workers[0].Missing {
			t.Fatalf("%+v, %v", raw, err)
		}
		if got := raw.Workers[1].Epoch; got.MonotonicNS != k.epochNS || got.Wall.IsZero() {
			t.Errorf("its epoch is %+v", got)
		}
	})
}

// What a worker that was given up reports later changes no figure and reaches no callback.
func TestReportsAfterFiguresAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		told := 0
		k := coordinatorOf(t, 2, func(cfg *engine.Config) { cfg.OnInterval = func(*measure.Interval) { told++ } })
		k.begin()
		k.End(0, &engine.WorkerResult{Ledger: *ledgerOf(2, 0, 5, 1, 0)}, nil)
		late := func(to int64) *measure.Interval {
			iv := &measure.Interval{From: to - 1e9, To: to}
			iv.Kinds[measure.Hiccups][measure.Measure].Add(1000, 1)
			return iv
		}
		k.Interval(1, late(1e9))
		raw, err := k.Figures()
		if raw == nil {
			t.Fatal(err)
		}
		before, events := told, len(k.events)
		k.Interval(1, late(2e9))
		k.Ledger(1, 2e9, ledgerOf(2, 1, 5, 1, 1))
		k.Event(1, engine.Event{Kind: "gc", Text: "late"})
		if n := raw.Workers[1].Snapshot.Kinds[measure.Hiccups][measure.Measure].Total(); before == 0 || told != before || len(k.events) != events || n != 1 {
			t.Errorf("%d intervals before, %d later; %d events later; %d stalls counted, want 1", before, told-before, len(k.events)-events, n)
		}
	})
}

// If all workers vanished before reporting anything there are no figures, and the error names the
// cause.
func TestRunWithoutReportsHasNoFigures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		k.begin()
		k.waits(SilentLimit + 5*time.Second)
		if !k.Ended(true) {
			t.Fatal("somebody is still heard of")
		}
		if raw, err := k.Figures(); raw != nil || !errors.Is(err, ErrAgent) {
			t.Errorf("%v, %v", raw, err)
		}
	})
}

// While this process stands still it hears from nobody.
func TestWhoStoodStillBlamesNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 2)
		k.begin()
		k.waits(5 * time.Second)
		time.Sleep(time.Hour) // nobody listens
		k.waits(4 * time.Second)
		if k.Ended(true) || k.kinds() != "" {
			t.Errorf("after 9 s of listening: %s", k.kinds())
		}
		k.stands(0, engine.Status{})
		k.waits(2 * time.Second)
		if got := k.kinds(); got != "agent-silent" || !k.workers[1].silent {
			t.Errorf("told of %q", got)
		}
	})
}

// Every connected worker knows only its own connections: one that does not answer, or still holds
// something, decides.
func TestSystemPolledThroughEveryWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := coordinatorOf(t, 4)
		k.workers[0].silent = true
		k.End(1, nil, errors.New("gone"))
		for _, c := range []struct {
			nothing, answers [4]bool
			want             [2]bool
		}{
			{[4]bool{true, true, true, true}, [4]bool{true, true, true, true}, [2]bool{true, true}},
			{[4]bool{false, false, true, true}, [4]bool{false, false, true, true}, [2]bool{true, true}}, // they are not connected
			{[4]bool{true, true, true, false}, [4]bool{true, true, true, true}, [2]bool{false, true}},
			{[4]bool{true, true, true, true}, [4]bool{true, true, false, true}, [2]bool{false, false}},
		} {
			for i, m := range k.workers {
				m.holds = func(int) (bool, bool) { return c.nothing[i], c.answers[i] }
			}
			if nothing, answered := k.ask(0); nothing != c.want[0] || answered != c.want[1] {
				t.Errorf("%+v: %v, %v", c, nothing, answered)
			}
		}
	})
}
