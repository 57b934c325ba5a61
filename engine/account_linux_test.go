package engine

import (
	"context"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// crowd runs processes that spin and compete for the cores until the test's end.
func crowd(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		c := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		must.Do(t, c.Start())
		t.Cleanup(func() { _ = c.Wait() })
	}
}

// burn works for ns of the thread's own CPU time, however long that takes.
func burn(t *testing.T, ns int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	th, err := pace.WatchThread()
	if err != nil {
		t.Error(err)
		return
	}
	defer th.Close()
	c := pace.NewClock()
	for before := th.Read(c); th.Read(c).CPU-before.CPU < ns; {
	}
}

// real configures a run of f in real time: 5,000/s for 0.2 s, 100 us of work in each Publish and
// the confirmation at once.
func real(t *testing.T, f *fake, inside func()) Config {
	t.Helper()
	runtime.LockOSThread()
	th, err := pace.WatchThread()
	runtime.UnlockOSThread()
	if err != nil {
		needs.Host(t, "schedstat", err)
	}
	th.Close()
	f.enter = func(context.Context, int) { inside() }
	cfg := config(f, 5000)
	cfg.Mode, cfg.Subscriptions, cfg.Consumers = Produce, 0, 0
	cfg.Plan.WarmUp, cfg.Plan.Phases[0].For = 0, 200*time.Millisecond
	cfg.Clock, cfg.Calibration = pace.NewClock(), pace.Calibration{Samples: 1, Spin: true, Margin: 50_000}
	return cfg
}

// means returns the mean lateness and the mean blocked time.
func means(raw *Raw) (late, blocked float64) {
	kinds := &raw.Snapshot.Kinds
	return kinds[measure.SendLateness][measure.Measure].Mean(), kinds[measure.SendBlocked][measure.Measure].Mean()
}

// Whatever the driver declares: if Publish only works and others want the cores too, nothing was
// blocked.
func TestPreemptionDuringPublishIsLateness(t *testing.T) {
	crowd(t)
	for _, blocks := range []bool{false, true} {
		raw := do(t, real(t, &fake{blocks: blocks}, func() { burn(t, 100_000) }))
		late, blocked := means(raw)
		t.Logf("declared blocking %t: lateness %v, blocked %v in the mean", blocks, time.Duration(late), time.Duration(blocked))
		if late == 0 || blocked > late/2 || blocks && raw.Inside.Unreported {
			t.Errorf("declared blocking %t: blocked %v in the mean, late %v; nothing blocked", blocks, time.Duration(blocked), time.Duration(late))
		}
	}
}

// Each call sleeps for longer than the time until the next message.
func TestWhatPublishSleepsIsBlocked(t *testing.T) {
	raw := do(t, real(t, &fake{blocks: true}, func() { time.Sleep(400 * time.Microsecond) }))
	late, blocked := means(raw)
	t.Logf("lateness %v, blocked %v in the mean", time.Duration(late), time.Duration(blocked))
	if blocked < 10*float64(time.Millisecond) || late > blocked/2 {
		t.Errorf("blocked %v in the mean, late %v; the pacer slept half of the time and more", time.Duration(blocked), time.Duration(late))
	}
}

// A sample of the Publish calls behind the pacer is measured, and matches what they did.
func TestProducerGoroutineIsSampled(t *testing.T) {
	for _, sleeps := range []bool{false, true} {
		inside := func() { burn(t, 1_000_000) }
		if sleeps {
			inside = func() { time.Sleep(time.Millisecond) }
		}
		cfg := real(t, &fake{blocks: true}, inside)
		cfg.Plan.Producers, cfg.Pacers = 2, 1
		in := do(t, cfg).Inside
		t.Logf("sleeping %t: %+v", sleeps, in)
		if in.Unreported || in.WallNS == 0 || in.PublishNS < int64(100*time.Millisecond) {
			t.Errorf("sleeping %t: %+v; want some of the time in Publish looked at", sleeps, in)
		}
		if busy := in.BusyNS > in.WallNS/2; busy == sleeps {
			t.Errorf("sleeping %t: %+v", sleeps, in)
		}
	}
}

// For messages that nothing blocks, lateness is the sum of delay by the host, the pacer's own work,
// and the wake-up of the goroutine behind it. A pacer that publishes itself wakes none.
func TestProducerWakeupDelayIsCounted(t *testing.T) {
	for _, producers := range []int{1, 2} {
		cfg := real(t, &fake{blocks: true}, func() {})
		cfg.Plan.Producers, cfg.Pacers = producers, 1
		raw := do(t, cfg)
		late := &raw.Snapshot.Kinds[measure.SendLateness][measure.Measure]
		held := &raw.Snapshot.Kinds[measure.SendHeldUp][measure.Measure]
		woken, most := float64(raw.Inside.WokenNS), 1.01*late.Mean()*float64(late.Total())
		if (woken > 0) != (producers > 1) || woken+0.99*held.Mean()*float64(held.Total()) > most {
			t.Errorf("%d producers on a pacer: woken late for %.0f ns, held up for %.0f in the mean, late for %.0f", producers, woken, held.Mean(), late.Mean())
		}
	}
}
