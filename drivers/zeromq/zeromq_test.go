//go:build !libzmq

package zeromq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh/meshtest"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestASlowConsumerOfAPipelineHoldsItUp: the buffers of the operating system are all that
// is between a producer and a consumer, and nothing is lost.
func TestASlowConsumerOfAPipelineHoldsItUp(t *testing.T) {
	c := meshtest.Open(t, Definition())
	s := meshtest.Consume(t, c, meshtest.Spec("s", 0))
	p, f := trial.Producer(t, c, "d")
	const n = 500
	meshtest.Publish(t, p, n, 64<<10)
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
	if !trial.Eventually(func() bool { return s.Has() == n && len(f) == n && meshtest.Backlog(t, c, "s") == 0 }) {
		t.Errorf("of %d messages %d are confirmed and %d delivered, the backlog is %d", n, len(f), s.Has(), meshtest.Backlog(t, c, "s"))
	}
}

// TestAPipelineGoesOnWithTheNextConsumer: a PUSH socket of the library would go on
// sending to a consumer that has left.
func TestAPipelineGoesOnWithTheNextConsumer(t *testing.T) {
	c := meshtest.Open(t, Definition())
	p, f := trial.Producer(t, c, "d")
	meshtest.Publish(t, p, 3, 10) // which wait for a consumer
	for range 3 {
		s := meshtest.Consume(t, c, meshtest.Spec("s", 0))
		s.Release()
		meshtest.Publish(t, p, 100, 10)
		if !trial.Eventually(func() bool { return s.Has() >= 100 && meshtest.Backlog(t, c, "s") == 0 }) {
			t.Errorf("%d of 100 messages were delivered", s.Has())
		}
		s.End()
	}
	for range 303 {
		if err := <-f; err != nil {
			t.Error(err)
		}
	}
}

func TestAPipelineWithoutAConsumerClosesAtOnce(t *testing.T) {
	p, f := trial.Producer(t, meshtest.Open(t, Definition()), "d")
	meshtest.Publish(t, p, 10, 10)
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for range 10 {
		if err := <-f; !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestAFullQueueDropsForAll: a subscriber that stands still takes messages from the other
// one. The library has one queue for both, and one goroutine that writes to both.
func TestAFullQueueDropsForAll(t *testing.T) {
	c := meshtest.Open(t, Definition(), "pattern", "pubsub", "hwm", "4")
	slow := meshtest.Consume(t, c, meshtest.Spec("slow", 0))
	quick := meshtest.Consume(t, c, meshtest.Spec("quick", 0))
	quick.Release()
	p, f := trial.Producer(t, c, "d")
	const n = 500
	meshtest.Publish(t, p, n, 256<<10)
	for range n {
		if err := <-f; err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	if quick.Has() == n {
		t.Error("the library does not hold up one subscriber for another any more: say so on the page")
	}
	if left := meshtest.Backlog(t, c, "quick"); left == 0 {
		t.Error("the backlog is 0, and messages were lost")
	}
	t.Logf("of %d messages a subscriber has %d while another stands still, which has %d", n, quick.Has(), slow.Has())
	slow.Release()
	if !trial.Eventually(func() bool { return meshtest.Backlog(t, c, "slow") == 0 && meshtest.Backlog(t, c, "quick") == 0 }) {
		t.Errorf("the backlogs are %d and %d in the end", meshtest.Backlog(t, c, "slow"), meshtest.Backlog(t, c, "quick"))
	}
	if got := slow.Has(); got == 0 || got == n {
		t.Errorf("the slow subscriber has %d of %d messages", got, n)
	}
}

func TestWhatTheLibraryCannotDoIsRefused(t *testing.T) {
	for _, options := range [][]string{
		{"transport", "inproc"}, {"bind", "producers"}, {"hwm", "0"},
	} {
		var e *driver.OptionError
		if _, err := trial.Open(t, Definition(), driver.Run{ID: "r"}, nil, options...); !errors.As(err, &e) || e.Name != options[0] {
			t.Errorf("%v: %v", options, err)
		}
	}
	meshtest.Open(t, Definition(), "bind", "producers", "pattern", "pubsub")
	c := meshtest.Open(t, Definition())
	meshtest.Consume(t, c, meshtest.Spec("s", 0))
	for _, s := range []driver.ConsumerSpec{meshtest.Spec("s", 1), meshtest.Spec("other", 0)} {
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
		f, err := meshtest.Open(t, Definition(), "pattern", pattern).Facts(t.Context())
		if err != nil || f.Confirms.Guarantee != want || f.Settings["pattern"] != pattern || f.Nodes != 0 {
			t.Errorf("%s: %+v, %v", pattern, f, err)
		}
	}
}

// TestTheVersionIsTheModules: the library does not tell its own.
func TestTheVersionIsTheModules(t *testing.T) { meshtest.Version(t, module, version()) }

// TestAMessageCostsWhatTheClientDoes: the driver allocates nothing of its own for a
// message that is sent and received.
func TestAMessageCostsWhatTheClientDoes(t *testing.T) {
	const rounds = 500
	body := make([]byte, 64)
	push, pull, _ := pair(t, "tcp://127.0.0.1:0")
	plain := meshtest.Allocs(rounds, func() {
		_ = push.Send(zmq4.NewMsg(body))
		_, _ = pull.Recv()
	})

	own := meshtest.MessageAllocs(t, meshtest.Open(t, Definition()), rounds)
	if own > plain {
		t.Errorf("%v allocations a message, %v of the client's own", own, plain)
	}
}
