package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// virtual runs a test in a bubble of virtual time, where instants are exact.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestOpenLoopSendsEachMessageWhenDue(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			f := &fake{blocks: blocks, delay: 3 * time.Millisecond}
			raw := do(t, config(f, 1000))
			expect(t, "measured scheduled", raw.Measured.Scheduled, 1000)
			expect(t, "scheduled in all", raw.All.Scheduled, 1100)
			expect(t, "delivered", raw.Measured.Delivered, 1000)
			expect(t, "worst lateness", p(raw, measure.SendLateness, 100), time.Duration(0))
			expect(t, "worst response", p(raw, measure.SendResponse, 100), 3*time.Millisecond)
			expect(t, "least response", time.Duration(raw.Snapshot.Kinds[measure.SendResponse][measure.Measure].Min()), 3*time.Millisecond)
			expect(t, "lost and pending", raw.All.Lost+raw.All.Pending, 0)
			expect(t, "destinations removed", f.removed, f.made)
		})
	}
}

func TestSlotWaitIsBlockedTimeWithinResponse(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			cfg := config(&fake{blocks: blocks, delay: 10 * time.Millisecond}, 50)
			cfg.InFlight = 1
			cfg.Plan.Phases = []schedule.Phase{
				{From: schedule.PerSecond(50), To: schedule.PerSecond(50), For: 500 * time.Millisecond},
				{Burst: 10, Every: time.Second, For: time.Second},
			}
			raw := do(t, cfg)
			expect(t, "scheduled", raw.Measured.Scheduled, 35)
			if got := p(raw, measure.SendService, 100); got != 10*time.Millisecond {
				t.Errorf("worst service = %v; want 10ms: waiting is not service", got)
			}
			// Ten at once through one slot of 10 ms: the last waits for nine.
			got := p(raw, measure.SendResponse, 100)
			if got < 100*time.Millisecond || got > 101*time.Millisecond {
				t.Errorf("worst response = %v; want 100ms and at most %v of looking for each", got, 50*time.Microsecond)
			}
			if l := p(raw, measure.SendLateness, 100); l > 0 {
				t.Errorf("worst lateness = %v; want 0: a full producer is not the pacer's fault", l)
			}
		})
	}
}

func TestBlockingClientIsNotLateness(t *testing.T) {
	for _, producers := range []int{1, 2} { // 1: the pacer itself is blocked
		virtual(t, func(t *testing.T) {
			n := 0
			f := &fake{blocks: true, enter: func(_ context.Context, producer int) {
				if producer == 0 {
					if n++; n == 300/producers {
						time.Sleep(400 * time.Millisecond)
					}
				}
			}}
			cfg := config(f, 1000)
			cfg.Plan.Producers, cfg.InFlight = producers, 1000
			raw := do(t, cfg)
			expect(t, "worst lateness", p(raw, measure.SendLateness, 100), time.Duration(0))
			expect(t, "confirmed", raw.Measured.Confirmed, 1000)
			if b := p(raw, measure.SendBlocked, 100); b < 397*time.Millisecond || b > 400*time.Millisecond {
				t.Errorf("%d producers: worst blocked = %v; want nearly the 400ms of the refusal", producers, b)
			}
		})
	}
}

func TestStalledConnectionDoesNotDelayOthers(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			f := &fake{blocks: blocks, delay: time.Millisecond}
			if blocks {
				f.enter = func(ctx context.Context, producer int) {
					if producer == 7 {
						<-ctx.Done()
					}
				}
			} else {
				f.forget = func(producer, _ int) bool { return producer == 7 }
			}
			cfg := config(f, 25_000)
			cfg.Plan.Producers, cfg.Consumers, cfg.InFlight, cfg.Drain = 25, 25, 50, time.Second
			raw := do(t, cfg)
			expect(t, "scheduled", raw.Measured.Scheduled, 25_000)
			expect(t, "confirmed", raw.Measured.Confirmed, 24_000)
			expect(t, "worst confirmed response", p(raw, measure.SendResponse, 100), time.Millisecond)
			expect(t, "worst lateness", p(raw, measure.SendLateness, 100), time.Duration(0))
			// The stalled producer's thousand are all there, as not confirmed.
			expect(t, "censored", raw.Censored[measure.SendResponse][measure.Measure].Total(), 1000)
		})
	}
}

func TestPoliciesForAFullProducer(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			f := &fake{blocks: blocks, forget: func(_, n int) bool { return n >= 150 }}
			cfg := config(f, 100)
			cfg.Plan.WarmUp, cfg.InFlight, cfg.Drain = 0, 10, 100*time.Millisecond
			cfg.Plan.Phases[0].For = 2 * time.Second
			cfg.WhenFull = Drop
			raw := do(t, cfg)
			expect(t, "dropped", raw.All.Dropped, 40)
			expect(t, "unconfirmed", raw.All.Unconfirmed, 10)
			expect(t, "censored response", raw.Censored[measure.SendResponse][measure.Measure].Total(), 50)

			cfg = config(&fake{blocks: blocks, forget: f.forget}, 100)
			cfg.Plan.WarmUp, cfg.InFlight, cfg.Drain = 0, 10, 100*time.Millisecond
			cfg.Plan.Phases[0].For = 2 * time.Second
			cfg.WhenFull = Fail
			raw = do(t, cfg)
			if raw.Failed == "" {
				t.Error("when_full: fail did not end the run")
			}
			expect(t, "scheduled", raw.All.Scheduled, 161)

			cfg = config(&fake{blocks: blocks, forget: f.forget}, 100)
			cfg.Plan.WarmUp, cfg.InFlight, cfg.Drain = 0, 10, 100*time.Millisecond
			cfg.Plan.Phases[0].For = 2 * time.Second
			raw = do(t, cfg)
			expect(t, "unsent", raw.All.Unsent, 40)
		})
	}
}

func TestBatchIsSentWhenLastMessageDue(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			f := &fake{blocks: blocks}
			cfg := config(f, 1000)
			cfg.Plan.BatchMin, cfg.Plan.BatchMax = 4, 4
			cfg.Plan.WarmUp = 0
			raw := do(t, cfg)
			expect(t, "sent", raw.All.Sent, 1000)
			expect(t, "batches", len(f.batches), 250)
			expect(t, "worst lateness", p(raw, measure.SendLateness, 100), time.Duration(0))
			expect(t, "worst response: the first of four waits 3 ms", p(raw, measure.SendResponse, 100), 3*time.Millisecond)
			if got := p(raw, measure.SendResponse, 50); got < time.Millisecond || got > 1001*time.Microsecond {
				t.Errorf("median response = %v; want 1ms", got)
			}

			f = &fake{blocks: blocks}
			cfg = config(f, 1003)
			cfg.Plan.BatchMin, cfg.Plan.BatchMax, cfg.Plan.Producers = 1, 10, 3
			raw = do(t, cfg)
			expect(t, "all of a plan that ends in mid-batch is sent", raw.All.Unsent, 0)
			if slices.Max(f.batches) > 10 || len(f.batches) < 100 {
				t.Errorf("batches of up to %d, %d of them", slices.Max(f.batches), len(f.batches))
			}
		})
	}
}

func TestManyDestinationsSubscriptionsAndConsumers(t *testing.T) {
	cases := []struct {
		name                                              string
		producers, destinations, subscriptions, consumers int
	}{
		{"one of each", 1, 1, 1, 1},
		{"more producers than destinations", 7, 3, 2, 5},
		{"fewer producers and consumers than destinations", 2, 7, 2, 3},
		{"25 competing consumers", 25, 1, 1, 25},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				cfg := config(&fake{}, 2000)
				cfg.Plan.Producers, cfg.Plan.Destinations = c.producers, c.destinations
				cfg.Subscriptions, cfg.Consumers = c.subscriptions, c.consumers
				raw := do(t, cfg)
				expect(t, "confirmed", raw.Measured.Confirmed, 2000)
				expect(t, "delivered", raw.Measured.Delivered, 2000*c.subscriptions)
				for i, x := range raw.Shares {
					expect(t, "delivered to "+x.Name, x.Messages.Delivered, 2000)
					expect(t, "name", x.Name, fmt.Sprintf("s%d", i))
				}
				expect(t, "duplicated, lost, foreign", raw.All.Duplicated+raw.All.Lost+raw.All.Foreign, 0)
			})
		})
	}
}

func TestOutcomesAreCounted(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{
			confirm: func(_, n int) error {
				if n%100 == 99 {
					return driver.ErrTimeout
				}
				return nil
			},
			copies: func(_, n int) int {
				switch n % 100 {
				case 10:
					return 0 // lost
				case 20:
					return 3
				}
				return 1
			},
		}
		cfg := config(f, 1000)
		cfg.Plan.WarmUp = 0
		raw := do(t, cfg)
		m := raw.All
		expect(t, "failed", m.Failed, 10)
		expect(t, "failed and delivered", m.FailedDelivered, 10)
		expect(t, "lost", m.Lost, 10)
		expect(t, "duplicated", m.Duplicated, 20)
		expect(t, "delivered", m.Delivered, 980)
		expect(t, "kinds of failure", raw.Errors[0].Class, "timeout")
		expect(t, "their count", raw.Errors[0].Count, 10)
		expect(t, "censored send response", raw.Censored[measure.SendResponse][measure.Measure].Total(), 10)
		expect(t, "censored e2e response", raw.Censored[measure.E2EResponse][measure.Measure].Total(), 10)
		for k, nth := range map[measure.Kind]int64{measure.SendResponse: 99, measure.SendService: 99, measure.E2EResponse: 10, measure.E2EOnTime: 10} {
			next := nth * 1e6 // there is a message every millisecond
			for at, n := range raw.Censored[k][measure.Measure].Cells() {
				if n != 1 || next < at.From || next >= at.To {
					t.Errorf("%v: %d censored from %d to %d; want the one due at %d", k, n, at.From, at.To, next)
				}
				next += 100e6
			}
			if next != nth*1e6+1000e6 {
				t.Errorf("%v: the censored end before %d", k, next)
			}
		}
	})
}

func TestStoppedRunReturnsItsMeasurements(t *testing.T) {
	virtual(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(600*time.Millisecond, func() { close(stop) })
		cfg := config(&fake{delay: time.Millisecond}, 1000)
		raw := must.Get(Run(t.Context(), stop, cfg))(t)
		balanced(t, raw, 1)
		if !raw.Interrupted || raw.All.Scheduled < 500 || raw.All.Scheduled > 620 || raw.All.Pending+raw.All.Lost+raw.All.Unsent > 0 {
			t.Errorf("interrupted %v, %+v", raw.Interrupted, raw.All)
		}
		if got := time.Duration(raw.To - raw.From); got > 520*time.Millisecond {
			t.Errorf("window of %v after a stop in its middle", got)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
		defer cancel()
		cfg = config(&fake{blocks: true, enter: func(ctx context.Context, _ int) { <-ctx.Done() }}, 1000)
		raw = must.Get(Run(ctx, nil, cfg))(t)
		balanced(t, raw, 1)
		expect(t, "unconfirmed of a system that never took the first", raw.All.Unconfirmed, 1)
	})
}

func TestLostAndPendingAreDistinguished(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{copies: func(_, n int) int { return n & 1 }}, 100)
		raw := do(t, cfg)
		if raw.All.Lost != 55 || raw.All.Pending != 0 {
			t.Errorf("run dry for 2 s: lost %d, pending %d; want 55, 0", raw.All.Lost, raw.All.Pending)
		}
		cfg.Drain = time.Second
		cfg.Options = &fake{copies: func(_, n int) int { return n & 1 }}
		raw = do(t, cfg)
		if raw.All.Lost != 0 || raw.All.Pending != 55 {
			t.Errorf("drain shorter than 2 s: lost %d, pending %d; want 0, 55", raw.All.Lost, raw.All.Pending)
		}
		cfg.Drain = 5 * time.Second
		cfg.Options = &fake{copies: func(_, n int) int { return n & 1 }, down: driver.ErrUnreachable}
		raw = do(t, cfg)
		if raw.All.Lost != 0 || raw.All.Pending != 55 || raw.Gone == nil {
			t.Errorf("system gone: lost %d, pending %d, gone %v; want 0, 55, an error", raw.All.Lost, raw.All.Pending, raw.Gone)
		}
	})
}

func TestStartErrors(t *testing.T) {
	cases := []struct {
		name string
		fake *fake
		want error
	}{
		{"a consumer that is never ready", &fake{unready: true}, ErrNotReady},
		{"a guarantee too weak", &fake{guarantee: driver.Written}, ErrGuarantee},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				cfg := config(c.fake, 10)
				cfg.Guarantee = driver.Received
				_, err := Run(t.Context(), nil, cfg)
				if !errors.Is(err, c.want) {
					t.Errorf("Run = %v; want %v", err, c.want)
				}
				expect(t, "destinations removed", c.fake.removed, c.fake.made)
			})
		})
	}
}

func TestDoubleCompletionIsDetected(t *testing.T) {
	virtual(t, func(t *testing.T) {
		raw, err := Run(t.Context(), nil, config(&fake{twice: true}, 100))
		if !errors.Is(err, ErrContract) || raw == nil {
			t.Errorf("Run = %v, %v; want figures and %v", raw, err, ErrContract)
		}
	})
}

func TestPermanentSubscriptionLossEndsRun(t *testing.T) {
	virtual(t, func(t *testing.T) {
		gone := errors.New("queue deleted")
		f := &fake{lose: func(context.Context) error { time.Sleep(300 * time.Millisecond); return gone }}
		raw := do(t, config(f, 100))
		if !errors.Is(raw.Gone, gone) || raw.All.Scheduled > 40 {
			t.Errorf("gone %v after %d messages", raw.Gone, raw.All.Scheduled)
		}
	})
}

func TestAbandonedPayloadBufferIsNotReused(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{confirm: func(_, n int) error {
			if n%10 == 0 {
				return errors.Join(driver.ErrTimeout, driver.ErrAbandoned)
			}
			return nil
		}}
		raw := do(t, config(f, 100))
		expect(t, "abandoned", raw.Abandoned, 11)
		expect(t, "corrupted", raw.All.Corrupted, 0)
	})
}

func TestAClosedLoopRunsOnItsSlots(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			cfg := config(&fake{blocks: blocks, delay: 10 * time.Millisecond}, 1)
			cfg.Plan.Phases = nil
			cfg.Plan.WarmUp, cfg.WarmUp, cfg.Measure, cfg.InFlight = 0, 100*time.Millisecond, time.Second, 5
			cfg.Plan.Producers = 4
			raw := do(t, cfg)
			if got := raw.Measured.Sent; got != 2000 {
				t.Errorf("4 producers with 5 in flight of 10 ms sent %d in a second; want 2000", got)
			}
			expect(t, "responses in a closed loop", raw.Snapshot.Kinds[measure.SendResponse][measure.Measure].Total(), 0)
			expect(t, "worst service", p(raw, measure.SendService, 100), 10*time.Millisecond)

			cfg = config(&fake{blocks: blocks, delay: 10 * time.Millisecond}, 1)
			cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.Messages, cfg.InFlight, cfg.Plan.Producers = nil, 0, 777, 5, 2
			raw = do(t, cfg)
			expect(t, "counted closed loop", raw.Measured.Confirmed, 777)
			expect(t, "interrupted", raw.Interrupted, false)

			cfg = config(&fake{blocks: blocks, delay: 10 * time.Millisecond}, 1)
			cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.Messages, cfg.InFlight = nil, 0, 777, 50
			cfg.Plan.BatchMin, cfg.Plan.BatchMax = 10, 10
			raw = do(t, cfg)
			expect(t, "counted closed loop of batches", raw.Measured.Confirmed, 777)
			if d := time.Duration(raw.Ended); d > time.Second {
				t.Errorf("777 messages, 50 in 10 ms, took %v: the last batch is cut short and the run over", d)
			}
		})
	}
}

func TestClosedLoopBacksOffWhenAllFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{confirm: func(_, n int) error {
			if n < 500 {
				return fmt.Errorf("no luck: %w", driver.ErrDisconnected)
			}
			return nil
		}, delay: time.Microsecond}
		cfg := config(f, 1)
		cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.Measure, cfg.InFlight, cfg.Drain = nil, 0, 10*time.Second, 10, time.Second
		raw := do(t, cfg)
		// Some hundred at once, then intervals from 1 ms to 100 ms, then ten a second.
		if n := raw.Measured.Failed; n < relentAfter || n > relentAfter+150 {
			t.Errorf("%d messages failed in 10 s; want some more than %d", n, relentAfter)
		}

		cfg = config(&fake{confirm: func(_, n int) error {
			if n < 150 {
				return driver.ErrDisconnected
			}
			return nil
		}, delay: time.Microsecond}, 1)
		cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.Messages, cfg.InFlight = nil, 0, 100_000, 10
		raw = do(t, cfg)
		expect(t, "confirmed once the system is back", raw.Measured.Confirmed, 100_000-150)
		if d := time.Duration(raw.Ended); d > 30*time.Second {
			t.Errorf("it took %v of virtual time: the loop continues slowly", d)
		}
	})
}

func TestTenThousandProducers(t *testing.T) {
	cfg := config(&fake{}, 10_000)
	cfg.Plan.Producers, cfg.InFlight = 10_000, 4
	cfg.Calibration = pace.Calibrate(1)
	raw := do(t, cfg)
	expect(t, "scheduled", raw.Measured.Scheduled, 10_000)
	expect(t, "sent or left unsent by a late host", raw.Measured.Sent+raw.Measured.Unsent, 10_000)
	expect(t, "delivered", raw.Measured.Delivered, raw.Measured.Sent)
	if raw.Measured.Sent == 0 {
		t.Error("nothing was sent")
	}
}

func TestInFlightFitsInMemory(t *testing.T) {
	if n, err := InFlight(0, 1, 1024, 1, true, 1<<30, driver.Intake{}); n != 10_000 || err != nil {
		t.Errorf("one producer of 1 KiB: %d, %v; want 10000", n, err)
	}
	if n, err := InFlight(0, 10_000, 1024, 1, false, 1<<30, driver.Intake{}); n != 26 || err != nil {
		t.Errorf("10,000 producers of 1 KiB: %d, %v; want 26", n, err)
	}
	if _, err := InFlight(10_000, 200, 1<<20, 1, false, 1<<30, driver.Intake{}); err == nil {
		t.Error("2 TiB of slots were accepted")
	}
	if n, err := InFlight(0, 1, 1024, 10, true, 1<<30, driver.Intake{}); n != 10 || err != nil {
		t.Errorf("a closed loop of batches: %d, %v; want one batch of 10", n, err)
	}
	intake := driver.Intake{Messages: 100_000, Bytes: 128 << 20, Besides: 1 << 10}
	if n, err := InFlight(0, 1, 256<<10, 1, true, 1<<30, intake); n != 510 || err != nil { // of 257 KiB
		t.Errorf("in flight %d, %v; want what fits in what the system takes in", n, err)
	}
	if n, err := InFlight(0, 50, 64, 1, true, 1<<30, intake); n != 2_000 || err != nil {
		t.Errorf("in flight %d, %v; want what fits in the messages that the system takes in", n, err)
	}
	if n, err := InFlight(1024, 1, 256<<10, 1, true, 1<<30, intake); n != 1024 || err != nil {
		t.Errorf("in flight %d, %v; want what was asked for", n, err)
	}
	if _, err := InFlight(3, 1, 1024, 10, false, 1<<30, driver.Intake{}); err == nil {
		t.Error("3 in flight with batches of 10 were accepted")
	}
}
