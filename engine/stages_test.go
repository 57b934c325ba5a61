package engine

import (
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// staged is a run of f with three stages of 200 ms: 1,000/s, a ramp up to 3,000/s, and 50 messages
// every 100 ms.
func staged(f *fake) Config {
	cfg := config(f, 1000)
	one, three := schedule.PerSecond(1000), schedule.PerSecond(3000)
	cfg.Plan.Phases = []schedule.Phase{
		{From: one, To: one, For: 200 * time.Millisecond},
		{From: one, To: three, For: 200 * time.Millisecond},
		{Burst: 50, Every: 100 * time.Millisecond, For: 200 * time.Millisecond},
	}
	return cfg
}

// slowIn returns for each stage how many messages were offered, took over 50 ms, were never
// confirmed, and were confirmed in it.
func slowIn(raw *Raw) (offered, slow, never, confirmed []uint64) {
	for i := range raw.Stages {
		g := &raw.Stages[i]
		c := &g.Kinds[measure.SendResponse]
		offered, slow = append(offered, g.Offered), append(slow, c.Total()-c.Below(int64(50*time.Millisecond)))
		never, confirmed = append(never, g.Censored[measure.SendResponse].Total()), append(confirmed, g.Confirmed)
	}
	return offered, slow, never, confirmed
}

// The messages of a freeze at the end of a stage belong to that stage, though they are confirmed in
// the next, where they count as confirmed. So do those that never are.
func TestLateMessageBelongsToStageWhenDue(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{delays: func(n int) time.Duration {
			if n >= 250 && n < 300 { // due in the last 50 ms of the first stage, after a warm-up of 100 messages
				return 100*time.Millisecond + time.Microsecond
			}
			return time.Microsecond
		}}
		f.forget = func(_, n int) bool { return n >= 700 } // of the last stage
		cfg := staged(f)
		cfg.InFlight, cfg.Drain = 1000, time.Second
		raw := do(t, cfg)
		offered, slow, never, confirmed := slowIn(raw)
		expect(t, "offered", offered, []uint64{200, 400, 100})
		expect(t, "slow", slow, []uint64{50, 0, 0})
		expect(t, "never confirmed", never, []uint64{0, 0, 100})
		expect(t, "confirmed", confirmed, []uint64{150, 450, 0})
		expect(t, "the last stage ends", raw.Stages[2].To, raw.To)
	})
}

// A message without a free slot also belongs to the stage in which it was due.
func TestDroppedMessageCountsInItsStage(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := staged(&fake{delay: 2 * time.Millisecond})
		cfg.InFlight, cfg.WhenFull = 10, Drop
		offered, _, never, _ := slowIn(do(t, cfg))
		expect(t, "offered", offered, []uint64{200, 400, 100})
		expect(t, "dropped", never, []uint64{0, 0, 85}) // 40 of each burst, and 5 as the ramp still occupied as many slots
	})
}

func TestStagesOfStoppedRun(t *testing.T) {
	virtual(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(400*time.Millisecond, func() { close(stop) })
		raw := must.Get(Run(t.Context(), stop, staged(&fake{delay: 10 * time.Millisecond})))(t)
		balanced(t, raw, 1)
		expect(t, "stages", len(raw.Stages), 2)
		if g := &raw.Stages[1]; g.To != raw.To || g.To >= 500e6 || g.Offered-g.Sent > 1 || g.Confirmed >= g.Sent {
			t.Errorf("it is until %v of %v, offered %d, sent %d, confirmed %d", g.To, raw.To, g.Offered, g.Sent, g.Confirmed)
		}
	})
}

// A vanished process has not reported its stages, and the sum without it is not what was measured.
func TestLostWorkerLeavesStagesUnknown(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := staged(&fake{})
		part, found := must.Two(executed(t.Context(), cfg))(t)
		for missing, stages := range map[bool]int{false: 3, true: 0} {
			p := *part
			p.Missing = missing
			raw := must.Get(Assemble(cfg, []*WorkerResult{&p}, found))(t)
			expect(t, "stages", len(raw.Stages), stages)
		}
	})
}

func TestOneRateHasNoStages(t *testing.T) {
	one := schedule.Phase{From: 1, To: 1, For: time.Second}
	ramp := schedule.Phase{From: 1, To: 2, For: time.Second}
	for n, phases := range [][]schedule.Phase{{}, {one}, {ramp}, {one, one}, make([]schedule.Phase, measure.MostStages), make([]schedule.Phase, measure.MostStages+1)} {
		want := []int{0, 0, 1, 2, measure.MostStages, 0}[n]
		expect(t, "stages of plan "+itoa(n), len(Stages(schedule.Spec{Phases: phases})), want)
	}
}
