package nanomsg

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestAFullPipelineWaits: excess messages are not confirmed, and nothing is lost.
func TestAFullPipelineWaits(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			c := trial.Declared(t, Definition(), nil, "transport", transport, "hwm", "4")
			p, f := trial.Producer(t, c, "d")
			trial.Publish(t, p, 500, 7)
			trial.Eventually(func() bool { return len(f) == 4 })
			time.Sleep(50 * time.Millisecond)
			if len(f) > 4 || trial.BacklogOf(t, c, "s") != uint64(len(f)) {
				t.Errorf("without a consumer, %d of 500 messages are confirmed with room for 4, and the backlog is %d", len(f), trial.BacklogOf(t, c, "s"))
			}
			s := trial.Hold(t, c, "s", 0)
			s.Release()
			if !trial.Eventually(func() bool { return s.Count() == 500 }) {
				t.Errorf("%d of 500 messages were delivered", s.Count())
			}
			if !trial.Eventually(func() bool { return len(f) == 500 && trial.BacklogOf(t, c, "s") == 0 }) {
				t.Errorf("%d of 500 confirmed, the backlog is %d", len(f), trial.BacklogOf(t, c, "s"))
			}
		})
	}
}

func TestAPipelineWithoutConsumersClosesAtOnce(t *testing.T) {
	p, f := trial.Producer(t, trial.Declared(t, Definition(), nil, "hwm", "4"), "d")
	trial.Publish(t, p, 500, 7)
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	confirmed := 0
	for range 500 {
		if err := <-f; err == nil {
			confirmed++
		} else if !errors.Is(err, driver.ErrClosed) {
			t.Fatal(err)
		}
	}
	if confirmed > 4 {
		t.Errorf("%d confirmed, with room for 4", confirmed)
	}
}

// TestAFullSubscriberLoses: everything is confirmed. Dropped messages count in the backlog only
// while the subscriber is stalled.
func TestAFullSubscriberLoses(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			c := trial.Declared(t, Definition(), nil, "pattern", "pubsub", "transport", transport, "hwm", "4")
			slow := trial.Hold(t, c, "slow", 0)
			quick := trial.Hold(t, c, "quick", 0)
			quick.Release()
			p, f := trial.Producer(t, c, "d")
			const n = 2000
			for range n {
				p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 8<<10)})
				if err := <-f; err != nil {
					t.Fatal(err)
				}
			}
			if trial.BacklogOf(t, c, "slow") == 0 {
				t.Error("the backlog of a subscriber that stands still is 0")
			}
			slow.Release()
			if !trial.Eventually(func() bool { return trial.BacklogOf(t, c, "slow") == 0 && trial.BacklogOf(t, c, "quick") == 0 }) {
				t.Errorf("the backlogs are %d and %d in the end", trial.BacklogOf(t, c, "slow"), trial.BacklogOf(t, c, "quick"))
			}
			if got := slow.Count(); got == 0 || got >= n {
				t.Errorf("a subscriber that stood still has %d of %d messages", got, n)
			}
			t.Logf("the slow subscriber has %d of %d messages, the other %d", slow.Count(), n, quick.Count())
		})
	}
}

// TestConsumersOfAPipelineShare uses different numbers of producers and consumers.
func TestConsumersOfAPipelineShare(t *testing.T) {
	for _, bind := range []string{"producers", "consumers"} {
		c := trial.Declared(t, Definition(), nil, "bind", bind)
		var sinks []*trial.Held
		for i := range 3 {
			s := trial.Hold(t, c, "s", i)
			s.Release()
			sinks = append(sinks, s)
		}
		for range 2 {
			p, _ := trial.Producer(t, c, "d")
			trial.Publish(t, p, 900, 7)
		}
		sum := func() (n int) {
			for _, s := range sinks {
				n += s.Count()
			}
			return n
		}
		if !trial.Eventually(func() bool { return sum() == 1800 }) {
			t.Errorf("%s bind: %d of 1800 messages were delivered", bind, sum())
		}
		for i, s := range sinks {
			if s.Count() == 0 {
				t.Errorf("%s bind: consumer %d has none", bind, i)
			}
		}
	}
}

func TestExistingDestinationsAreRefused(t *testing.T) {
	_, err := driver.Open(t.Context(), Definition(), Definition().New(), driver.Run{ID: "r", Existing: true})
	if !errors.Is(err, driver.ErrUnsupported) {
		t.Error(err)
	}
}

// TestTheVersionIsTheModules: the library does not report its own version.
func TestTheVersionIsTheModules(t *testing.T) { trial.ModuleVersion(t, module, version) }
