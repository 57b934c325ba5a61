package beanstalkd

import (
	"testing"
	"time"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, settings map[string]string) {
		settings["max-job-size"] = "1048576" // for all of the suite's payloads
		s := shared.Up(t, 1, served.With{Settings: settings})
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, Cut: s.Restart, Kill: s.Kill, Stall: s.Stall, Allocs: 24, Expect: 32,
		})
	}
	t.Run("memory", func(t *testing.T) { conform(t, map[string]string{}) })
	t.Run("binlog, each job synced", func(t *testing.T) { conform(t, map[string]string{"binlog": "yes", "fsync": "0"}) })
}
