package engine

import (
	"cmp"
	"context"
	"math"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// beyond is a run of 1,000,000,000/s for 1.1 s through a client that takes 100 us a message:
// visiting its plan message by message takes 31 hours.
func beyond() (*fake, Config) {
	f := &fake{enter: func(context.Context, int) { time.Sleep(100 * time.Microsecond) }}
	cfg := config(f, 1_000_000_000)
	cfg.Mode, cfg.Subscriptions, cfg.Consumers = Produce, 0, 0
	return f, cfg
}

const wholePlan = 1_100_000_000

func TestPlanAboveCeilingEndsOnTime(t *testing.T) {
	for what, change := range map[string]func(*fake, *Config){
		"constant":        func(*fake, *Config) {},
		"three producers": func(_ *fake, c *Config) { c.Plan.Producers = 3 },
		"two pacers":      func(_ *fake, c *Config) { c.Plan.Producers, c.Pacers = 3, 2 },
		"batches":         func(_ *fake, c *Config) { c.Plan.BatchMin, c.Plan.BatchMax = 2, 9 },
		"poisson":         func(_ *fake, c *Config) { c.Plan.Arrival.Kind = schedule.Poisson },
		"gamma, two pacers": func(_ *fake, c *Config) {
			c.Plan.Arrival, c.Plan.Producers, c.Pacers = schedule.Arrival{Kind: schedule.Gamma, CV: 2}, 2, 2
		},
		"a ramp to nothing": func(_ *fake, c *Config) {
			c.Plan.Phases[0] = schedule.Phase{From: schedule.MaxRate, To: 1, For: time.Second}
		},
	} {
		virtual(t, func(t *testing.T) {
			f, cfg := beyond()
			change(f, &cfg)
			raw := do(t, cfg)
			plan := must.Get(schedule.New(cfg.Plan))(t)
			// A batch is handed over message by message here, followed by the next look.
			if over := time.Duration(raw.Ended - plan.End()); over < catchUp || over > catchUp+2*time.Second {
				t.Errorf("%s: it ended %v after the plan's end; want %v and what is in flight", what, over, catchUp)
			}
			want, off := float64(plan.Remaining(schedule.Part{Count: 1}, 0, 0, plan.End())), 2.0
			if cfg.Plan.Arrival.Kind != schedule.Constant {
				off += 10 * math.Sqrt(want)
			} else if raw.Planned != raw.All.Scheduled {
				t.Errorf("%s: %d scheduled; the plan has %d", what, raw.All.Scheduled, raw.Planned)
			}
			if got := float64(raw.All.Scheduled); math.Abs(got-want) > off {
				t.Errorf("%s: %.0f scheduled; want %.0f", what, got, want)
			}
			if raw.Behind != raw.All.Unsent || raw.Behind < wholePlan/3 {
				t.Errorf("%s: the pacers left %d, unsent are %d", what, raw.Behind, raw.All.Unsent)
			}
			pacers := cmp.Or(cfg.Pacers, cfg.pacers(pace.Cores())) // each has a producer of its own, or several
			if sent := raw.All.Sent; sent == 0 || sent > uint64(pacers)*21_100 {
				t.Errorf("%s: %d sent in 2.1 s of 100 us each", what, sent)
			}
		})
	}
}

// The censored responses of what a pacer left are lower bounds, at most a bin's width too small.
func TestUnsentMessagesKeepTheirAge(t *testing.T) {
	virtual(t, func(t *testing.T) {
		_, cfg := beyond()
		raw := do(t, cfg)
		c := &raw.Censored[measure.SendResponse][measure.Measure].Ages
		// They were due evenly over the window, which ended at 1.1 s.
		for _, q := range []float64{0.25, 0.5, 0.75, 1} {
			want := raw.Ended - int64(1.1e9-q*1e9)
			if got := c.At(uint64(q * float64(c.Total()))); math.Abs(float64(got-want)) > 2e6 {
				t.Errorf("quantile %v of what was left is %v old; want %v", q, time.Duration(got), time.Duration(want))
			}
		}
	})
}

func TestStopEndsPlanAboveCeiling(t *testing.T) {
	for what, change := range map[string]func(*fake, *Config){
		"constant":        func(*fake, *Config) {},
		"poisson":         func(_ *fake, c *Config) { c.Plan.Arrival.Kind = schedule.Poisson },
		"a blocked pacer": func(f *fake, _ *Config) { f.blocks = true },
		"behind the pacer": func(f *fake, c *Config) {
			f.blocks, c.Plan.Producers, c.Pacers, c.Drain = true, 3, 1, 100*time.Millisecond
		},
	} {
		virtual(t, func(t *testing.T) {
			f, cfg := beyond()
			change(f, &cfg)
			cfg.Definition.Capabilities.PublishBlocks = f.blocks
			const at = 500 * time.Millisecond
			stop := make(chan struct{})
			time.AfterFunc(at, func() { close(stop) })
			raw := must.Get(Run(t.Context(), stop, cfg))(t)
			balanced(t, raw, 0)
			if late := time.Duration(raw.Ended) - at; !raw.Interrupted || late > time.Second {
				t.Errorf("%s: interrupted %v, ended %v after it was told to", what, raw.Interrupted, late)
			}
			if got := float64(raw.All.Scheduled); math.Abs(got-5e8) > 3e7 { // the epoch is 20 ms after the start
				t.Errorf("%s: %.0f scheduled by the stop; want 500,000,000", what, got)
			}
		})
	}
}

// A pacer that was delayed at the plan's end continues.
func TestLatePacerCatchesUp(t *testing.T) {
	virtual(t, func(t *testing.T) {
		n := 0
		f := &fake{enter: func(context.Context, int) {
			if n++; n == 1050 { // of 1100
				time.Sleep(900 * time.Millisecond)
			}
		}}
		raw := do(t, config(f, 1000))
		expect(t, "sent", raw.All.Sent, 1100)
		expect(t, "left", raw.Behind, 0)
	})
}

// The rest of a vanished worker's part is counted without visiting its whole plan.
func TestMessagesDueUntil(t *testing.T) {
	cfg := config(&fake{}, 1_000_000_000)
	cfg.Plan.Producers = 3
	sh := must.Get(newShape(cfg))(t)
	for _, end := range []int64{-1, 0, 50_000_000, 99_999_999, 100_000_000, 777_777_777, 5_000_000_000} {
		var n [measure.NumPhases]uint64
		last, visits := int64(-1), 0
		sh.dueUntil(schedule.Part{Index: 1, Count: 2}, end, func(due int64, k uint64) {
			if due < last || due > end || due-last > 200_000 {
				t.Fatalf("until %d: a group due by %d follows one due by %d", end, due, last)
			}
			last = due
			n[phaseOf(due >= sh.from)] += k
			visits++
		})
		limit := min(max(end, -1), 1_100_000_000-1)
		want := [measure.NumPhases]uint64{uint64(min(limit, 99_999_999)+2) / 3, 0}
		want[measure.Measure] = uint64(limit+2)/3 - want[measure.WarmUp]
		// Of every three messages the second is this worker's.
		if limit < 0 {
			want = [measure.NumPhases]uint64{}
		}
		if n != want || visits > mostWalked+mostGroups+2 {
			t.Errorf("until %d: %v in %d visits; want %v", end, n, visits, want)
		}
	}
}
