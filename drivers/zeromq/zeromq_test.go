//go:build !libzmq

package zeromq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestSlowPipelineConsumerCausesBackpressure: only operating system buffers lie between a producer
// and a consumer, and nothing is lost.
func TestSlowPipelineConsumerCausesBackpressure(t *testing.T) {
	c := trial.Declared(t, Definition(), nil)
	s := trial.Hold(t, c, "s", 0)
	p, f := trial.Producer(t, c, "d")
	const n = 500
	trial.Publish(t, p, n, 64<<10)
	last := -1
	trial.Eventually(func() bool {
		now := len(f)
		same := now == last && now > 0
		last = now
		time.Sleep(50 * time.Millisecond)
		return same
	})
	if len(f) == n {
		t.Errorf("all of 32 MB are confirmed, and the consumer has taken nothing")
	}
	s.Release()
	if !trial.Eventually(func() bool { return s.Count() == n && len(f) == n && trial.BacklogOf(t, c, "s") == 0 }) {
		t.Errorf("of %d messages %d are confirmed and %d delivered, the backlog is %d", n, len(f), s.Count(), trial.BacklogOf(t, c, "s"))
	}
}

// TestPipelineContinuesWithNextConsumer: the library's PUSH socket would continue to send to a
// departed consumer.
func TestPipelineContinuesWithNextConsumer(t *testing.T) {
	c := trial.Declared(t, Definition(), nil)
	p, f := trial.Producer(t, c, "d")
	trial.Publish(t, p, 3, 10) // they wait for a consumer
	for range 3 {
		s := trial.Hold(t, c, "s", 0)
		s.Release()
		trial.Publish(t, p, 100, 10)
		if !trial.Eventually(func() bool { return s.Count() >= 100 && trial.BacklogOf(t, c, "s") == 0 }) {
			t.Errorf("%d of 100 messages were delivered", s.Count())
		}
		s.End()
	}
	for range 303 {
		if err := <-f; err != nil {
			t.Error(err)
		}
	}
}

func TestPipelineWithoutConsumerClosesAtOnce(t *testing.T) {
	p, f := trial.Producer(t, trial.Declared(t, Definition(), nil), "d")
	trial.Publish(t, p, 10, 10)
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for range 10 {
		if err := <-f; !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestAFullQueueDropsForAll: a stalled subscriber takes messages from the other one. The library
// has one queue for both, and one goroutine that writes to both.
func TestAFullQueueDropsForAll(t *testing.T) {
	c := trial.Declared(t, Definition(), nil, "pattern", "pubsub", "hwm", "4")
	slow := trial.Hold(t, c, "slow", 0)
	quick := trial.Hold(t, c, "quick", 0)
	quick.Release()
	p, f := trial.Producer(t, c, "d")
	const n = 500
	trial.Publish(t, p, n, 256<<10)
	for range n {
		if err := <-f; err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	if quick.Count() == n {
		t.Error("the library does not hold up one subscriber for another any more: say so on the page")
	}
	if left := trial.BacklogOf(t, c, "quick"); left == 0 {
		t.Error("the backlog is 0, and messages were lost")
	}
	t.Logf("of %d messages a subscriber has %d while another stands still, which has %d", n, quick.Count(), slow.Count())
	slow.Release()
	if !trial.Eventually(func() bool { return trial.BacklogOf(t, c, "slow") == 0 && trial.BacklogOf(t, c, "quick") == 0 }) {
		t.Errorf("the backlogs are %d and %d in the end", trial.BacklogOf(t, c, "slow"), trial.BacklogOf(t, c, "quick"))
	}
	if got := slow.Count(); got == 0 || got == n {
		t.Errorf("the slow subscriber has %d of %d messages", got, n)
	}
}

func TestUnsupportedByLibraryIsRejected(t *testing.T) {
	for _, options := range [][]string{
		{"transport", "inproc"}, {"bind", "producers"}, {"hwm", "0"},
	} {
		var e *driver.OptionError
		if _, err := trial.Open(t, Definition(), driver.Run{ID: "r"}, nil, options...); !errors.As(err, &e) || e.Name != options[0] {
			t.Errorf("%v: %v", options, err)
		}
	}
	trial.Declared(t, Definition(), nil, "bind", "producers", "pattern", "pubsub")
	c := trial.Declared(t, Definition(), nil)
	trial.Hold(t, c, "s", 0)
	for _, s := range []driver.ConsumerSpec{
		{Subscription: "s", Index: 1, Destinations: []string{"d"}, Settle: driver.SettleNone},
		{Subscription: "other", Destinations: []string{"d"}, Settle: driver.SettleNone},
	} {
		if _, err := c.Consumer(t.Context(), s); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("consumer %d of %s: %v", s.Index, s.Subscription, err)
		}
	}
	_, err := driver.Open(t.Context(), Definition(), Definition().New(), driver.Run{ID: "r", Existing: true})
	if !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("existing destinations: %v", err)
	}
}

func TestTheGuaranteeFollowsThePattern(t *testing.T) {
	for pattern, want := range map[string]driver.Guarantee{"pipeline": driver.Written, "pubsub": driver.Buffered} {
		f, err := trial.Declared(t, Definition(), nil, "pattern", pattern).Facts(t.Context())
		if err != nil || f.Confirms.Guarantee != want || f.Settings["pattern"] != pattern || f.Nodes != 0 {
			t.Errorf("%s: %+v, %v", pattern, f, err)
		}
	}
}

// TestTheVersionIsTheModules: the library does not report its own version.
func TestTheVersionIsTheModules(t *testing.T) { trial.ModuleVersion(t, module, version()) }
