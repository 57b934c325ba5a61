package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/measure"
)

// pausedRun is config with a consumer that can take ten a millisecond, and a pause of 200 ms.
func pausedRun(f *fake) Config {
	cfg := config(f, 1000)
	cfg.Work = 100 * time.Microsecond
	cfg.Pause = Pause{At: 300 * time.Millisecond, For: 200 * time.Millisecond}
	return cfg
}

// TestPausedConsumersCatchUpWhileLoadGoesOn: at 1000/s 200 messages wait after 200 ms. A
// consumer that takes 10,000/s and is sent 1000/s is through them after 200/9000 s.
func TestPausedConsumersCatchUpWhileLoadGoesOn(t *testing.T) {
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

func TestAPauseCanLastUntilSoManyWait(t *testing.T) {
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

// TestAPauseEndsWithThePlan: what never comes to so many waits no longer than messages are
// sent, and what was not caught up is told.
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

// TestWhatALossyPauseLosesCountsAsOld: what was due before the resume and never came is in
// the old ones, at its age.
func TestWhatALossyPauseLosesCountsAsOld(t *testing.T) {
	s := &Paused{Began: 10, Resumed: 20}
	s.censor(15, 100, 3)
	s.censor(20, 95, 2)
	expect(t, "old", s.OldCensored.Total(), 3)
	expect(t, "live", s.LiveCensored.Total(), 2)
	(&Paused{}).censor(1, 1, 1)
	(*Paused)(nil).censor(1, 1, 1)
}

func TestAConsumerThatIsNotPausedAllocatesNothing(t *testing.T) {
	r := &run{pausing: &pausing{}}
	if n := testing.AllocsPerRun(100, func() { r.pausing.pass() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
