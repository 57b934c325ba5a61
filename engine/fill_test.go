package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// backlogOf is config in mode Backlog: 1100 messages in 1.1 s, then a consumer that takes a
// millisecond for each.
func backlogOf(f *fake) Config {
	cfg := config(f, 1000)
	cfg.Mode, cfg.Work = Backlog, time.Millisecond
	return cfg
}

// texts collects the events of kind "backlog".
type texts struct {
	mu  sync.Mutex
	all []string
	at  []time.Duration
}

func (x *texts) take(e Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.Kind == "backlog" {
		x.all, x.at = append(x.all, e.Text), append(x.at, time.Duration(e.At))
	}
}

// near reports whether got is want or up to 10 ms later, the delay of polling.
func near(got, want time.Duration) bool { return got >= want && got <= want+10*time.Millisecond }

func TestABacklogIsFilledAndThenDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events texts
		cfg := backlogOf(&fake{})
		cfg.OnEvent = events.take
		raw := do(t, cfg)
		d := raw.Drained
		expect(t, "lay there", d.Lay, 1100)
		expect(t, "largest backlog", raw.Backlog, 1100)
		expect(t, "received", d.Messages, 1100)
		expect(t, "bytes", d.Bytes, 1100*64)
		if at := time.Duration(d.Began); !near(at, 1100*time.Millisecond) {
			t.Errorf("the consumers started at %v; want 1.1s, when all was sent", at)
		}
		if d.From < d.Began {
			t.Errorf("received at %v, before the consumers started at %v", time.Duration(d.From), time.Duration(d.Began))
		}
		expect(t, "from the first to the last", time.Duration(d.To-d.From), 1099*time.Millisecond)
		messages, bytes, _ := d.PerSecond()
		expect(t, "drained per second", messages, 1000)
		expect(t, "bytes per second", bytes, 64000)
		expect(t, "window", time.Duration(raw.To-raw.From), time.Second)
		expect(t, "confirmed in it", raw.Snapshot.Window.Confirmed, 1000)
		expect(t, "delivered", raw.All.Delivered, 1100)
		expect(t, "lost and pending", raw.All.Lost+raw.All.Pending, 0)
		expect(t, "send samples", raw.Snapshot.Kinds[measure.SendResponse][measure.Measure].Total(), 1000)
		for p := range measure.NumPhases {
			for _, k := range []measure.Kind{measure.E2EResponse, measure.E2EService} {
				expect(t, "e2e samples", raw.Snapshot.Kinds[k][p].Total()+raw.Censored[k][p].Total(), 0)
			}
		}
		if len(events.all) != 2 || events.all[0] != "the system holds 1,100 messages, those of the warm-up included; the consumers start" ||
			!strings.HasPrefix(events.all[1], "1,100 messages received, those of the warm-up included, the first 0s after the consumers started, the last 1.1s after the first: 1,000/s") {
			t.Errorf("the events are %q", events.all)
		}
	})
}

func TestBacklogRateExcludesFirstClientCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events texts
		f := &fake{}
		cfg := backlogOf(f)
		cfg.Work, cfg.OnEvent = 0, events.take
		// Each client call yields 500, one call a second.
		f.feed = func(ctx context.Context, sink driver.Sink) error {
			for _, ch := range f.subs["t-d0"] {
				for len(ch) > 0 {
					var ds []driver.Delivery
					for len(ds) < 500 && len(ch) > 0 {
						ds = append(ds, driver.Delivery{Payload: <-ch, Partition: -1})
					}
					_ = sink.Deliver(ds)
					time.Sleep(time.Second)
				}
			}
			<-ctx.Done()
			return nil
		}
		raw := do(t, cfg)
		d := raw.Drained
		expect(t, "received", d.Messages, 1100)
		expect(t, "of them with the first", d.FirstMessages, 500)
		messages, bytes, _ := d.PerSecond()
		expect(t, "drained per second", messages, 300) // 600 in 2 s
		expect(t, "bytes per second", bytes, 300*64)
		if !strings.Contains(events.all[1], "500 of them with the first: 300/s") {
			t.Errorf("the events are %q", events.all)
		}
		all := Drained{From: 1, To: 1, Messages: 10, FirstMessages: 10}
		if m, b, known := all.PerSecond(); known {
			t.Errorf("all in one call: %v/s, %v bytes/s; want none", m, b)
		}
	})
}

func TestClosedLoopFillsBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := backlogOf(&fake{delay: 10 * time.Millisecond})
		cfg.Plan.Phases, cfg.Plan.WarmUp, cfg.Messages = nil, 0, 500
		raw := do(t, cfg)
		expect(t, "lay there", raw.Drained.Lay, 500)
		expect(t, "received", raw.Drained.Messages, 500)
		expect(t, "delivered", raw.All.Delivered, 500)
		if raw.Drained.From < 50*int64(time.Millisecond) {
			t.Errorf("received at %v, while the loop ran", time.Duration(raw.Drained.From))
		}
	})
}

func TestBacklogIncludesLateConfirmations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := do(t, func() Config {
			cfg := backlogOf(&fake{delay: 2 * time.Second})
			cfg.InFlight = 2000
			return cfg
		}())
		expect(t, "lay there", raw.Drained.Lay, 1100)
		expect(t, "full", raw.Drained.Full, false)
		if at := time.Duration(raw.Drained.Began); !near(at, 3099*time.Millisecond) {
			t.Errorf("the consumers started at %v; want 3.099s, when the last was confirmed", at)
		}
	})
}

func TestEachSubscriptionHasABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events texts
		cfg := backlogOf(&fake{})
		cfg.Subscriptions, cfg.Consumers, cfg.OnEvent = 2, 3, events.take
		raw := do(t, cfg)
		expect(t, "lay there", raw.Drained.Lay, 1100)
		expect(t, "received", raw.Drained.Messages, 2200)
		expect(t, "delivered", raw.All.Delivered, 2200)
		if got := time.Duration(raw.Drained.To - raw.Drained.From); got != 366*time.Millisecond {
			t.Errorf("three consumers each took %v; want 366ms", got)
		}
		if len(events.all) != 2 || events.all[0] != "the system holds 1,100 messages for each of 2 subscriptions, those of the warm-up included; the consumers start" ||
			!strings.HasPrefix(events.all[1], "2,200 messages received by 2 subscriptions together, those of the warm-up included") {
			t.Errorf("the events are %q", events.all)
		}
	})
}

func TestLossAndDuplicationShowInABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{copies: func(_, n int) int {
			switch n {
			case 300:
				return 0
			case 400:
				return 2
			}
			return 1
		}}
		raw := do(t, backlogOf(f))
		expect(t, "delivered", raw.All.Delivered, 1099)
		expect(t, "lost", raw.All.Lost, 1)
		expect(t, "duplicated", raw.All.Duplicated, 1)
		expect(t, "received", raw.Drained.Messages, 1100)
	})
}

func TestADrainLimitLeavesABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events texts
		cfg := backlogOf(&fake{})
		cfg.Work, cfg.OnEvent = 100*time.Millisecond, events.take
		raw := do(t, cfg)
		if took := time.Duration(raw.Ended - raw.Drained.Began); !near(took, 5*time.Second) {
			t.Errorf("drained for %v; want the limit, 5s, from the start of the consumers", took)
		}
		expect(t, "lost", raw.All.Lost, 0)
		expect(t, "delivered, late and pending", raw.All.Delivered+raw.All.Late+raw.All.Pending, 1100)
		if needs := time.Duration(raw.DrainNeeds); needs < 100*time.Second || needs > 110*time.Second {
			t.Errorf("the rest needs %v; want about 105s", needs)
		}
		if last := events.all[len(events.all)-1]; !strings.Contains(last, " confirmed messages did not come") {
			t.Errorf("the last event is %q", last)
		}
	})
}

// stopped runs cfg, stops it at an instant, and returns how long it took.
func stopped(t *testing.T, cfg Config, at time.Duration) (*Raw, time.Duration) {
	t.Helper()
	stop := make(chan struct{})
	began := time.Now()
	time.AfterFunc(at, func() { close(stop) })
	raw := must.Get(Run(t.Context(), stop, cfg))(t)
	balanced(t, raw, 1)
	if !raw.Interrupted {
		t.Error("the run is not marked as interrupted")
	}
	return raw, time.Since(began)
}

func TestStopWhileFillingDrainsBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, took := stopped(t, backlogOf(&fake{}), 520*time.Millisecond)
		n := raw.All.Sent
		if n < 495 || n > 505 {
			t.Errorf("sent %d; want about 500", n)
		}
		expect(t, "delivered", raw.All.Delivered, n)
		expect(t, "received", raw.Drained.Messages, n)
		if took > 1200*time.Millisecond {
			t.Errorf("took %v; want about a second", took)
		}
	})
}

func TestStopEndsBacklogDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, took := stopped(t, backlogOf(&fake{}), 1620*time.Millisecond)
		if took > 1700*time.Millisecond {
			t.Errorf("took %v; want about 1.62s", took)
		}
		expect(t, "sent", raw.All.Sent, 1100)
		expect(t, "lost", raw.All.Lost, 0)
		if n := raw.All.Delivered; n < 490 || n > 510 {
			t.Errorf("delivered %d; want about 500", n)
		}
		expect(t, "pending and late", raw.All.Pending+raw.All.Late, 1100-raw.All.Delivered)
	})
}

func TestCancelWhileFillingBacklogEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 520*time.Millisecond)
		defer cancel()
		began := time.Now()
		raw := must.Get(Run(ctx, nil, backlogOf(&fake{})))(t)
		balanced(t, raw, 1)
		if took := time.Since(began); took > 600*time.Millisecond {
			t.Errorf("took %v; want about 520ms", took)
		}
		expect(t, "consumers started", raw.Drained.Began, 0)
		expect(t, "received", raw.Drained.Messages, 0)
		expect(t, "lost", raw.All.Lost, 0)
		expect(t, "pending", raw.All.Pending, raw.All.Confirmed)
	})
}

func TestUnreadyConsumersKeepSendFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := do(t, backlogOf(&fake{unready: true}))
		if !errors.Is(raw.Gone, ErrNotReady) {
			t.Errorf("gone: %v; want ErrNotReady", raw.Gone)
		}
		expect(t, "confirmed", raw.Measured.Confirmed, 1000)
		expect(t, "pending", raw.All.Pending, 1100)
		expect(t, "lost", raw.All.Lost, 0)
	})
}

func TestFullSystemStartsBacklogDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		def := channel.Definition()
		options := def.New()
		must.Do(t, driver.SetOption(options, "capacity", "256"))
		var events texts
		cfg := backlogOf(&fake{})
		cfg.Definition, cfg.Options, cfg.Settle, cfg.OnEvent = def, options, driver.SettleNone, events.take
		raw := do(t, cfg)
		expect(t, "lay there", raw.Drained.Lay, 256)
		expect(t, "full", raw.Drained.Full, true)
		expect(t, "received", raw.Drained.Messages, 1100)
		expect(t, "delivered", raw.All.Delivered, 1100)
		if !slices.ContainsFunc(events.all, func(s string) bool { return strings.HasPrefix(s, "the system is full") }) {
			t.Errorf("the events are %q; want one that says so", events.all)
		}
		if at := time.Duration(raw.Drained.Began); at > 1100*time.Millisecond+fullLimit+2*time.Second {
			t.Errorf("the consumers started at %v only", at)
		}
	})
}
