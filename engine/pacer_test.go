package engine

import (
	"context"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// Every tenth message costs the pacer 3.5 ms, in which three others become due.
func TestBusyPacerHasNoWakeupDelay(t *testing.T) {
	virtual(t, func(t *testing.T) {
		n := 0
		f := &fake{enter: func(context.Context, int) {
			if n++; n%10 == 0 {
				time.Sleep(3500 * time.Microsecond)
			}
		}}
		raw := do(t, config(f, 1000))
		expect(t, "worst lateness", p(raw, measure.SendLateness, 100), 2500*time.Microsecond)
		expect(t, "held up for", p(raw, measure.SendHeldUp, 100), time.Duration(0))
		expect(t, "messages", raw.Snapshot.Kinds[measure.SendHeldUp][measure.Measure].Total(), raw.Measured.Sent)
	})
}

// Until it has caught up, as far as its lateness has gone down; time that it spends itself is not
// added.
func TestPacerWokenLateHasWakeupDelay(t *testing.T) {
	clock := pace.NewClock()
	r := &run{shape: &shape{cfg: Config{}}}
	l := &pacer{run: r, waiter: pace.NewWaiter(clock, pace.Calibration{})} // which sleeps to the instant itself, and is late
	for range 20 {
		due := clock.Now() + 1_000_000
		now, ok := l.wait(due)
		if !ok || now < due || l.held != now-due {
			t.Fatalf("it woke %d ns late, and was held up for %d", now-due, l.held)
		}
		if at, _ := l.wait(due - 1000); l.held != now-due {
			t.Fatalf("at a message that was due before it woke, %d ns later, it is held up for %d ns; want %d as before", at-now, l.held, now-due)
		}
	}
	r.cfg.Plan.BatchMax = 1
	full := &sender{run: r, free: emptyFreeList(1), queue: backlog{pool: newChunkPool(1)}, listed: true}
	full.queue.put(item{})
	l.waiting, l.held = []*sender{full}, 42
	if l.wait(clock.Now() + 1_000_000); l.held != 42 {
		t.Errorf("a pacer that had a backlog to work off waited with nothing to do: held up for %d", l.held)
	}
}
