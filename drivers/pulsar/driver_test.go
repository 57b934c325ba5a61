package pulsar

import (
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// servers holds the servers of tests that leave them unchanged.
var servers = served.NewShared(Definition())

func TestMain(m *testing.M) {
	// The client leaks it for each producer, for as long as send-timeout.
	const stays = "github.com/apache/pulsar-client-go/pulsar.(*partitionProducer).failTimeoutMessages"
	servers.Main(m, goleak.IgnoreAnyFunction(stays))
}

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, s *served.System, cut func() error, kill func() func() error, expect int, options map[string][]string) {
		maps.Copy(s.Options, options)
		// The client leaks a producer's goroutine for that long.
		s.Options["send-timeout"], s.Options["nack-delay"] = []string{"2s"}, []string{"100ms"}
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Cut: cut, Kill: kill, Stall: s.Stall, Allocs: 100, Expect: expect,
		})
	}
	t.Run(shared, func(t *testing.T) {
		s := servers.Up(t, 1)
		conform(t, s, s.Restart, s.Kill, 34, nil)
	})
	t.Run("shared without batching", func(t *testing.T) {
		s := servers.Up(t, 1)
		conform(t, s, s.Restart, s.Kill, 35, map[string][]string{"batching": {"no"}})
	})
	t.Run(exclusive, func(t *testing.T) {
		s := servers.Up(t, 1)
		conform(t, s, s.Restart, s.Kill, 34, map[string][]string{"subscription-type": {exclusive}, "batching": {"no"}})
	})
	t.Run("a cluster of two brokers and three bookies", func(t *testing.T) {
		s := served.Up(t, Definition(), 3, served.With{Recipe: "pulsar-cluster"})
		// Clients connect only to brokers. Restarting all six servers would take a minute.
		conform(t, s, func() error { return s.RestartOnly("broker-2", "broker-3") }, nil, 33, nil)
		t.Run("outlives a bookie", func(t *testing.T) { outlivesABookie(t, s) })
	})
}
