package amqp1

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// shared holds the servers of tests that leave them unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, options map[string][]string) {
		s := shared.Up(t, 1)
		maps.Copy(s.Options, options)
		h := drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Allocs: 34, Expect: 31,
			Existing: func(run, d string) string { return names.Join(200, "weir", run, d) },
		}
		if options == nil { // otherwise the queue goes with the server
			h.Kill = s.Kill
			h.Expect++
		}
		drivertest.Run(t, Definition(), h)
	}
	t.Run("durable", func(t *testing.T) { conform(t, nil) })
	t.Run("not durable, sent settled", func(t *testing.T) {
		conform(t, map[string][]string{"durable": {"no"}, "confirm": {"no"}})
	})
	for _, kind := range []string{quorum, classic} {
		t.Run("RabbitMQ 4, "+kind, func(t *testing.T) {
			s := shared.Up(t, 1, served.With{Recipe: "rabbitmq"})
			conformRabbitMQ(t, s, 1, kind)
			t.Run("what is settled at the end stays settled", func(t *testing.T) { endsSettled(t, s) })
		})
	}
}

// endsSettled ends a consumer as soon as it has settled more messages than a quorum queue handles
// at once: the server delays settlements beyond 32 until it has handled some.
func endsSettled(t *testing.T, s *served.System) {
	t.Helper()
	c := trial.Declared(t, Definition(), s.Options)
	p, f := trial.Producer(t, c, "d")
	const n = 500
	for range 5 {
		if got := f.Confirmed(t, p, n); got != n {
			t.Fatalf("%d of %d confirmed", got, n)
		}
		x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Prefetch: n, Settle: driver.SettleEach}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		if err := errors.Join(x.Run(ctx, &enough{left: n, end: cancel}), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		cancel()
		again := &enough{left: 1, end: func() {}}
		_, end := trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleEach}, again)
		if !trial.Eventually(func() bool { return trial.Backlog(t, c) == 0 }) {
			t.Error("messages are left")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if again.left != 1 {
			t.Fatalf("%d of %d messages that were settled came again", 1-again.left, n)
		}
	}
}

// An enough is a sink that ends its consumer when the last expected message arrives.
type enough struct {
	left int
	end  func()
}

func (e *enough) Ready() {}
func (e *enough) Deliver(ds []driver.Delivery) error {
	if e.left -= len(ds); e.left == 0 {
		e.end()
	}
	return nil
}
func (e *enough) Settled([]driver.Delivery, error) {}
func (e *enough) Fault(error)                      {}

// conformRabbitMQ runs the suite on RabbitMQ 4, with one kind of queue.
func conformRabbitMQ(t *testing.T, s *served.System, nodes int, kind string) {
	t.Helper()
	s.Options["queue-type"] = []string{kind}
	drivertest.Run(t, Definition(), drivertest.Harness{
		Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Stall: s.Stall, Nodes: nodes, Expect: 30,
		Hold: func(run, d string) (func(), error) { return trial.HoldRabbit(s.Pids, names.Join(200, "weir", run, d)) },
	})
}
