package rocketmq

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// servers holds the servers of tests that leave them unchanged.
var servers = served.NewShared(Definition())

// stays lists functions on the stacks of goroutines that the client leaks: the connection to a name
// server, for 2 minutes; a pull, for 30 s; a consumer's statistics, for a day.
var stays = []string{
	"github.com/apache/rocketmq-client-go/v2/primitive.WithRecover",
	"github.com/apache/rocketmq-client-go/v2/consumer.(*defaultPullConsumer).pullMessage",
}

func TestMain(m *testing.M) {
	servers.Main(m, goleak.IgnoreAnyFunction(stays[0]), goleak.IgnoreAnyFunction(stays[1]),
		goleak.IgnoreTopFunction("github.com/patrickmn/go-cache.(*janitor).Run")) // of a client variable
}

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, s *served.System, nodes int, cut func() error) {
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, At: s.At, Cut: cut, Stall: s.Stall, Yields: drivertest.Prefetch, Goroutines: stays,
			Offset:   func(_, _ string, n int) (string, error) { return strconv.Itoa(n), nil },
			Existing: func(run, d string) string { return (&conn{run: driver.Run{ID: run}}).name(d) },
			Nodes:    nodes, Allocs: 270, Expect: 32,
		})
	}
	t.Run("a master", func(t *testing.T) {
		s := servers.Up(t, 1)
		conform(t, s, 1, s.Restart)
	})
	t.Run("a master and its slave, replicated", func(t *testing.T) {
		s := served.Up(t, Definition(), 2, served.With{Settings: map[string]string{"replication": "sync"}})
		// The slave requests copies some seconds after both are up. Before that, nothing is
		// confirmed.
		t.Run("confirms when it is ready", func(t *testing.T) {
			p, fates := trial.Producer(t, trial.Declared(t, Definition(), s.Options), "d")
			if n := fates.Confirmed(t, p, 10); n != 10 {
				t.Errorf("%d of 10 messages are confirmed", n)
			}
		})
		// No message passes through the name server, which keeps running.
		conform(t, s, 2, func() error { return s.RestartOnly("broker-1", "broker-2") })
	})
}
