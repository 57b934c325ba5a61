package postgres

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

func TestMain(m *testing.M) {
	served.Main(Definition())
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback, an unexpected message would arrive with the next poll of the
// table.
const quiet = 60 * time.Millisecond

// waived returns the tests that the driver cannot pass.
func waived() map[string]string {
	return map[string]string{
		"DeliversUncopied": "pgconn yields a row until it reads the next, and a consumer has its rows when the statement that takes them has committed, which the server says behind the last",
	}
}

// lock returns a function that locks a table such that it can still be read.
func lock(t *testing.T, s *served.System) func(run, destination string) (func(), error) {
	return func(run, destination string) (func(), error) {
		l, err := config(t, s).connect(t.Context(), driver.Run{ID: "test"}, "test", s.Address[:1])
		if err != nil {
			return nil, err
		}
		_, err = l.Exec(t.Context(), `BEGIN; LOCK TABLE `+own(driver.Run{ID: run}, destination).name+` IN SHARE MODE`).ReadAll()
		return func() { l.close(t.Context()) }, err
	}
}

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	t.Run("one node", func(t *testing.T) {
		s := served.Up(t, Definition(), 1)
		waive := waived()
		waive["StalledDestination"] = "a producer is one session, whose statements the server does one after another; only a session for each table would pass a locked one"
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: quiet, Hold: lock(t, s), Options: s.Options, At: s.At, Cut: s.Restart, Kill: s.Kill, Stall: s.Stall, Yields: drivertest.Prefetch, Waive: waive, Allocs: 50, Expect: 32,
		})
	})
	t.Run("one node, transactions of one message, notifications", func(t *testing.T) {
		s := served.Up(t, Definition(), 1)
		options := map[string][]string{"transaction": {"1"}, "fetch": {"3"}, "notify": {"true"}, "poll-interval": {"1s"}}
		for name, values := range s.Options {
			options[name] = values
		}
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: quiet, Options: options, At: s.At, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Waive: waived(), Expect: 30,
		})
	})
	t.Run("three nodes", func(t *testing.T) {
		s := served.Up(t, Definition(), 3)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: quiet, Options: s.Options, At: s.At, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Waive: waived(), Nodes: 3, Expect: 30,
		})
	})
}
