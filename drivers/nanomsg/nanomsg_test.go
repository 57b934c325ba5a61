package nanomsg

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.nanomsg.org/mangos/v3"
	"go.nanomsg.org/mangos/v3/protocol/pull"
	"go.nanomsg.org/mangos/v3/protocol/push"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh/meshtest"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestAFullPipelineWaits: what does not fit is not confirmed, and nothing is lost.
func TestAFullPipelineWaits(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			c := meshtest.Open(t, Definition(), "transport", transport, "hwm", "4")
			p, f := trial.Producer(t, c, "d")
			meshtest.Publish(t, p, 500, 7)
			trial.Eventually(func() bool { return len(f) == 4 })
			time.Sleep(50 * time.Millisecond)
			if len(f) > 4 || meshtest.Backlog(t, c, "s") != uint64(len(f)) {
				t.Errorf("without a consumer, %d of 500 messages are confirmed with room for 4, and the backlog is %d", len(f), meshtest.Backlog(t, c, "s"))
			}
			s := meshtest.Consume(t, c, meshtest.Spec("s", 0))
			s.Release()
			if !trial.Eventually(func() bool { return s.Has() == 500 }) {
				t.Errorf("%d of 500 messages were delivered", s.Has())
			}
			if !trial.Eventually(func() bool { return len(f) == 500 && meshtest.Backlog(t, c, "s") == 0 }) {
				t.Errorf("%d of 500 confirmed, the backlog is %d", len(f), meshtest.Backlog(t, c, "s"))
			}
		})
	}
}

func TestAPipelineWithoutConsumersClosesAtOnce(t *testing.T) {
	p, f := trial.Producer(t, meshtest.Open(t, Definition(), "hwm", "4"), "d")
	meshtest.Publish(t, p, 500, 7)
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

// TestAFullSubscriberLoses: all is confirmed. What was dropped is in the backlog only
// while the subscriber stands still.
func TestAFullSubscriberLoses(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			c := meshtest.Open(t, Definition(), "pattern", "pubsub", "transport", transport, "hwm", "4")
			slow := meshtest.Consume(t, c, meshtest.Spec("slow", 0))
			quick := meshtest.Consume(t, c, meshtest.Spec("quick", 0))
			quick.Release()
			p, f := trial.Producer(t, c, "d")
			const n = 2000
			for range n {
				p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 8<<10)})
				if err := <-f; err != nil {
					t.Fatal(err)
				}
			}
			if meshtest.Backlog(t, c, "slow") == 0 {
				t.Error("the backlog of a subscriber that stands still is 0")
			}
			slow.Release()
			if !trial.Eventually(func() bool { return meshtest.Backlog(t, c, "slow") == 0 && meshtest.Backlog(t, c, "quick") == 0 }) {
				t.Errorf("the backlogs are %d and %d in the end", meshtest.Backlog(t, c, "slow"), meshtest.Backlog(t, c, "quick"))
			}
			if got := slow.Has(); got == 0 || got >= n {
				t.Errorf("a subscriber that stood still has %d of %d messages", got, n)
			}
			t.Logf("the slow subscriber has %d of %d messages, the other %d", slow.Has(), n, quick.Has())
		})
	}
}

// TestConsumersOfAPipelineShare has producers and consumers of different numbers.
func TestConsumersOfAPipelineShare(t *testing.T) {
	for _, bind := range []string{"producers", "consumers"} {
		c := meshtest.Open(t, Definition(), "bind", bind)
		var sinks []*meshtest.Sink
		for i := range 3 {
			s := meshtest.Consume(t, c, meshtest.Spec("s", i))
			s.Release()
			sinks = append(sinks, s)
		}
		for range 2 {
			p, _ := trial.Producer(t, c, "d")
			meshtest.Publish(t, p, 900, 7)
		}
		sum := func() (n int) {
			for _, s := range sinks {
				n += s.Has()
			}
			return n
		}
		if !trial.Eventually(func() bool { return sum() == 1800 }) {
			t.Errorf("%s bind: %d of 1800 messages were delivered", bind, sum())
		}
		for i, s := range sinks {
			if s.Has() == 0 {
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

// TestBestEffortDropsWhatThereIsRoomFor shows why the driver does not offer to drop
// messages of a pipeline. Without the defect, mangos would drop none here.
func TestBestEffortDropsWhatThereIsRoomFor(t *testing.T) {
	s, err := push.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for name, value := range map[string]any{mangos.OptionWriteQLen: 1000, mangos.OptionBestEffort: true} {
		if err := s.SetOption(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		if err := s.Send([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := pull.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if err := errors.Join(r.Listen("inproc://best-effort"), s.Dial("inproc://best-effort"),
		r.SetOption(mangos.OptionRecvDeadline, 500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got := 0
	for ; ; got++ {
		if _, err := r.Recv(); err != nil {
			break
		}
	}
	if got == 1000 {
		t.Error("mangos has no such defect any more: offer the option, and say so on the page")
	}
	t.Logf("%d of 1000 messages arrived that a queue of 1000 had room for", got)
}

// TestTheVersionIsTheModules: the library does not tell its own.
func TestTheVersionIsTheModules(t *testing.T) { meshtest.Version(t, module, version) }

// TestAMessageCostsWhatTheClientDoes: the driver allocates nothing of its own for a
// message that is sent and received.
func TestAMessageCostsWhatTheClientDoes(t *testing.T) {
	const rounds = 2000
	body := make([]byte, 64)
	a, err := push.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	b, err := pull.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if err := errors.Join(b.Listen("inproc://budget"), a.Dial("inproc://budget")); err != nil {
		t.Fatal(err)
	}
	plain := meshtest.Allocs(rounds, func() {
		_ = a.Send(body)
		if m, err := b.RecvMsg(); err == nil {
			m.Free()
		}
	})

	own := meshtest.MessageAllocs(t, meshtest.Open(t, Definition(), "transport", "inproc"), rounds)
	if own > plain {
		t.Errorf("%v allocations a message, %v of the client's own", own, plain)
	}
}
