package engine

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/schedule"
)

// A pacer with more work than it can do does not keep its core to itself.
func TestOverloadedPacerGivesUpFIFO(t *testing.T) {
	if err := pace.CheckFIFO(); err != nil {
		if !errors.Is(err, pace.ErrNoFIFO) {
			t.Fatal(err)
		}
		needs.Host(t, "fifo", err)
	}
	cfg := onNoop(t, pace.Calibration{Samples: 1, Spin: true, Margin: 20_000, FIFO: true})
	rate := schedule.PerSecond(20_000_000)
	cfg.Plan.Phases = []schedule.Phase{{From: rate, To: rate, For: 500 * time.Millisecond}}
	var given atomic.Int64
	cfg.OnEvent = func(e Event) {
		if e.Kind == "precedence" {
			given.Add(1)
		}
	}
	cfg.Drain = 100 * time.Millisecond
	stop := make(chan struct{})
	time.AfterFunc(2*time.Second, func() { close(stop) })
	raw := must.Get(Run(t.Context(), stop, cfg))(t)
	if given.Load() == 0 {
		t.Errorf("nothing was said of precedence that was given up; %d messages were sent", raw.Snapshot.Window.Sent)
	}
}
