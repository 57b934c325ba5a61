package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

func TestConsumeOnlyRunReportsReceiveRate(t *testing.T) {
	for _, slow := range []time.Duration{0, 3 * time.Second} {
		virtual(t, func(t *testing.T) {
			const each, times = 10, 20_000 // 10,000 a second for 20 s
			f := &fake{slow: slow, feed: func(ctx context.Context, sink driver.Sink) error {
				ds := make([]driver.Delivery, each)
				for i := range ds {
					ds[i] = driver.Delivery{Payload: []byte("of another run"), Partition: -1}
				}
				for range times {
					_ = sink.Deliver(ds)
					time.Sleep(time.Millisecond)
				}
				<-ctx.Done()
				return nil
			}}
			cfg := config(f, 1000)
			cfg.Mode = Consume
			raw := do(t, cfg)
			rate := float64(raw.Snapshot.Window.Received) / (float64(raw.To-raw.From) / 1e9)
			if rate < 9_990 || rate > 10_010 {
				t.Errorf("with Facts taking %v: %d received in [%d, %d), %.0f/s; want 10,000/s", slow, raw.Snapshot.Window.Received, raw.From, raw.To, rate)
			}
			expect(t, "received", raw.Snapshot.Window.Received, each*times)
		})
	}
}

func TestEmptyConsumeRunChecksBacklog(t *testing.T) {
	holds := func(n uint64, err error) func() (uint64, error) {
		return func() (uint64, error) { return n, err }
	}
	five, none := uint64(5), uint64(0)
	for what, c := range map[string]struct {
		backlog func() (uint64, error)
		came    bool
		want    *uint64
	}{
		"an empty system":            {holds(0, nil), false, &none},
		"one that holds something":   {holds(5, nil), false, &five},
		"one that does not answer":   {holds(0, driver.ErrUnreachable), false, nil},
		"one that cannot be asked":   {holds(0, driver.ErrUnsupported), false, nil},
		"one from which things came": {holds(0, nil), true, nil},
	} {
		virtual(t, func(t *testing.T) {
			f := &fake{backlog: c.backlog, feed: func(ctx context.Context, sink driver.Sink) error {
				if c.came {
					time.Sleep(time.Millisecond)
					_ = sink.Deliver([]driver.Delivery{{Payload: []byte("of another run"), Partition: -1}})
				}
				<-ctx.Done()
				return nil
			}}
			cfg := config(f, 1000)
			cfg.Mode = Consume
			raw := do(t, cfg)
			if (raw.Left == nil) != (c.want == nil) || c.want != nil && *raw.Left != *c.want {
				t.Errorf("%s: left %v; want %v", what, raw.Left, c.want)
			}
		})
	}
}

func TestShortDrainDoesNotEndClosedLoop(t *testing.T) {
	for _, drain := range []time.Duration{0, 500 * time.Millisecond} {
		virtual(t, func(t *testing.T) {
			cfg := config(&fake{delay: 10 * time.Millisecond}, 1)
			cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.WarmUp, cfg.Measure, cfg.InFlight = nil, 0, 0, 5*time.Second, 1
			cfg.Drain = drain
			raw := do(t, cfg)
			expect(t, "window", time.Duration(raw.To-raw.From), 5*time.Second)
			if raw.Measured.Sent < 499 {
				t.Errorf("sent %d in 5 s of 10 ms each", raw.Measured.Sent)
			}
		})
	}
}

func TestCountedClosedLoopEndsAtLastConfirmation(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			f := &fake{delay: 2 * time.Millisecond, forget: func(_, n int) bool { return forgotten && n == 500 }}
			cfg := config(f, 1)
			cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.Messages, cfg.InFlight = nil, 0, 1000, 2
			raw := do(t, cfg)
			if got := time.Duration(raw.To - raw.From); got > 2*time.Second+time.Millisecond {
				t.Errorf("one forgotten %v: window of %v for 1000 messages of 2 ms", forgotten, got)
			}
			if forgotten != (raw.Failed != "") {
				t.Errorf("one forgotten %v: failed %q", forgotten, raw.Failed)
			}
		})
	}
}

func TestStopDuringDrainRecorded(t *testing.T) {
	virtual(t, func(t *testing.T) {
		stop := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1300*time.Millisecond, func() { close(stop) })
		time.AfterFunc(1600*time.Millisecond, cancel)
		cfg := config(&fake{forget: func(_, n int) bool { return n > 500 }}, 1000)
		cfg.InFlight, cfg.Drain = 1000, 30*time.Second
		raw := must.Get(Run(ctx, stop, cfg))(t)
		balanced(t, raw, 1)
		if !raw.Interrupted || time.Duration(raw.Ended) > 2*time.Second {
			t.Errorf("interrupted %v, ended %v", raw.Interrupted, time.Duration(raw.Ended))
		}
	})
}

func TestStopBeforeStart(t *testing.T) {
	virtual(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		began := time.Now()
		_, err := Run(t.Context(), stop, config(&fake{unready: true}, 10))
		if !errors.Is(err, context.Canceled) || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v; want %v within a second", time.Since(began), err, context.Canceled)
		}
	})
}

func TestConsumerReturningEarlyBreaksContract(t *testing.T) {
	virtual(t, func(t *testing.T) {
		leave := func(context.Context, driver.Sink) error {
			time.Sleep(300 * time.Millisecond)
			return nil
		}
		raw := do(t, config(&fake{feed: leave}, 100))
		if !errors.Is(raw.Gone, ErrContract) || raw.All.Lost > 0 {
			t.Errorf("gone %v, lost %d; want the contract broken and nothing lost", raw.Gone, raw.All.Lost)
		}
	})
}

func TestNothingIsMeasuredAfterTheDrain(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{late: 2 * time.Second, slow: 2 * time.Second}, 100)
		cfg.Drain = 100 * time.Millisecond
		raw := do(t, cfg)
		expect(t, "delivered", raw.All.Delivered, 0)
		expect(t, "late", raw.All.Late, 110) // while the system is asked whether it is there
		expect(t, "pending", raw.All.Pending, 0)
		expect(t, "samples", raw.Snapshot.Kinds[measure.E2EResponse][measure.Measure].Total(), 0)
	})
}

func TestFailedRunEndsAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{forget: func(int, int) bool { return true }}, 1000)
		cfg.WhenFull, cfg.InFlight, cfg.Drain = Fail, 10, 30*time.Second
		raw := do(t, cfg)
		if raw.Failed == "" || time.Duration(raw.Ended) > time.Second {
			t.Errorf("failed %q, ended after %v", raw.Failed, time.Duration(raw.Ended))
		}
	})
}

func TestHungProducerCloseStillRemovesDestinations(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{closing: func(ctx context.Context) { <-ctx.Done() }}
		do(t, config(f, 10))
		expect(t, "destinations removed", f.removed, f.made)
	})
}

func TestCorruptedUnconfirmedMessagesAreReported(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{spoil: true, confirm: func(int, int) error { return driver.ErrTimeout }}
		raw := do(t, config(f, 100))
		expect(t, "damaged", raw.Damaged, 110)
		expect(t, "corrupted of the confirmed", raw.All.Corrupted, 0)
	})
}

// Execute, a coordinator and Assemble each need the schedule; with random arrival and a count,
// building it may take seconds.
func TestGivenScheduleIsReused(t *testing.T) {
	cfg := config(&fake{}, 1000)
	plan := must.Get(schedule.New(cfg.Plan))(t)
	cfg.Schedule = plan
	sh, err := newShape(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if sh.plan != plan {
		t.Error("the plan was made again")
	}
	cfg.Mode = Consume
	if sh, err = newShape(cfg); err != nil || sh.plan == plan {
		t.Errorf("a run that only consumes has a plan of messages to send (%v)", err)
	}
}

func TestPlannedEqualsScheduled(t *testing.T) {
	virtual(t, func(t *testing.T) {
		raw := do(t, config(&fake{}, 1000))
		expect(t, "planned", raw.Planned, raw.All.Scheduled)
	})
}

func TestMessagesStillInBacklogAreNotLost(t *testing.T) {
	cases := []struct {
		name          string
		backlog       func() (uint64, error)
		lost, pending uint64
	}{
		{"it holds some", func() (uint64, error) { return 3, nil }, 0, 55},
		{"it holds nothing", func() (uint64, error) { return 0, nil }, 55, 0},
		{"it does not say", func() (uint64, error) { return 0, driver.ErrUnsupported }, 0, 55},
		{"it does not answer", func() (uint64, error) { return 0, driver.ErrUnreachable }, 0, 55},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				raw := do(t, config(&fake{copies: func(_, n int) int { return n & 1 }, backlog: c.backlog}, 100))
				expect(t, "lost", raw.All.Lost, c.lost)
				expect(t, "pending", raw.All.Pending, c.pending)
			})
		})
	}
}

// What it had received since its last report is unknown. A worker that only sent received nothing.
func TestMessagesHeldByLostWorkerAreUnknown(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{copies: func(_, n int) int { return n & 1 }, backlog: func() (uint64, error) { return 0, nil }}, 100)
		part, found := must.Two(executed(t.Context(), cfg))(t)
		for _, c := range []struct {
			missing       bool
			first         int // index of its first consumer
			lost, pending uint64
		}{
			{false, 0, 55, 0},
			{true, 0, 0, 55},
			{true, 1, 55, 0},
		} {
			p := *part
			p.Missing, p.Worker.Consumers.Index = c.missing, c.first
			raw := must.Get(Assemble(cfg, []*WorkerResult{&p}, found))(t)
			expect(t, "lost", raw.All.Lost, c.lost)
			expect(t, "pending", raw.All.Pending, c.pending)
		}
	})
}

// What they had still to send is unsent, up to where the run got.
func TestLosingAllWorkersLeavesMessagesUnsent(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{}, 100)
		part, found := must.Two(executed(t.Context(), cfg))(t)
		for _, c := range []struct {
			ended                      time.Duration
			scheduled, planned, unsent uint64
		}{{5 * time.Second, 220, 220, 110}, {1295 * time.Millisecond, 130, 0, 20}} {
			longer := cfg
			longer.Plan.Phases = []schedule.Phase{cfg.Plan.Phases[0]}
			longer.Plan.Phases[0].For = 2100 * time.Millisecond
			p := *part
			p.Missing = true
			found.Ended = int64(c.ended)
			raw := must.Get(Assemble(longer, []*WorkerResult{&p}, found))(t)
			expect(t, "scheduled", raw.All.Scheduled, c.scheduled)
			expect(t, "planned", raw.Planned, c.planned)
			expect(t, "unsent", raw.All.Unsent, c.unsent)
			expect(t, "pacers", raw.Pacers, 0)
		}
	})
}

// What it sent after its last report is known from what others saw of it.
func TestLostWorkersSendsAreNotUnsent(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{}, 100)
		part, found := must.Two(executed(t.Context(), cfg))(t)
		// The plan has 200 more, of another second: all are unsent except what the ledger knows
		// beyond the report.
		for _, c := range []struct{ unreported, unsent uint64 }{{0, 200}, {20, 200}} {
			longer := cfg
			longer.Plan.Phases = []schedule.Phase{cfg.Plan.Phases[0]}
			longer.Plan.Phases[0].For = 3 * time.Second
			p := *part
			p.Missing, p.Ended = true, int64(605*time.Millisecond)
			p.Snapshot.Counters[measure.Measure].Sent -= c.unreported
			found.Ended = int64(5 * time.Second)
			raw := must.Get(Assemble(longer, []*WorkerResult{&p}, found))(t)
			expect(t, "censored", raw.Censored[measure.SendResponse][measure.Measure].Total(), c.unsent)
			expect(t, "sent", raw.All.Sent, 110)
			expect(t, "unsent", raw.All.Unsent, c.unsent)
		}
	})
}

// If the system retains messages, they are still to come.
func TestAbsentConsumerLosesMessagesWithoutPersistence(t *testing.T) {
	for _, x := range []struct {
		retains bool
		back    string // whose connection is back
	}{{false, ""}, {true, ""}, {true, "producer"}, {true, "consumer"}} {
		retains := x.retains && x.back != "consumer" // one that came back gets nothing from before
		virtual(t, func(t *testing.T) {
			f := &fake{}
			f.feed = func(ctx context.Context, sink driver.Sink) error {
				time.Sleep(2 * time.Second)
				sink.Fault(driver.ErrDisconnected)
				time.Sleep(10 * time.Millisecond)
				switch x.back {
				case "producer":
					f.run.Tell(driver.Reconnect, "producer 0")
				case "consumer":
					f.run.For(&f.specs[0]).Tell(driver.Reconnect, "consumer 0")
				}
				<-ctx.Done()
				return nil
			}
			cfg := config(f, 10)
			cfg.Definition.Capabilities.Retains = x.retains
			raw := do(t, cfg)
			lost, pending := uint64(11), uint64(0)
			if retains {
				lost, pending = 0, 11
			}
			expect(t, "lost", raw.All.Lost, lost)
			expect(t, "pending", raw.All.Pending, pending)
		})
	}
}

func TestBacklogCheckedPerSubscriptionBeforeLoss(t *testing.T) {
	virtual(t, func(t *testing.T) {
		// One subscription runs dry a little later than the other, when that was just asked about.
		cfg := config(&fake{}, 100)
		cfg.Subscriptions = 2
		cfg.Options = &uneven{fake: &fake{copies: func(_, n int) int { return n & 1 }}}
		raw := do(t, cfg)
		expect(t, "dry", raw.Dry, []bool{true, false})
		expect(t, "lost", raw.All.Lost, 55)
		expect(t, "pending", raw.All.Pending, 55)
	})
}

// uneven is a fake that holds messages only for its second subscription, whose deliveries are 300
// ms late.
type uneven struct{ *fake }

func (u *uneven) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	_, err := u.fake.Open(ctx, run)
	return u, err
}

func (u *uneven) Backlog(_ context.Context, subscription string, _ []string) (uint64, error) {
	return uint64(len(subscription) - len(strings.TrimSuffix(subscription, "s1"))), nil
}

func (u *uneven) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	c, err := u.fake.Consumer(ctx, spec)
	if strings.HasSuffix(spec.Subscription, "s1") {
		return behind{c}, err
	}
	return c, err
}

type behind struct{ driver.Consumer }

func (b behind) Run(ctx context.Context, sink driver.Sink) error {
	return b.Consumer.Run(ctx, behindSink{sink})
}

type behindSink struct{ driver.Sink }

func (b behindSink) Deliver(ds []driver.Delivery) error {
	time.Sleep(25500 * time.Microsecond) // there are 55, one every 20 ms
	return b.Sink.Deliver(ds)
}

func TestManyHungClosesEndWithinLimit(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{closing: func(ctx context.Context) { <-ctx.Done() }}, 100)
		cfg.Plan.Producers, cfg.Consumers, cfg.InFlight = 300, 300, 1
		cfg.Options = &clinging{cfg.Options.(*fake)}
		began := time.Now()
		do(t, cfg)
		if took := time.Since(began); took > 40*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// clinging is a fake whose consumers do not close.
type clinging struct{ *fake }

func (c *clinging) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	_, err := c.fake.Open(ctx, run)
	return c, err
}

func (c *clinging) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	k, err := c.fake.Consumer(ctx, spec)
	return clung{k}, err
}

type clung struct{ driver.Consumer }

func (clung) Close(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestDeliveryMayFollowLateConfirmation(t *testing.T) {
	virtual(t, func(t *testing.T) {
		// By the first delivery everything is confirmed, and the subscription had been dry for
		// long.
		cfg := config(&fake{delay: 7 * time.Second, late: 8500 * time.Millisecond}, 100)
		cfg.InFlight, cfg.Drain = 1000, time.Minute
		raw := do(t, cfg)
		expect(t, "delivered", raw.All.Delivered, 110)
		expect(t, "lost", raw.All.Lost, 0)
	})
}

func TestCanceledRunReturnsSoon(t *testing.T) {
	virtual(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		f := &fake{closing: func(ctx context.Context) { <-ctx.Done() }, slow: time.Second}
		began := time.Now()
		raw := must.Get(Run(ctx, nil, config(f, 100)))(t)
		balanced(t, raw, 1)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("gone %v after the start; stopped after 1.5 s", took)
		}
		time.Sleep(f.slow) // the abandoned Facts, which ignores its context
	})
}

func TestPacersSharePlanReadOnly(t *testing.T) {
	for _, pacers := range []int{1, 2, 3, 7} {
		for _, blocks := range []bool{false, true} {
			virtual(t, func(t *testing.T) {
				cfg := config(&fake{blocks: blocks, delay: time.Millisecond}, 7000)
				cfg.Pacers, cfg.Plan.Producers, cfg.Plan.Destinations = pacers, 7, 3
				raw := do(t, cfg)
				expect(t, "scheduled", raw.All.Scheduled, 7700)
				expect(t, "delivered", raw.Measured.Delivered, 7000)
				expect(t, "reordered, duplicated", raw.All.Reordered+raw.All.Duplicated, 0)
				expect(t, "worst lateness", p(raw, measure.SendLateness, 100), time.Duration(0))
			})
		}
	}
}

func TestErrorNumbersBecomePlaceholders(t *testing.T) {
	for in, want := range map[string]string{
		"read tcp 127.0.0.1:50092->127.0.0.1:46095: reset": "read tcp 127.0.0.1:#->127.0.0.1:#: reset",
		"subject a.1 after 12 tries":                       "subject a.1 after 12 tries",
		"sequence 10231 and 4":                             "sequence # and 4",
		"":                                                 "",
	} {
		if got := general(in); got != want {
			t.Errorf("general(%q) = %q; want %q", in, got, want)
		}
	}
}

// Producers read the window's end while the run is cut short. The race detector would see a write
// to it.
func TestStoppingClosedLoopIsRaceFree(t *testing.T) {
	f := &fake{}
	cfg := config(f, 0)
	cfg.Plan.Phases = nil
	cfg.InFlight, cfg.Measure = 4, time.Minute
	stop := make(chan struct{})
	begin := sync.OnceFunc(func() { time.AfterFunc(cfg.WarmUp+100*time.Millisecond, func() { close(stop) }) })
	f.enter = func(context.Context, int) { begin() } // a stop before the first message is another case
	raw := must.Get(Run(t.Context(), stop, cfg))(t)
	if !raw.Interrupted || raw.To-raw.From >= int64(time.Minute) {
		t.Errorf("interrupted %t, window of %v", raw.Interrupted, time.Duration(raw.To-raw.From))
	}
}
