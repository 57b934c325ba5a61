package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// pausedRun is config with a consumer that can take ten messages a millisecond, and a pause of 200
// ms.
func pausedRun(f *fake) Config {
	cfg := config(f, 1000)
	cfg.Work = 100 * time.Microsecond
	cfg.Pause = Pause{At: 300 * time.Millisecond, For: 200 * time.Millisecond}
	return cfg
}

// At 1000/s 200 messages wait after 200 ms. A consumer that takes 10,000/s while 1000/s arrive
// catches up in 200/9000 s.
func TestPausedConsumersCatchUpUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := do(t, pausedRun(&fake{}))
		p := raw.Paused
		if p == nil {
			t.Fatal("the run does not tell of the pause")
		}
		expect(t, "length", near(time.Duration(p.Resumed-p.Began), 200*time.Millisecond), true)
		if p.Waiting < 198 || p.Waiting > 205 {
			t.Errorf("%d messages waited at the resume; want about 200", p.Waiting)
		}
		if took := time.Duration(p.CaughtUp - p.Resumed); !near(took, 22*time.Millisecond) {
			t.Errorf("caught up after %v; want 22 ms, or up to 10 ms more", took)
		}
		if p.Received < p.Waiting || p.Received > p.Waiting+40 {
			t.Errorf("%d were received while catching up; want what waited, and what was sent meanwhile", p.Received)
		}
		expect(t, "old", p.Old.Total() >= 198 && p.Old.Total() <= 205, true)
		if longest := time.Duration(p.Old.Max()); !near(longest, 198*time.Millisecond) {
			t.Errorf("the oldest took %v; want 200 ms", longest)
		}
		if longest := time.Duration(p.Live.Max()); longest > 25*time.Millisecond {
			t.Errorf("a live message took %v; want less than the catching up", longest)
		}
		expect(t, "all after the resume", p.Old.Total()+p.Live.Total() > 690, true)
		expect(t, "delivered", raw.All.Delivered, 1100)
		expect(t, "duplicated", raw.All.Duplicated, 0)
		expect(t, "e2e samples", raw.Snapshot.Kinds[measure.E2EResponse][measure.Measure].Total(), 1000)
	})
}

func TestPauseUntilBacklogReachesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := pausedRun(&fake{})
		cfg.Pause = Pause{At: 300 * time.Millisecond, Waiting: 150}
		p := do(t, cfg).Paused
		if p.Waiting < 150 || p.Waiting > 155 {
			t.Errorf("%d waited; want 150", p.Waiting)
		}
		if d := time.Duration(p.Resumed - p.Began); !near(d, 150*time.Millisecond) {
			t.Errorf("the pause took %v; want 150 ms", d)
		}
	})
}

// A pause until a number of waiting messages that is never reached ends with the plan, and the
// remaining backlog is reported.
func TestAPauseEndsWithThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := pausedRun(&fake{})
		cfg.Pause = Pause{At: 300 * time.Millisecond, Waiting: 5000}
		raw := do(t, cfg)
		p := raw.Paused
		expect(t, "caught up at", p.CaughtUp, 0)
		expect(t, "waiting", p.Waiting >= 695 && p.Left == p.Waiting, true)
		expect(t, "resumed at the end", near(time.Duration(p.Resumed), 1100*time.Millisecond), true)
		expect(t, "old", p.Old.Total()+p.OldCensored.Total() >= 695, true)
		expect(t, "delivered", raw.All.Delivered, 1100)
	})
}

// What failed or was lost before the consumers resumed no longer waited, and nobody saw until when
// it did.
func TestPauseCensorsOldAndLiveMessages(t *testing.T) {
	const newest, resumed = 10, 20
	for name, tt := range map[string]struct {
		due             int64
		fate            ledger.Fate
		lost            bool
		old, gone, live uint64
	}{
		"lost before the pause":         {due: 3, lost: true},
		"the newest that came":          {due: newest, lost: true},
		"lost in the pause":             {due: 15, lost: true, gone: 1},
		"held since before the pause":   {due: 3, old: 1},
		"failed before the pause":       {due: 3, fate: ledger.FateFailed},
		"failed in the pause":           {due: 15, fate: ledger.FateFailed, gone: 1},
		"unconfirmed and perhaps held":  {due: 15, fate: ledger.FateUnconfirmed, old: 1},
		"due after the resume and lost": {due: resumed, lost: true, live: 1},
		"due after the resume and held": {due: resumed, live: 1},
	} {
		s := &Paused{Began: 12, Resumed: resumed, Newest: []int64{99, newest}}
		s.censor(1, tt.fate, tt.lost, tt.due, 100, 1)
		expect(t, name, []uint64{s.OldCensored.Total(), s.OldLost, s.LiveCensored.Total()}, []uint64{tt.old, tt.gone, tt.live})
	}
	(&Paused{}).censor(0, 0, true, 1, 1, 1)
	(*Paused)(nil).censor(0, 0, true, 1, 1, 1)
}

// One message in 20 is lost throughout. The consumers catch up, and no lost message counts as an
// old one.
func TestPauseIgnoresLostMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := pausedRun(&fake{copies: func(_, n int) int { return min(n%20, 1) }})
		raw := do(t, cfg)
		p := raw.Paused
		expect(t, "lost", raw.All.Lost, 55)
		expect(t, "caught up", p.CaughtUp > p.Resumed, true)
		if p.Waiting < 185 || p.Waiting > 195 || p.Left > p.Before || p.Before > 20 {
			t.Errorf("%d waited before the pause, %d at the resume, %d at the end; want a few, 190 and a few", p.Before, p.Waiting, p.Left)
		}
		expect(t, "old messages that never came", p.OldCensored.Total(), 0)
		if n := p.Old.Total(); n < 185 || n > 195 {
			t.Errorf("%d old messages; want the 190 that waited", n)
		}
		if n := p.OldLost; n < 9 || n > 11 {
			t.Errorf("%d messages of the pause were lost; want 10", n)
		}
		if n := p.LiveCensored.Total(); n < 24 || n > 26 {
			t.Errorf("%d live messages never came; want 25", n)
		}
	})
}

func TestUnpausedConsumerDoesNotAllocate(t *testing.T) {
	r := &run{pausing: &pausing{}}
	if n := testing.AllocsPerRun(100, func() { r.pausing.pass() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
