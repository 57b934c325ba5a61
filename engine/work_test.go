package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// about reports whether a percentile is want, up to the width of its bucket.
func about(got, want time.Duration) bool {
	return got >= want && got <= want+want/512
}

func TestWorkDelaysQueuedMessages(t *testing.T) {
	for _, tc := range []struct {
		name                string
		perSecond           uint64
		consumers           int
		median, most, drain time.Duration
	}{
		// The message due at i/rate begins when the i before it are done, or at
		// once. 200 of 2200 are the warm-up's.
		{"a consumer that keeps up", 500, 1, 0, 0, 0},
		{"a consumer that falls behind", 2000, 1, 599500 * time.Microsecond, 1099500 * time.Microsecond, 1100 * time.Millisecond},
		{"two consumers that keep up", 2000, 2, 0, 0, 0},
		{"two consumers that fall behind", 4000, 2, 599500 * time.Microsecond, 1099500 * time.Microsecond, 1100 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(&fake{}, tc.perSecond)
				cfg.Work, cfg.Consumers = time.Millisecond, tc.consumers
				raw := do(t, cfg)
				if got := p(raw, measure.E2EResponse, 50); !about(got, tc.median) {
					t.Errorf("median e2e is %v; want %v", got, tc.median)
				}
				if got := p(raw, measure.E2EResponse, 100); !about(got, tc.most) {
					t.Errorf("longest e2e is %v; want %v", got, tc.most)
				}
				if got := time.Duration(raw.Ended-raw.To) - tc.drain; got < 0 || got > 10*time.Millisecond {
					t.Errorf("drained for %v; want %v", got+tc.drain, tc.drain)
				}
				expect(t, "delivered", raw.All.Delivered, tc.perSecond*11/10)
				expect(t, "lost and pending", raw.All.Lost+raw.All.Pending, 0)
			})
		})
	}
}

// working is a receiver with simulated work, on the clock of a bubble.
func working(t *testing.T, work time.Duration, atOnce int) (x *receiving, end context.CancelFunc) {
	t.Helper()
	x = newReceiving(t, atOnce)
	x.cfg.Work = work
	x.receiving, end = context.WithCancel(t.Context())
	x.k.worker = newWorker(work)
	x.stamped(allAtOnce)
	return x, end
}

// ats returns the instants of deliveries since the last call.
func (x *receiving) ats() (ats []time.Duration) {
	x.ledger.Merge(func(_ int, e *ledger.Event) { ats = append(ats, time.Duration(e.At)) })
	return ats
}

func TestWorkPerClientCallIsSequential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, end := working(t, 3*time.Millisecond, 4)
		defer end()
		began := time.Now()
		must.Do(t, x.k.Deliver(x.deliveries))
		expect(t, "the call took", time.Since(began), 12*time.Millisecond)
		const ms = time.Millisecond
		if got, want := x.ats(), []time.Duration{0, 3 * ms, 6 * ms, 9 * ms}; !slices.Equal(got, want) {
			t.Errorf("work began at %v; want %v", got, want)
		}
	})
}

func TestWorkOvershootIsCompensated(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ work, over, next time.Duration }{
		{10 * ms, 0, 10 * ms},
		{10 * ms, 4 * ms, 6 * ms},
		{10 * ms, 10 * ms, 0},
		{10 * ms, 500 * ms, 0}, // the rest was a stall
		{time.Millisecond / 10, ms, 0},
	} {
		t.Run(fmt.Sprint(tc.work, " and ", tc.over), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, end := working(t, tc.work, 3)
				defer end()
				x.k.worker.over = int64(min(tc.over, max(tc.work, madeUp)))
				began := time.Now()
				for i := range x.deliveries {
					_ = x.k.Deliver(x.deliveries[i : i+1])
					if i == 0 {
						expect(t, "the first took", time.Since(began), tc.next)
					}
				}
				ideal := 3*tc.work - min(tc.over, max(tc.work, madeUp))
				expect(t, "all took", time.Since(began), max(0, ideal))
			})
		})
	}
}

// On the real clock, whose timers all overshoot: the test checks the durations requested from the
// timer, not how long anything takes.
func TestSimulatedWorkTakesItsTotalTime(t *testing.T) {
	x, end := working(t, 50*time.Microsecond, 100)
	defer end()
	must.Do(t, x.k.Deliver(x.deliveries))
	ats := x.ats()
	for i := 1; i < len(ats); i++ {
		if ats[i] < ats[i-1] {
			t.Errorf("work %d began at %v, before the one before, at %v", i, ats[i], ats[i-1])
		}
	}
	// None begins early, whatever was compensated before.
	for i, at := range ats {
		if want := ats[0] + time.Duration(i)*50*time.Microsecond; at < want {
			t.Errorf("work %d began at %v; want %v at the earliest", i, at, want)
		}
	}
}

func TestRunEndInterruptsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, end := working(t, time.Hour, 3)
		time.AfterFunc(time.Second, end)
		began := time.Now()
		if err := x.k.Deliver(x.deliveries); !errors.Is(err, errEnded) {
			t.Errorf("Deliver returned %v; what was cut short is not settled", err)
		}
		expect(t, "it took", time.Since(began), time.Second)
		expect(t, "works begun", len(x.ats()), 1)
	})
}

func TestRunEndsWhileConsumersWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&fake{}, 10)
		cfg.Work, cfg.Drain = 10*time.Minute, 4*time.Second
		raw := do(t, cfg)
		expect(t, "ended", time.Duration(raw.Ended).Truncate(10*time.Millisecond), 5100*time.Millisecond)
		expect(t, "delivered", raw.All.Delivered, 1)
		expect(t, "lost", raw.All.Lost, 0)                              // the consumer is busy, not dry
		expect(t, "pending and late", raw.All.Pending+raw.All.Late, 10) // one is delivered when its consumer stops
		if raw.DrainNeeds != 0 {
			t.Errorf("the drain needs %v more, of which it saw nothing", time.Duration(raw.DrainNeeds))
		}
	})
}

func TestWorkingConsumerIsNotDry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&fake{}, 10)
		cfg.Work, cfg.Drain = 3*time.Second, time.Minute // longer than dryLimit
		raw := do(t, cfg)
		expect(t, "delivered", raw.All.Delivered, 11)
		expect(t, "lost and pending", raw.All.Lost+raw.All.Pending, 0)
	})
}

func TestWorkIsNotIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{feed: func(ctx context.Context, sink driver.Sink) error {
			time.Sleep(time.Second)
			for range 3 {
				_ = sink.Deliver([]driver.Delivery{{Payload: []byte("another run's"), Partition: -1}})
			}
			<-ctx.Done()
			return nil
		}}
		cfg := config(f, 1)
		cfg.Mode, cfg.Names, cfg.Work = Consume, []string{"theirs"}, 8*time.Second // longer than IdleLimit
		raw := must.Get(Run(t.Context(), nil, cfg))(t)
		expect(t, "received", raw.Snapshot.Window.Received, 3)
		expect(t, "from first to last", time.Duration(raw.To-raw.From), 16*time.Second)
	})
}

func TestConsumeRunPassesStartPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{feed: func(ctx context.Context, _ driver.Sink) error { <-ctx.Done(); return nil }}
		cfg := config(f, 1)
		cfg.Mode, cfg.Names, cfg.Consumers = Consume, []string{"theirs"}, 2
		cfg.From, cfg.Durable = driver.Position{At: driver.AtOffset, Offset: "7"}, "mine"
		must.Get(Run(t.Context(), nil, cfg))(t)
		expect(t, "consumers", len(f.specs), 2)
		for _, s := range f.specs {
			expect(t, "subscription, durable, from", []any{s.Subscription, s.Durable, s.From}, []any{"mine", true, cfg.From})
		}
	})
}

func TestWorkAllocatesNothing(t *testing.T) {
	x, end := working(t, time.Nanosecond, 64)
	defer end()
	once := func() {
		x.stamped(allAtOnce)
		_ = x.k.Deliver(x.deliveries)
		x.ledger.Merge(x.first)
	}
	for range 100 {
		once()
	}
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("64 deliveries with work allocate %v times; want 0", n)
	}
}
