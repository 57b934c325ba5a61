package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/measure"
)

// The system confirms 1100 messages and loses one in 20. Nothing waits; during the run a lone
// consumer of a system that sends nothing twice shows that.
func TestLostMessagesDoNotWait(t *testing.T) {
	for name, tt := range map[string]struct {
		delivery driver.Promise
		live     uint64
	}{
		"known at the end":  {driver.AtLeastOnce, 55},
		"known when passed": {driver.AtMostOnce, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(&fake{copies: func(_, n int) int { return min(n%20, 1) }}, 1000)
				cfg.Definition.Capabilities.Delivery = tt.delivery
				cfg.Every = 100 * time.Millisecond
				var live uint64
				type look struct {
					at int64
					b  measure.Backlog
				}
				var looks []look
				cfg.OnInterval = func(iv *measure.Interval) {
					live = max(live, iv.Backlog.Waiting())
					looks = append(looks, look{iv.To, append(measure.Backlog(nil), iv.Backlog...)})
				}
				raw := do(t, cfg)
				expect(t, "lost", raw.All.Lost, 55)
				if live < tt.live || tt.live == 1 && live > 20 {
					t.Errorf("%d waited at most while it continued; want %d", live, tt.live)
				}
				for _, x := range looks {
					if n := x.b.Net(x.at, raw.Lost); n > 20 {
						t.Errorf("%d waited at %v; want none, or a few on their way", n, time.Duration(x.at))
					}
				}
				if raw.Backlog > 20 {
					t.Errorf("the largest backlog is %d; want none, or a few on their way", raw.Backlog)
				}
			})
		})
	}
}

// Consumers nack every tenth message once, which makes it a dead letter.
func TestDeadLettersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&fake{}, 1000)
		cfg.Refuse, cfg.DeadLetter, cfg.Every = 0.1, 1, 100*time.Millisecond
		var live uint64
		cfg.OnInterval = func(iv *measure.Interval) { live = max(live, iv.Backlog.Waiting()) }
		raw := do(t, cfg)
		if n := raw.All.DeadLettered; n < 60 || n > 160 {
			t.Errorf("%d dead letters; want about 110", n)
		}
		if live > 30 || raw.Backlog > 30 {
			t.Errorf("at most %d waited as the run continued, and %d in all; want a few on their way", live, raw.Backlog)
		}
	})
}

func TestHeldMessagesCountAsBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&fake{copies: func(_, n int) int { return min(n%20, 1) }, backlog: func() (uint64, error) { return 55, nil }}, 1000)
		cfg.Definition.Capabilities.Delivery = driver.AtLeastOnce
		raw := do(t, cfg)
		expect(t, "pending", raw.All.Pending, 55)
		if raw.Backlog < 54 {
			t.Errorf("the largest backlog is %d; want what the system holds, 55", raw.Backlog)
		}
	})
}

// Steps double, and the largest peak stays.
func TestPeaksOfALongRun(t *testing.T) {
	var p Peaks
	for i := range int64(3 * mostPeaks) {
		p.Note(i*1e9, measure.Backlog{{Missing: uint64(i % 5000)}})
	}
	if n := len(p.all); n > mostPeaks || n < mostPeaks/4 {
		t.Errorf("%d peaks", n)
	}
	expect(t, "most", p.most(nil), 4999)
	lost := &measure.Lost{}
	lost.Add(0, 4000)
	expect(t, "without what was lost", p.most([]*measure.Lost{lost}), 999)
}
